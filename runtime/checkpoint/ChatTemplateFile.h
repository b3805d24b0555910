// Where a Hugging Face folder keeps its chat template.
#pragma once

#include <string>

#include "runtime/base/Status.h"
#include "runtime/checkpoint/TokenizerJson.h"

namespace strata {

/// A file of Jinja source. Errors: NotFound, InvalidData (no UTF-8, a Git LFS pointer).
Result<std::string> readChatTemplateFile(const std::string &path);

/// The template of chat_template.jinja, else of chat_template.json, else of tokenizer_config.json;
/// of several named ones `default`. Empty where there is none. Errors: InvalidData (no string).
Result<std::string> chooseChatTemplate(const TokenizerDocuments &documents);

} // namespace strata
