#include "runtime/checkpoint/ChatTemplateFile.h"

#include <string_view>

#include "runtime/base/MappedFile.h"
#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/LfsPointer.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

/// The template of `document`, a file of this name; empty where it has none.
Result<std::string> templateIn(const nlohmann::ordered_json &document, std::string_view file) {
  const nlohmann::ordered_json *value = findMember(document, "chat_template");
  if (value && value->is_array()) {
    const nlohmann::ordered_json *chosen = nullptr;
    for (const nlohmann::ordered_json &named : *value) {
      const nlohmann::ordered_json *name = findMember(named, "name");
      if (name && *name == "default") // the one for ordinary chat
        chosen = findMember(named, "template");
    }
    value = chosen;
  }
  if (!value)
    return std::string();
  if (!value->is_string())
    return makeError(StatusCode::InvalidData, "{}: 'chat_template' is {}; it must be a string",
                     file, jsonKind(*value));
  return value->get<std::string>();
}

} // namespace

Result<std::string> readChatTemplateFile(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  STRATA_RETURN_IF_ERROR(refuseLfsPointer(*file));
  std::string text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  if (!isUtf8(text))
    return makeError(StatusCode::InvalidData, "'{}' is not UTF-8", path);
  return text;
}

Result<std::string> chooseChatTemplate(const TokenizerDocuments &documents) {
  if (documents.chatTemplate)
    return *documents.chatTemplate;
  STRATA_ASSIGN_OR_RETURN(std::string alone,
                          templateIn(documents.chatTemplateJson, "chat_template.json"));
  if (!alone.empty())
    return alone;
  return templateIn(documents.tokenizerConfig, "tokenizer_config.json");
}

} // namespace strata
