// Every path through a system that is driven by choices.
#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace strata::test {

/// Walks a tree of choices depth first: each run replays a path and takes the first branch after
/// its end; advance() moves to the next path.
class Choices {
public:
  uint32_t choose(uint32_t count) {
    if (depth_ == path_.size())
      path_.push_back({0, count});
    EXPECT_EQ(path_[depth_].count, count) << "the system is not deterministic";
    return path_[depth_++].taken;
  }

  /// Whether the next choice is one that no run before has made.
  bool isNew() const { return depth_ == path_.size(); }

  bool advance() {
    depth_ = 0;
    while (!path_.empty() && path_.back().taken + 1 == path_.back().count)
      path_.pop_back();
    if (path_.empty())
      return false;
    ++path_.back().taken;
    return true;
  }

private:
  struct Choice {
    uint32_t taken;
    uint32_t count;
  };
  std::vector<Choice> path_;
  size_t depth_ = 0;
};

} // namespace strata::test
