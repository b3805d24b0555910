#include "passes/planner/Planner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "passes/planner/Component.h"
#include "passes/planner/Heuristics.h"
#include "passes/planner/Minimise.h"

namespace strata::planner {

namespace {

constexpr int kMaximumDepth = 64; ///< Of parts within parts; keeps the decomposition near-linear.

/// All components of one form, and where each lies in the problem.
struct Group {
  Component component;
  struct Instance {
    Bytes base;
    std::vector<uint32_t> ids; ///< In the order of the items.
  };
  std::vector<Instance> instances;
  Bytes base = 0; ///< The highest of the instances.
  Attempt attempt;

  Bytes bytes(Bytes units) const { return base + units * component.unit; }
  Bytes peak() const { return bytes(attempt.peak); }
  Bytes lowerBound() const { return bytes(attempt.lowerBound); }
};

/// Cuts a problem into components. Buffers never meet across a time at which none lives; and a
/// buffer that overlaps all others of its part can lie below them (what lay below it moves up by
/// its size), which leaves a smaller part that may fall apart again.
class Decomposition {
public:
  Decomposition(const std::vector<Buffer> &buffers, std::vector<Bytes> &offsets)
      : buffers_(buffers), offsets_(offsets) {}

  void run(std::vector<uint32_t> ids) {
    std::ranges::sort(ids, {}, [&](uint32_t id) { return std::pair(buffers_[id].lower, id); });
    work_.push_back({std::move(ids), 0, 0});
    while (!work_.empty()) {
      Part part = std::move(work_.back());
      work_.pop_back();
      cut(part);
    }
  }

  std::vector<Group> takeGroups() {
    std::vector<Group> groups;
    for (auto &[form, group] : groups_)
      groups.push_back(std::move(group));
    return groups;
  }
  Bytes peak() const { return peak_; } ///< Of the buffers that lie below components.

private:
  struct Part {
    std::vector<uint32_t> ids; ///< By lower.
    Bytes base;
    int depth;
  };

  void cut(const Part &part) {
    std::vector<uint32_t> connected;
    Time end = 0;
    for (uint32_t id : part.ids) {
      if (!connected.empty() && buffers_[id].lower >= end) {
        finish(std::move(connected), part);
        connected.clear();
      }
      end = connected.empty() ? buffers_[id].upper : std::max(end, buffers_[id].upper);
      connected.push_back(id);
    }
    if (!connected.empty())
      finish(std::move(connected), part);
  }

  void finish(std::vector<uint32_t> ids, const Part &part) {
    Time firstEnd = std::numeric_limits<Time>::max();
    for (uint32_t id : ids)
      firstEnd = std::min(firstEnd, buffers_[id].upper);
    Time lastStart = buffers_[ids.back()].lower;
    auto meetsAll = [&](uint32_t id) {
      return buffers_[id].lower < firstEnd && buffers_[id].upper > lastStart;
    };
    auto rest = std::stable_partition(ids.begin(), ids.end(), meetsAll);
    if (rest == ids.begin() || part.depth == kMaximumDepth) {
      addComponent(std::move(ids), part.base);
      return;
    }
    std::ranges::stable_sort(ids.begin(), rest, std::greater(), [&](uint32_t id) {
      return uint64_t(buffers_[id].upper) - uint64_t(buffers_[id].lower);
    });
    Bytes base = part.base;
    for (auto id = ids.begin(); id != rest; ++id) {
      offsets_[*id] = base;
      base += buffers_[*id].size;
    }
    peak_ = std::max(peak_, base);
    work_.push_back({{rest, ids.end()}, base, part.depth + 1});
  }

  void addComponent(std::vector<uint32_t> ids, Bytes base) {
    // stable_partition at the depth limit may have moved ids; a component sorts them anyway.
    Component component = makeComponent(buffers_, ids);
    Group &group = groups_[{component.unit, component.items}];
    group.component = std::move(component);
    group.base = std::max(group.base, base);
    group.instances.push_back({base, std::move(ids)});
  }

  const std::vector<Buffer> &buffers_;
  std::vector<Bytes> &offsets_;
  std::vector<Part> work_;
  std::map<std::pair<Bytes, std::vector<Item>>, Group> groups_;
  Bytes peak_ = 0;
};

/// Lowers the peaks to `goal` where it can, the highest first. What stays above raises the goal for
/// the others: nothing is gained by lowering them further.
void minimiseGroups(std::vector<Group> &groups, Bytes goal, const Problem &problem,
                    uint64_t &nodes) {
  std::vector<bool> finished(groups.size(), false);
  while (!groups.empty()) {
    size_t highest = 0;
    for (size_t k = 1; k < groups.size(); ++k)
      if (groups[k].peak() > groups[highest].peak())
        highest = k;
    Group &group = groups[highest];
    if (finished[highest] || group.peak() <= goal)
      return;
    finished[highest] = true;
    MinimiseOptions options;
    options.goal = (goal - group.base) / group.component.unit;
    options.decideOnly = problem.capacity.has_value();
    options.nodeLimit = problem.nodeLimit - nodes;
    nodes += minimise(group.component, options, group.attempt);
    goal = std::max(goal, group.peak());
  }
}

} // namespace

Solution solve(const Problem &problem) {
  const std::vector<Buffer> &buffers = problem.buffers;
  Solution solution;
  solution.offsets.assign(buffers.size(), 0);
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < buffers.size(); ++id)
    if (buffers[id].size > 0 && buffers[id].lower < buffers[id].upper)
      ids.push_back(id);

  Decomposition decomposition(buffers, solution.offsets);
  decomposition.run(std::move(ids));
  std::vector<Group> groups = decomposition.takeGroups();
  solution.lowerBound = decomposition.peak();
  for (Group &group : groups) {
    group.attempt = firstAttempt(group.component);
    solution.lowerBound = std::max(solution.lowerBound, group.lowerBound());
  }

  // No search can fit what lives at once into less.
  if (!problem.capacity || *problem.capacity >= solution.lowerBound)
    minimiseGroups(groups, problem.capacity.value_or(solution.lowerBound), problem, solution.nodes);

  solution.peak = decomposition.peak();
  for (const Group &group : groups) {
    solution.peak = std::max(solution.peak, group.peak());
    solution.lowerBound = std::max(solution.lowerBound, group.lowerBound());
    for (const Group::Instance &instance : group.instances)
      for (size_t k = 0; k < instance.ids.size(); ++k)
        solution.offsets[instance.ids[k]] =
            instance.base + group.attempt.offsets[k] * group.component.unit;
  }
  solution.proven = solution.peak == solution.lowerBound;
  return solution;
}

} // namespace strata::planner
