#include "runtime/tokenizer/StopFilter.h"

#include <algorithm>
#include <utility>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

bool isUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    Utf8Sequence sequence = readUtf8(bytes);
    if (sequence.kind != Utf8Sequence::Character)
      return false;
    bytes.remove_prefix(sequence.length);
  }
  return true;
}

} // namespace

Result<StopFilter> StopFilter::create(std::vector<std::string> stops) {
  constexpr size_t mostStops = 64, mostBytes = 1024;
  if (stops.size() > mostStops)
    return makeError(StatusCode::InvalidArgument, "{} stop strings are given; {} are allowed",
                     stops.size(), mostStops);
  StopFilter filter;
  for (std::string &text : stops) {
    if (text.empty() || text.size() > mostBytes)
      return makeError(StatusCode::InvalidArgument,
                       "a stop string has {} bytes; allowed is 1 to {}", text.size(), mostBytes);
    if (!isUtf8(text))
      return makeError(StatusCode::InvalidArgument,
                       "a stop string is not valid UTF-8 and could never be found in text");
    // The table of Knuth, Morris and Pratt.
    std::vector<size_t> borders(text.size() + 1);
    for (size_t n = 2, border = 0; n <= text.size(); ++n) {
      while (border > 0 && text[border] != text[n - 1])
        border = borders[border];
      border += text[border] == text[n - 1];
      borders[n] = border;
    }
    filter.stops_.push_back({std::move(text), std::move(borders)});
  }
  return filter;
}

void StopFilter::Stop::advance(char byte) {
  while (matched > 0 && text[matched] != byte)
    matched = borders[matched];
  matched += text[matched] == byte;
}

std::string StopFilter::push(std::string_view text) {
  std::string certain;
  for (size_t i = 0; i < text.size() && !stopped_; ++i) {
    held_ += text[i];
    size_t needed = 0, complete = 0;
    for (Stop &stop : stops_) {
      stop.advance(text[i]);
      needed = std::max(needed, stop.matched);
      if (stop.isComplete())
        complete = std::max(complete, stop.matched);
    }
    stopped_ = complete > 0;
    size_t kept = stopped_ ? complete : needed;
    certain.append(held_, 0, held_.size() - kept);
    held_.erase(0, held_.size() - kept);
  }
  if (stopped_)
    held_.clear();
  return certain;
}

std::string StopFilter::finish() { return std::exchange(held_, {}); }

} // namespace strata
