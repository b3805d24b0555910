// A Vocabulary in and out of a plan. The lists of strings are stored as one run of bytes and the
// end of each, which costs four bytes a token instead of a FlatBuffers string's twelve.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "runtime/plan/Plan_generated.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

flatbuffers::Offset<fb::Vocabulary> encodeVocabulary(flatbuffers::FlatBufferBuilder &builder,
                                                     const Vocabulary &vocabulary);

/// `stored` has passed verifyPlan().
Vocabulary decodeVocabulary(const fb::Vocabulary &stored);

} // namespace strata
