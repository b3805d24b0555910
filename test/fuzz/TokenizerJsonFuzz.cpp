#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/TokenizerJson.h"
#include "test/fuzz/UseVocabulary.h"

using namespace strata;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto json = parseJson({reinterpret_cast<const char *>(data), size});
  if (!json.isOk() || !json->is_object())
    return 0;
  TokenizerDocuments documents;
  documents.tokenizer = *std::move(json);
  // A file may bring its tokenizer_config.json along, as a member that no tokenizer.json has.
  if (const auto *config = findMember(documents.tokenizer, "config"); config && config->is_object())
    documents.tokenizerConfig = *config;
  if (auto vocabulary = readTokenizerJson(documents); vocabulary.isOk())
    test::useVocabulary(*std::move(vocabulary));
  return 0;
}
