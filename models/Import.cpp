#include "models/Import.h"

#include <fmt/ranges.h>

#include "models/Family.h"
#include "runtime/checkpoint/Text.h"

using namespace mlir;

namespace strata {
namespace {

/// Says what a file is, who made it and how: nothing that a model computes.
void ignoreFileInformation(CheckpointFormat format, ConfigReader &config) {
  if (format == CheckpointFormat::Gguf)
    config.ignore({"general.*", "quantize.*"});
  else
    config.ignore({"architectures", "torch_dtype", "dtype", "transformers_version",
                   "transformers.js_config", "bos_token_id", "eos_token_id", "pad_token_id"});
}

} // namespace

Result<ImportedModel> importModel(MLIRContext &context, const Checkpoint &checkpoint,
                                  const ImportOptions &options) {
  context.getOrLoadDialect<ir::StrataDialect>();
  ConfigReader config(checkpoint.config(), options.ignoredKeys);
  ignoreFileInformation(checkpoint.format(), config);
  std::string key =
      checkpoint.format() == CheckpointFormat::Gguf ? "general.architecture" : "model_type";
  std::string name = config.string(key);
  STRATA_RETURN_IF_ERROR(config.status());
  const Family *family = findFamily(checkpoint.format(), name);
  if (!family)
    return makeError(StatusCode::Unimplemented, "{} '{}' has no definition here; known: {}", key,
                     printable(name), fmt::join(familyNames(checkpoint.format()), ", "));

  ModelBuilder builder(context, checkpoint, options);
  STRATA_RETURN_IF_ERROR(family->build(name, checkpoint, config, builder));
  // Again, so that a family that forgets to look cannot let a key pass.
  STRATA_RETURN_IF_ERROR(config.finish());

  ImportedModel imported;
  imported.notes.assign(checkpoint.notes().begin(), checkpoint.notes().end());
  imported.notes.insert(imported.notes.end(), builder.notes().begin(), builder.notes().end());
  STRATA_ASSIGN_OR_RETURN(std::optional<Vocabulary> vocabulary, checkpoint.vocabulary());
  std::vector<int32_t> ends;
  if (vocabulary) {
    ends = vocabulary->endOfGeneration;
  } else {
    STRATA_ASSIGN_OR_RETURN(ends, checkpoint.configuredEndOfGeneration());
    imported.notes.push_back(fmt::format(
        "'{}' holds no tokenizer: the plan will take and give ids only", checkpoint.path()));
  }
  builder.setEndOfGeneration(ends);
  STRATA_ASSIGN_OR_RETURN(imported.module, builder.finish());
  return imported;
}

} // namespace strata
