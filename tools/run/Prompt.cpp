#include "tools/run/Prompt.h"

#include <charconv>

namespace strata::run {

CLI::Option *addIdList(CLI::App &command, const std::string &name, const std::string &description,
                       std::vector<int32_t> &ids) {
  auto parse = [&ids, name](const std::string &list) {
    ids.clear();
    for (const std::string &number : CLI::detail::split(list, ',')) {
      int32_t id = 0;
      const char *end = number.data() + number.size();
      auto [next, error] = std::from_chars(number.data(), end, id);
      if (error != std::errc() || next != end)
        throw CLI::ValidationError(name, fmt::format("'{}' is not a token id", number));
      ids.push_back(id);
    }
  };
  return command.add_option_function<std::string>(name, parse, description)->type_name("ID,...");
}

CLI::Option *addIdsOption(CLI::App &command, std::vector<int32_t> &ids) {
  return addIdList(command, "--ids", "Token ids, such as 1,403,407", ids);
}

void Prompt::addTo(CLI::App &command) {
  textOption = command.add_option("PROMPT", text, "Text to continue");
  idsOption = addIdsOption(command, ids);
  command.add_flag("--special", special,
                   "Control tokens written in the prompt, such as <|im_start|>, become their ids");
}

Result<std::vector<int32_t>> Prompt::resolve(const Tokenizer *tokenizer) const {
  bool hasText = textOption->count() > 0, hasIds = idsOption->count() > 0;
  if (hasText == hasIds)
    return makeError(StatusCode::InvalidArgument, "give {} PROMPT or --ids",
                     hasText ? "only one of" : "a");
  if (hasIds)
    return ids;
  if (!tokenizer)
    return makeError(StatusCode::InvalidArgument,
                     "the plan has no vocabulary, since its checkpoint had none: give the prompt "
                     "as --ids");
  return tokenizer->encode(text, {.addBos = true, .parseSpecial = special});
}

Result<std::unique_ptr<Tokenizer>> planTokenizer(const PlanFile &plan) {
  std::optional<Vocabulary> vocabulary = plan.vocabulary();
  if (!vocabulary)
    return std::unique_ptr<Tokenizer>();
  return Tokenizer::create(std::move(*vocabulary));
}

} // namespace strata::run
