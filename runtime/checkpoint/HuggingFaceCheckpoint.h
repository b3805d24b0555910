// A Hugging Face folder, or a bare config.json, as a Checkpoint.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"

namespace strata {

/// `folder` holds config.json and model.safetensors, or the shards that
/// model.safetensors.index.json names.
Result<std::unique_ptr<Checkpoint>> openHuggingFaceCheckpoint(const std::string &folder);

/// A configuration without weights or vocabulary.
Result<std::unique_ptr<Checkpoint>> openConfigCheckpoint(const std::string &file);

} // namespace strata
