// Reading a verified FlatBuffer where absent vectors and strings, which FlatBuffers leaves null,
// count as empty.
#pragma once

#include <cstdint>
#include <string_view>

#include <flatbuffers/flatbuffers.h>

namespace strata {

template <class T> uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

/// Whether elements of 8 bytes can be read in place; the FlatBuffers verifier only looks at the
/// length in front of them.
template <class T> bool isAligned(const flatbuffers::Vector<T> *vector) {
  return !vector || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

inline std::string_view text(const flatbuffers::String *string) {
  return string ? std::string_view(string->c_str(), string->size()) : std::string_view();
}

} // namespace strata
