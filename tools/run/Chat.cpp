// strata-run chat: a conversation, one line of input a message.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/Strata.h"
#include "runtime/chat/ChatPrompt.h"
#include "runtime/checkpoint/ChatTemplateFile.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"
#include "tools/run/Completion.h"
#include "tools/run/EngineFlags.h"
#include "tools/run/Interrupt.h"
#include "tools/run/LineReader.h"
#include "tools/run/SamplingFlags.h"

namespace strata::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view help = "/reset  begins a new conversation\n"
                                  "/exit   ends the program, as Ctrl-D does\n"
                                  "/help   prints this\n"
                                  "//...   sends a message that begins with /\n"
                                  "Ctrl-C  ends a reply\n";

struct Options {
  std::string plan;
  std::string system;
  std::string templateFile;
  CLI::Option *systemOption = nullptr;
  CLI::Option *templateOption = nullptr;
  uint32_t maxTokens = 1024;
  SamplingFlags sampling;
  EngineFlags engine;
  bool json = false;
};

/// The template that turns messages into a prompt: the file's, else the plan's.
Result<chat::ChatPrompt> openTemplate(const Options &options, const Engine &engine) {
  if (!engine.tokenizer())
    return makeError(StatusCode::InvalidArgument,
                     "the plan has no vocabulary, since its checkpoint had none: messages cannot "
                     "become ids");
  const Vocabulary &vocabulary = engine.tokenizer()->vocabulary();
  if (options.templateOption->count() > 0) {
    STRATA_ASSIGN_OR_RETURN(std::string source, readChatTemplateFile(options.templateFile));
    return chat::ChatPrompt::create(vocabulary, source);
  }
  if (vocabulary.chatTemplate.empty())
    return makeError(StatusCode::InvalidArgument,
                     "the model has no chat template, and none is assumed: give the one that it "
                     "was trained with as --chat-template FILE (Jinja source), or continue plain "
                     "text with strata-run generate");
  return chat::ChatPrompt::create(vocabulary);
}

class Conversation {
public:
  Conversation(const Options &options, Engine &engine, chat::ChatPrompt prompt)
      : options_(options), engine_(engine), prompt_(std::move(prompt)) {
    reset();
  }

  void reset() {
    messages_ = Json::array();
    if (options_.systemOption->count() > 0)
      messages_.push_back({{"role", "system"}, {"content", options_.system}});
  }

  /// The model's reply to `text`, printed as it comes; on an error, the message was not said.
  Status say(const std::string &text, const InterruptScope &interrupt) {
    messages_.push_back({{"role", "user"}, {"content", text}});
    Status status = reply(interrupt);
    if (!status.isOk())
      messages_.erase(messages_.size() - 1);
    return status;
  }

private:
  Status reply(const InterruptScope &interrupt) {
    STRATA_ASSIGN_OR_RETURN(std::vector<chat::Span> spans, prompt_.render({.messages = messages_}));
    STRATA_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            chat::encodeSpans(*engine_.tokenizer(), spans));
    uint64_t context = engine_.plan().plan().max_context();
    if (ids.size() >= context)
      return makeError(StatusCode::InvalidArgument,
                       "the conversation has {} tokens with this message and the plan's context "
                       "holds {}, which leaves no room for a reply; begin a new one (/reset), or "
                       "compile with a larger --max-context",
                       ids.size(), context);
    Request request{.prompt = ids, .maxTokens = options_.maxTokens};
    STRATA_RETURN_IF_ERROR(
        options_.sampling.apply(engine_.plan().plan().vocabulary_size(), request));
    STRATA_ASSIGN_OR_RETURN(StopFilter stops, options_.sampling.stopFilter(engine_.tokenizer()));
    STRATA_ASSIGN_OR_RETURN(
        Completion completion,
        complete(engine_, std::move(request), std::move(stops), interrupt, !options_.json));
    messages_.push_back({{"role", "assistant"}, {"content", completion.text}});
    report(completion, ids);
    return Status::ok();
  }

  void report(const Completion &completion, const std::vector<int32_t> &prompt) const {
    if (options_.json) {
      Json line = {{"prompt_ids", prompt},
                   {"ids", completion.ids},
                   {"content", completion.text},
                   {"finish_reason", completion.finishReason}};
      fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
      std::fflush(stdout);
      return;
    }
    std::fputc('\n', stdout);
    std::fflush(stdout);
    std::string_view reason = completion.finishReason;
    if (reason == "interrupted")
      fmt::print(stderr, "[interrupted]\n");
    else if (reason == "length" && completion.ids.size() >= options_.maxTokens)
      fmt::print(stderr, "[cut after the {} tokens of --max-tokens]\n", options_.maxTokens);
    else if (reason == "length")
      fmt::print(stderr,
                 "[cut: the conversation's {} tokens and the reply's {} fill the plan's context "
                 "of {}; /reset begins a new one]\n",
                 prompt.size(), completion.ids.size(), engine_.plan().plan().max_context());
  }

  const Options &options_;
  Engine &engine_;
  chat::ChatPrompt prompt_;
  Json messages_;
};

/// What one line asks for. Errors on a terminal are printed by the caller, and the conversation
/// goes on.
Status handle(const std::string &line, Conversation &conversation, const InterruptScope &interrupt,
              bool &ends) {
  if (line.find_first_not_of(" \t") == std::string::npos)
    return Status::ok();
  if (line.front() != '/')
    return conversation.say(line, interrupt);
  if (line.starts_with("//"))
    return conversation.say(line.substr(1), interrupt);
  if (line == "/exit")
    ends = true;
  else if (line == "/reset")
    conversation.reset();
  else if (line == "/help")
    fmt::print("{}", help);
  else
    return makeError(StatusCode::InvalidArgument,
                     "'{}' is no command (/help lists them); // sends a message that begins with /",
                     line);
  return Status::ok();
}

Status chat(const Options &options) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(options.plan));
  EngineOptions engineOptions{.sequences = 1, .kvTokens = plan->plan().max_context()};
  options.engine.apply(engineOptions);
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::create(std::move(plan), engineOptions));
  STRATA_ASSIGN_OR_RETURN(chat::ChatPrompt prompt, openTemplate(options, *engine));
  Conversation conversation(options, *engine, std::move(prompt));

  InterruptScope interrupt; // until here a signal ends the process: nothing is lost by it
  LineReader reader;
  bool talks = reader.onTerminal() && !options.json;
  if (talks)
    fmt::print("{}", help);
  for (bool ends = false; !ends;) {
    if (talks)
      fmt::print("> ");
    std::fflush(stdout);
    STRATA_ASSIGN_OR_RETURN(std::optional<std::string> line, reader.next(interrupt));
    if (interrupt.requested())
      return Status(StatusCode::Cancelled, "");
    if (!line)
      break;
    if (line->ends_with('\r'))
      line->pop_back();
    Status status = handle(*line, conversation, interrupt, ends);
    if (interrupt.terminates())
      return Status(StatusCode::Cancelled, "");
    if (interrupt.requested())
      interrupt.rearm(); // it ended the reply
    // What a person can answer; a script is to notice.
    if (!status.isOk() && talks && status.code() == StatusCode::InvalidArgument)
      fmt::print(stderr, "error: {}\n", status.toString());
    else
      STRATA_RETURN_IF_ERROR(std::move(status));
  }
  if (talks)
    std::fputc('\n', stdout);
  return Status::ok();
}

} // namespace

Action addChat(CLI::App &command) {
  auto options = std::make_shared<Options>();
  command.add_option("PLAN", options->plan, "A plan file")->required();
  options->systemOption =
      command.add_option("--system", options->system, "What the system message says");
  options->templateOption =
      command
          .add_option("--chat-template", options->templateFile,
                      "A file of Jinja source, instead of the model's own chat template")
          ->type_name("FILE");
  command.add_option("--max-tokens", options->maxTokens, "Most tokens of one reply")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  options->sampling.addTo(command);
  options->engine.addTo(command);
  command.add_flag("--json", options->json, "Print one JSON object a reply");
  return [options] { return chat(*options); };
}

} // namespace strata::run
