// What a server does with a vocabulary that was accepted.
#pragma once

#include <cstdlib>

#include "runtime/tokenizer/Tokenizer.h"

namespace strata::test {

/// Builds the tokenizer, encodes and decodes; aborts where an id is outside the vocabulary.
inline void useVocabulary(Vocabulary vocabulary) {
  size_t count = vocabulary.tokens.size();
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  if (!tokenizer.isOk())
    return;
  constexpr std::string_view text = "Hello,  w\u00F6rld 123!\n\t\xFF<s> ab\u2581";
  for (bool special : {false, true}) {
    auto ids = (*tokenizer)->encode(text, {.addBos = true, .parseSpecial = special});
    if (!ids.isOk())
      continue;
    Detokenizer detokenizer(**tokenizer, special, true);
    for (int32_t id : *ids) {
      if (id < 0 || size_t(id) >= count)
        std::abort();
      detokenizer.push(id);
    }
    detokenizer.finish();
  }
}

} // namespace strata::test
