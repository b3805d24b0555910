// strata-compile: a checkpoint or a text of the dialect to a plan. Arguments are read here; what is
// done stands in codegen/Compile.h.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "codegen/Compile.h"
#include "tools/compile/OptionValues.h"
#include "tools/run/ExitCode.h"
#include "tools/run/FileFault.h"
#include "tools/run/ProgressBar.h"

using namespace strata;
using namespace strata::compile;

namespace {

/// Options as people write them.
struct Words {
  std::string devices = "cpu", split = "auto", batchTokens = "128";
  std::optional<std::string> buckets;
  std::optional<std::string> cache, keys, values, weights, emit;
  std::string activations = "f32", explain;
};

/// What only an import reads: a text has its own answers to these.
constexpr const char *importGroup = "What is to be served";

CLI::Option *addImportOptions(CLI::App &app, Words &words, CompileOptions &options) {
  ImportOptions &import = options.import;
  auto add = [&](const char *flag, auto &value, const char *help) {
    return app.add_option(flag, value, help)->group(importGroup);
  };
  add("--devices", words.devices,
      "cpu[:ISA][:SIZE] or cuda:ARCH[:SIZE], one a stage, separated by commas");
  add("--max-seqs", import.maxSequences, "Sequences at once [4]")->check(CLI::Range(1, 4096));
  add("--max-context", import.maxContext, "Tokens of one sequence [the model's, at most 8192]")
      ->check(CLI::Range(1, 1 << 30));
  CLI::Option *batchTokens = add("--max-batch-tokens", words.batchTokens,
                                 "Rows of the largest bucket, or `auto`: as many as fit [128]");
  add("--split", words.split, "Decoder layers a stage, such as 24,24 [auto]");
  add("--buckets", words.buckets, "Shapes of a forward, such as r1s1,r8s4,r128s1");
  add("--kv", words.cache, "Type of cached keys and values: f16, bf16, f32 [by the weights]");
  add("--kv-k", words.keys, "Of keys alone");
  add("--kv-v", words.values, "Of values alone");
  add("--activations", words.activations, "Type of activations in matrix products: f32");
  add("--block-tokens", import.blockTokens, "Tokens of a block of the cache [16]")
      ->check(CLI::Range(1, 4096));
  add("--weight-type", import.weightType, "Of matrices, where MODEL has no weights");
  app.add_option("--ignore-config", import.ignoredKeys, "Accept a configuration key unread")
      ->group(importGroup)
      ->expected(1)
      ->take_all();
  add("--name", import.name, "Name of the model [the checkpoint's]");
  return batchTokens;
}

/// Refuses options that a text answers itself.
Status checkTextOptions(const CLI::App &app, const std::string &model) {
  for (const CLI::Option *option : app.get_options())
    if (option->get_group() == importGroup && option->count() > 0)
      return makeError(StatusCode::InvalidArgument,
                       "{} has no effect on '{}': what is to be served stands in the text",
                       option->get_name(), model);
  return Status::ok();
}

Status readWords(const Words &words, bool batchTokensGiven, CompileOptions &options) {
  ImportOptions &import = options.import;
  STRATA_ASSIGN_OR_RETURN(import.devices, parseDevices(words.devices));
  STRATA_ASSIGN_OR_RETURN(import.split, parseSplit(words.split));
  options.largestBatch = words.batchTokens == "auto";
  if (options.largestBatch && words.buckets)
    return makeError(
        StatusCode::InvalidArgument,
        "--max-batch-tokens auto looks for the largest bucket, but --buckets names it; "
        "leave one out");
  if (!options.largestBatch) {
    STRATA_ASSIGN_OR_RETURN(import.maxRows, parseBatchTokens(words.batchTokens));
  }
  if (words.buckets) {
    STRATA_ASSIGN_OR_RETURN(import.buckets, parseBuckets(*words.buckets, import.maxSequences));
    int64_t rows = import.buckets[import.buckets.size() - 2]; // they are sorted
    if (batchTokensGiven && rows != import.maxRows)
      return makeError(StatusCode::InvalidArgument,
                       "--max-batch-tokens is {}, but the largest of --buckets has {} rows",
                       import.maxRows, rows);
    import.maxRows = rows;
  }
  for (auto [flag, type] : {std::pair("--kv", &words.cache), std::pair("--kv-k", &words.keys),
                            std::pair("--kv-v", &words.values)})
    if (*type)
      STRATA_RETURN_IF_ERROR(checkCacheType(flag, **type));
  import.keyType = words.keys.value_or(words.cache.value_or(""));
  import.valueType = words.values.value_or(words.cache.value_or(""));
  STRATA_RETURN_IF_ERROR(checkModelName(import.name));
  STRATA_RETURN_IF_ERROR(checkActivations(words.activations));
  return checkWeightType(import.weightType);
}

using Levels = std::map<std::string, Emit>;

/// What is written, and where weights go.
Status readOutput(const Words &words, const Levels &levels, CompileOptions &options) {
  if (words.emit && !options.emitAfter.empty())
    return makeError(StatusCode::InvalidArgument,
                     "--emit {} and --emit-after {} each name the text to print; leave one out",
                     *words.emit, options.emitAfter);
  options.emit = words.emit ? levels.at(*words.emit) : Emit::Plan;
  options.weights = words.weights.value_or(options.weights);
  bool writesText = options.emit != Emit::Plan || !options.emitAfter.empty();
  if (writesText && words.weights && *words.weights != "none")
    return makeError(StatusCode::InvalidArgument,
                     "--weights {} says where a plan's weights go, but --emit{} prints a text, "
                     "which has none; leave one out",
                     *words.weights, words.emit ? "" : "-after");
  return Status::ok();
}

int fail(run::ExitCode code, const std::string &message) {
  fmt::print(stderr, "strata-compile: error: {}\n", message);
  return static_cast<int>(code);
}

} // namespace

int main(int argc, char **argv) {
  run::endOnFileFault();
  CLI::App app{"Compiles a language model into a plan that strata-run runs.", "strata-compile"};
  app.set_version_flag("--version", "strata-compile " STRATA_VERSION);
  app.footer("Exit codes are listed in docs/operations.md.");
  const Levels levels = {{"model", Emit::Model},
                         {"placed", Emit::Placed},
                         {"planned", Emit::Planned},
                         {"plan", Emit::Plan}};
  Words words;
  CompileOptions options;
  app.add_option("MODEL", options.model,
                 "A GGUF file, a Hugging Face folder, a config.json or a .mlir text")
      ->required();
  app.add_option("-o,--output", options.output, "The plan, or the text that --emit asks for");
  app.add_option("--checkpoint", options.checkpoint, "Where the tensors of a .mlir text are");
  app.add_option("--weights", words.weights,
                 "inside the plan, none, or the folder of a store [inside]");
  app.add_option("--threads", options.threads, "Threads that compile [all cores]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--emit", words.emit, "Print a level's text: model, placed, planned [plan]")
      ->check(CLI::IsMember(levels));
  app.add_option("--emit-after", options.emitAfter, "Print the text after this pass");
  const std::map<std::string, Explain> forms = {
      {"text", Explain::Text}, {"json", Explain::Json}, {"html", Explain::Html}};
  app.add_flag("--explain{text}", words.explain,
               "Print the plan's memory table: text, json, or html, which draws the arenas")
      ->check(CLI::IsMember(forms));
  app.add_flag("--dry-run", options.dryRun,
               "Read no weights and write nothing: print the table of the plan that would be "
               "written");
  app.add_option("--remarks-filter", options.remarksFilter,
                 "Print remarks whose category matches, such as 'strata-.*'");
  CLI::Option *batchTokens = addImportOptions(app, words, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) { // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return fail(run::ExitCode::Usage, error.what());
  }
  if (Status status = readOutput(words, levels, options); !status.isOk())
    return fail(run::exitCodeOf(status.code()), status.toString());
  if (!words.explain.empty() || options.dryRun)
    options.explain = words.explain.empty() ? Explain::Text : forms.at(words.explain);

  std::unique_ptr<run::ProgressBar> bar;
  options.note = [](const std::string &note) { fmt::print(stderr, "strata-compile: {}\n", note); };
  options.progress = [&](uint64_t bytes, uint64_t totalBytes) {
    if (!bar)
      bar = std::make_unique<run::ProgressBar>("packing weights", totalBytes);
    bar->update(bytes);
  };
  Status status = isModelText(options.model) ? checkTextOptions(app, options.model)
                                             : readWords(words, batchTokens->count() > 0, options);
  if (status.isOk())
    status = compileModel(options);
  bar.reset();
  if (!status.isOk())
    return fail(run::exitCodeOf(status.code()), status.toString());
  return static_cast<int>(run::ExitCode::Success);
}
