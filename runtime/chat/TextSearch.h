// Finding a text in another, in time that no choice of texts can make quadratic.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/chat/Text.h"

namespace strata::chat {

/// The first place at or behind `from`, or npos.
size_t findFirst(std::string_view text, std::string_view part, size_t from = 0);

/// The places of `part` (not empty), from the left without overlap, at most `limit`.
std::vector<size_t> findAll(std::string_view text, std::string_view part, size_t limit);
/// The same from the right: the last place comes first.
std::vector<size_t> findAllBackward(std::string_view text, std::string_view part, size_t limit);

/// `&`, `<`, `>`, `'` and `"` as HTML entities, with the origins that they had.
Text escapeHtml(const Text &text);

} // namespace strata::chat
