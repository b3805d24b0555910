// strata-run tokenize: text to ids, by the vocabulary of a plan or a checkpoint.
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "tools/run/Commands.h"
#include "tools/run/TextFile.h"

namespace strata::run {
namespace {

struct Options {
  std::string file;
  std::string text;
  std::string textFile;
  CLI::Option *textFileOption = nullptr;
  bool special = false;
  bool noBos = false;
  bool json = false;
};

bool isPlan(const std::string &path) {
  std::array<char, planMagic.size()> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && magic == planMagic;
}

Result<Vocabulary> vocabularyOf(const std::string &path) {
  std::error_code ignored; // what cannot be looked at is refused by the reader
  if (!std::filesystem::is_regular_file(path, ignored) || !isPlan(path))
    return readVocabulary(path);
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(path));
  std::optional<Vocabulary> vocabulary = plan->vocabulary();
  if (!vocabulary)
    return makeError(StatusCode::InvalidArgument,
                     "the plan '{}' has no vocabulary, since its checkpoint had none", path);
  return std::move(*vocabulary);
}

Result<std::string> textOf(const Options &options) {
  if (options.textFileOption->count() == 0)
    return options.text;
  return readTextFile(options.textFile);
}

Status tokenize(const Options &options) {
  STRATA_ASSIGN_OR_RETURN(Vocabulary vocabulary, vocabularyOf(options.file));
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                          Tokenizer::create(std::move(vocabulary)));
  STRATA_ASSIGN_OR_RETURN(std::string text, textOf(options));
  EncodeOptions encode{.addBos = !options.noBos, .parseSpecial = options.special};
  STRATA_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer->encode(text, encode));

  if (options.json) {
    nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
    for (int32_t id : ids)
      pieces.push_back(tokenizer->piece(id, /*special=*/true));
    nlohmann::ordered_json result = {{"ids", ids}, {"pieces", pieces}};
    // A piece that ends inside a character is shown with U+FFFD.
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return Status::ok();
  }
  for (int32_t id : ids)
    fmt::print("{:>7}  {}\n", id,
               nlohmann::json(tokenizer->piece(id, /*special=*/true))
                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return Status::ok();
}

} // namespace

Action addTokenize(CLI::App &command) {
  auto options = std::make_shared<Options>();
  command.add_option("FILE", options->file, "A plan, a GGUF file or a tokenizer.json")->required();
  auto *source = command.add_option_group("text");
  source->add_option("--text", options->text, "The text itself");
  options->textFileOption =
      source->add_option("--text-file", options->textFile, "A file that holds the text");
  source->require_option(1);
  command.add_flag("--no-bos", options->noBos, "Leave out the token that begins a sequence");
  command.add_flag("--special", options->special,
                   "Control tokens written in the text become their ids");
  command.add_flag("--json", options->json, "Print {\"ids\":[...],\"pieces\":[...]}");
  return [options] { return tokenize(*options); };
}

} // namespace strata::run
