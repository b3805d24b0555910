// Stop strings over text that comes in pieces: what could still become one is held back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"

namespace strata {

/// The stop string that is complete first ends the text, the longest where several are complete at
/// the same byte; it and all behind it are left out. So the result does not depend on how the text
/// was cut. O(stops) a byte, whatever their length.
class StopFilter {
public:
  /// Errors: InvalidArgument (a stop string that is empty, longer than 1024 bytes or not UTF-8, or
  /// more than 64 of them). None at all is fine: then nothing is held back.
  static Result<StopFilter> create(std::vector<std::string> stops);

  /// Takes whole characters and gives the text that became certain, in whole characters.
  std::string push(std::string_view text);

  /// The text has ended: what was held back, unless a stop string came.
  std::string finish();

  bool stopped() const { return stopped_; }

private:
  struct Stop {
    std::string text;
    std::vector<size_t>
        borders;        ///< [n]: longest beginning of the first n bytes that also ends them.
    size_t matched = 0; ///< Longest beginning that the text so far ends with.

    void advance(char byte);
    bool isComplete() const { return matched == text.size(); }
  };

  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
};

} // namespace strata
