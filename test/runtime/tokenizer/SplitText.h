// A text cut by a list of patterns, as strings; an error is the only piece, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/PatternSplitter.h"

namespace strata {

using Pieces = std::vector<std::string>;

inline Pieces split(std::vector<std::string> patterns, std::string_view text) {
  auto splitter = PatternSplitter::create({"test", std::move(patterns)});
  if (!splitter.isOk())
    return {"error: " + splitter.status().toString()};
  auto found = splitter->split(text);
  if (!found.isOk())
    return {"error: " + found.status().toString()};
  Pieces pieces;
  for (auto [begin, end] : *found)
    pieces.emplace_back(text.substr(begin, end - begin));
  return pieces;
}

} // namespace strata
