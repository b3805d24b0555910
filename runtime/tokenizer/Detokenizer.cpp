#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {
constexpr std::string_view replacement = "\uFFFD";
} // namespace

Detokenizer::Detokenizer(const Tokenizer &tokenizer, bool special, bool atStart)
    : tokenizer_(&tokenizer), special_(special),
      dropSpace_(atStart && tokenizer.vocabulary().addSpacePrefix &&
                 tokenizer.vocabulary().model != VocabularyModel::ByteLevelBpe) {}

std::string Detokenizer::push(int32_t id) {
  std::string piece = tokenizer_->piece(id, special_);
  std::string_view bytes = piece;
  if (dropSpace_ && !bytes.empty()) {
    dropSpace_ = false;
    if (bytes.front() == ' ')
      bytes.remove_prefix(1);
  }
  pending_ += bytes;

  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    Utf8Sequence sequence = readUtf8(rest);
    if (sequence.kind == Utf8Sequence::Incomplete)
      break;
    text +=
        sequence.kind == Utf8Sequence::Character ? rest.substr(0, sequence.length) : replacement;
    rest.remove_prefix(sequence.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return text;
}

std::string Detokenizer::finish() {
  std::string text(pending_.empty() ? std::string_view() : replacement);
  pending_.clear();
  return text;
}

} // namespace strata
