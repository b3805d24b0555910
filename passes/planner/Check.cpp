// What the planner's answers are measured against; shares nothing with the solver.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "passes/planner/Planner.h"

namespace strata::planner {

namespace {

bool isEmpty(const Buffer &buffer) { return buffer.lower >= buffer.upper || buffer.size <= 0; }

/// A start or an end. Half-open lifetimes: at one time, ends come first.
struct Event {
  Time time;
  bool starts;
  size_t buffer;
  auto operator<=>(const Event &) const = default;
};

std::vector<Event> eventsInOrder(const std::vector<Buffer> &buffers) {
  std::vector<Event> events;
  events.reserve(2 * buffers.size());
  for (size_t k = 0; k < buffers.size(); ++k)
    if (!isEmpty(buffers[k])) {
      events.push_back({buffers[k].lower, true, k});
      events.push_back({buffers[k].upper, false, k});
    }
  std::ranges::sort(events);
  return events;
}

} // namespace

Bytes maximumLiveBytes(const std::vector<Buffer> &buffers) {
  Bytes live = 0, most = 0;
  for (const Event &event : eventsInOrder(buffers)) {
    live += event.starts ? buffers[event.buffer].size : -buffers[event.buffer].size;
    most = std::max(most, live);
  }
  return most;
}

std::optional<Conflict> check(const std::vector<Buffer> &buffers,
                              const std::vector<Bytes> &offsets) {
  if (offsets.size() != buffers.size()) {
    size_t missing = std::min(offsets.size(), buffers.size());
    return Conflict{missing, missing};
  }
  for (size_t k = 0; k < buffers.size(); ++k) {
    Bytes end;
    if (offsets[k] < 0 || __builtin_add_overflow(offsets[k], buffers[k].size, &end))
      return Conflict{k, k};
  }

  // While no two live buffers overlap, only the two next to a new one can be in its way.
  std::map<Bytes, size_t> live;
  for (const Event &event : eventsInOrder(buffers)) {
    size_t buffer = event.buffer;
    if (!event.starts) {
      live.erase(offsets[buffer]);
      continue;
    }
    auto above = live.lower_bound(offsets[buffer]);
    if (above != live.end() && above->first < offsets[buffer] + buffers[buffer].size)
      return Conflict{std::min(above->second, buffer), std::max(above->second, buffer)};
    if (above != live.begin()) {
      auto below = std::prev(above);
      if (below->first + buffers[below->second].size > offsets[buffer])
        return Conflict{std::min(below->second, buffer), std::max(below->second, buffer)};
    }
    live.emplace_hint(above, offsets[buffer], buffer);
  }
  return std::nullopt;
}

} // namespace strata::planner
