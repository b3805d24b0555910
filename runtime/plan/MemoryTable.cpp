#include "runtime/plan/MemoryTable.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/CheckedMath.h"
#include "runtime/plan/LaunchMemory.h"
#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/WeightPlaces.h"

namespace strata {
namespace {

std::string readable(uint64_t bytes) {
  constexpr std::array<std::string_view, 4> units = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit)
    value /= 1024;
  return fmt::format("{:.2f} {}", value, units[unit]);
}

bool isCpu(const fb::Stage &stage) { return text(stage.target()).starts_with("cpu"); }

std::vector<const fb::Weight *> tablesOf(const fb::Stage &stage) {
  std::vector<const fb::Weight *> tables;
  for (uint32_t i = 0; i < count(stage.weights()); ++i)
    if (const fb::Weight *weight = stage.weights()->Get(i); weight->end_layer() > 0)
      tables.push_back(weight);
  return tables;
}

/// What one sequence of the longest context takes; a window holds less than its table is wide.
uint64_t bytesPerSequence(const fb::Plan &plan, const fb::StateGroup &group) {
  uint64_t blocks = group.kind() == fb::StateKind::Window
                        ? ceilDiv(group.promised_blocks(), plan.max_sequences())
                        : group.blocks_per_sequence();
  return blocks * group.block_bytes();
}

/// Bytes of arena that `more` rows would add to the largest body bucket.
uint64_t arenaOfMoreRows(const fb::Plan &plan, const fb::Stage &stage, uint32_t more) {
  struct Point {
    uint64_t rows = 0, peak = 0;
  } last, before;
  for (uint32_t i = 0; i < count(stage.forwards()); ++i) {
    const fb::Forward &forward = *stage.forwards()->Get(i);
    const fb::Bucket &bucket = *plan.buckets()->Get(forward.bucket());
    if (!bucket.body())
      continue;
    Point point{bucket.rows(), forward.peak()};
    if (point.rows > last.rows) {
      before = last;
      last = point;
    } else if (point.rows == last.rows) {
      last.peak = std::max(last.peak, point.peak);
    } else if (point.rows >= before.rows) {
      before = {point.rows, std::max(point.rows == before.rows ? before.peak : 0, point.peak)};
    }
  }
  if (last.rows <= before.rows || last.peak <= before.peak)
    return 0;
  return uint64_t(double(last.peak - before.peak) / double(last.rows - before.rows) * more);
}

/// Rows that a launch of `bucket` wastes at most: one fewer valid row and a smaller bucket would
/// do.
uint32_t mostPadding(const fb::Plan &plan, const fb::Bucket &bucket) {
  uint32_t smaller = 0;
  for (uint32_t i = 0; i < plan.buckets()->size(); ++i) {
    const fb::Bucket &other = *plan.buckets()->Get(i);
    bool replaces = bucket.body() ? other.body() : !other.body();
    if (replaces && other.rows() < bucket.rows())
      smaller = std::max(smaller, other.rows());
  }
  return bucket.rows() - smaller - 1;
}

/// Empty rows over the buckets' rows, for prompt remainders of 1 to chunk - 1 rows, each once.
double tailWaste(const fb::Plan &plan) {
  uint64_t valid = 0, run = 0;
  for (uint32_t i = 0; i < count(plan.tails()); ++i) {
    const fb::Tail &tail = *plan.tails()->Get(i);
    valid += tail.rows();
    for (uint32_t b = 0; b < count(tail.buckets()); ++b)
      run += plan.buckets()->Get(tail.buckets()->Get(b))->rows();
  }
  return run == 0 ? 0 : double(run - valid) / double(run);
}

uint64_t classTotal(const std::vector<MemoryEntry> &entries, uint32_t stage,
                    fb::MemoryClass memoryClass) {
  uint64_t total = 0;
  for (const MemoryEntry &entry : entries)
    if (entry.stage == stage && entry.memoryClass == memoryClass && entry.per.empty())
      total += entry.bytes;
  return total;
}

std::string lowered(const char *name) {
  std::string result = name;
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return result;
}

void printStage(std::string &out, const fb::Plan &plan, uint32_t index,
                const std::vector<MemoryEntry> &entries) {
  auto to = std::back_inserter(out);
  const fb::Stage &stage = *plan.stages()->Get(index);
  fmt::format_to(to, "\nstage {} on {}: layers {}..{}{}{}\n", text(stage.name()),
                 text(stage.target()), stage.first_layer(), stage.end_layer(),
                 stage.has_embedding() ? ", embedding" : "", stage.has_head() ? ", head" : "");
  fmt::format_to(to, "  {:<9} {:<24} {:>18} {:>12}\n", "class", "memory", "bytes", "");
  for (const MemoryEntry &entry : entries)
    if (entry.stage == index)
      fmt::format_to(to, "  {:<9} {:<24} {:>18} {:>12}{}\n",
                     lowered(fb::EnumNameMemoryClass(entry.memoryClass)), entry.name, entry.bytes,
                     readable(entry.bytes), entry.per.empty() ? "" : " per " + entry.per);
  for (fb::MemoryClass memoryClass : fb::EnumValuesMemoryClass())
    if (uint64_t total = classTotal(entries, index, memoryClass))
      fmt::format_to(to, "  {:<9} {:<24} {:>18} {:>12}\n", "total",
                     lowered(fb::EnumNameMemoryClass(memoryClass)), total, readable(total));
  if (!isCpu(stage))
    fmt::format_to(to, "  and of the host: {} ({}) for launches\n",
                   readable(hostBytes(plan, index)), hostBytes(plan, index));
  for (const fb::Weight *table : tablesOf(stage))
    fmt::format_to(to, "  table {}: layers {}..{}, {} ({}) from byte {} of its segment\n",
                   text(table->name()), table->first_layer(), table->end_layer(),
                   readable(table->bytes()), table->bytes(), table->offset());
  for (uint32_t i = 0; i < count(stage.states()); ++i) {
    const fb::StateGroup &group = *stage.states()->Get(i);
    if (group.kind() == fb::StateKind::SlotPerSequence) {
      fmt::format_to(to,
                     "  state {}: {} a sequence of any length; slots of {} bytes, {} promised\n",
                     text(group.name()), readable(group.block_bytes()), group.block_bytes(),
                     group.promised_blocks());
      continue;
    }
    fmt::format_to(to,
                   "  state {}: {} a token, {} a sequence of {} tokens; blocks of {} tokens and {} "
                   "bytes, {} promised\n",
                   text(group.name()), readable(group.block_bytes() / group.block_tokens()),
                   readable(bytesPerSequence(plan, group)), plan.max_context(),
                   group.block_tokens(), group.block_bytes(), group.promised_blocks());
  }
  for (const GrowthCost &cost : growthCosts(plan, index))
    fmt::format_to(to, "  next larger {:<10} {:>8}: {}{} more ({})\n", cost.what, cost.to,
                   cost.exact ? "" : "about ", readable(cost.bytes), cost.bytes);
  fmt::format_to(to, "  {:<12} {:>6} {:>9} {:>9} {:>14} {:>14} {:>7} {:>8}\n", "forward", "rows",
                 "sequences", "commands", "peak", "lower bound", "proven", "padding");
  for (uint32_t i = 0; i < count(stage.forwards()); ++i) {
    const fb::Forward &forward = *stage.forwards()->Get(i);
    const fb::Bucket &bucket = *plan.buckets()->Get(forward.bucket());
    fmt::format_to(to, "  {:<12} {:>6} {:>9} {:>9} {:>14} {:>14} {:>7} {:>8}\n",
                   text(bucket.name()), bucket.rows(), bucket.sequences(),
                   count(forward.commands()), forward.peak(), forward.lower_bound(),
                   forward.proven() ? "yes" : "no", mostPadding(plan, bucket));
  }
}

} // namespace

uint64_t hostBytes(const fb::Plan &plan, uint32_t index) {
  const fb::Stage &stage = *plan.stages()->Get(index);
  return launchBytes(count(plan.stages()), index == 0, stage.step()->bytes(), stage.out()->bytes(),
                     plan.max_sequences());
}

std::vector<MemoryEntry> memoryEntries(const fb::Plan &plan) {
  std::vector<MemoryEntry> entries;
  for (uint32_t s = 0; s < count(plan.stages()); ++s) {
    const fb::Stage &stage = *plan.stages()->Get(s);
    auto add = [&](std::string name, uint64_t bytes, std::string per = "") {
      if (bytes > 0)
        entries.push_back({fb::MemoryClass::Computed, s, std::move(name), bytes, std::move(per)});
    };
    add("weights", WeightPlaces(stage).bytes());
    add("arena", stage.arena_bytes());
    if (isCpu(stage))
      add("scratch", stage.scratch_bytes_per_worker(), "worker");
    else // a head row is a worker
      add("scratch", stage.scratch_bytes_per_worker() * plan.max_head_rows());
    for (uint32_t h = 0; h < count(plan.handoffs()); ++h) {
      const fb::Handoff &handoff = *plan.handoffs()->Get(h);
      if (handoff.consumer() == s)
        add(fmt::format("handoff {}", text(handoff.name())),
            handoff.slot_bytes() * handoff.slots());
    }
    add("step", stage.step()->bytes());
    add("out", stage.out()->bytes());
    add("table", stage.table_()->bytes());
    if (isCpu(stage)) // else memory of the host, not of the device
      add("launches", hostBytes(plan, s));
    for (uint32_t g = 0; g < count(stage.states()); ++g) {
      const fb::StateGroup &group = *stage.states()->Get(g);
      add(fmt::format("state {}", text(group.name())),
          group.block_bytes() * group.promised_blocks());
    }
  }
  for (uint32_t i = 0; i < count(plan.memory()); ++i) {
    const fb::MemoryLine &line = *plan.memory()->Get(i);
    if (line.class_() != fb::MemoryClass::Computed)
      entries.push_back({line.class_(), line.stage(), std::string(text(line.name())), line.bytes(),
                         std::string(text(line.per()))});
  }
  return entries;
}

std::vector<GrowthCost> growthCosts(const fb::Plan &plan, uint32_t index) {
  const fb::Stage &stage = *plan.stages()->Get(index);
  uint64_t block = 0, sequence = 0, tokens = 0;
  for (uint32_t g = 0; g < count(stage.states()); ++g) {
    const fb::StateGroup &group = *stage.states()->Get(g);
    if (group.kind() == fb::StateKind::Paged) {
      block += group.block_bytes() * plan.max_sequences();
      tokens = std::max<uint64_t>(tokens, group.block_tokens());
    }
    sequence += ceilDiv(group.promised_blocks(), plan.max_sequences()) * group.block_bytes();
  }
  uint64_t handoffs = 0;
  for (uint32_t h = 0; h < count(plan.handoffs()); ++h)
    if (const fb::Handoff &handoff = *plan.handoffs()->Get(h); handoff.consumer() == index)
      handoffs += handoff.slot_bytes() * handoff.slots();
  std::vector<GrowthCost> costs;
  if (tokens > 0)
    costs.push_back(
        {"context", ceilDiv(plan.max_context(), tokens) * tokens + tokens, block, true});
  costs.push_back({"sequences", plan.max_sequences() + uint64_t(1), sequence, true});
  costs.push_back({"chunk", uint64_t(2) * plan.max_rows(),
                   arenaOfMoreRows(plan, stage, plan.max_rows()) + handoffs, false});
  return costs;
}

std::string memoryTableText(const fb::Plan &plan) {
  std::string out;
  fmt::format_to(
      std::back_inserter(out),
      "{}: {} layers, hidden {}, vocabulary {}; {} sequences of {} tokens, chunks of {}\n",
      text(plan.model()), plan.layers(), plan.hidden(), plan.vocabulary_size(),
      plan.max_sequences(), plan.max_context(), plan.max_rows());
  std::vector<MemoryEntry> entries = memoryEntries(plan);
  for (uint32_t s = 0; s < count(plan.stages()); ++s)
    printStage(out, plan, s, entries);
  fmt::format_to(std::back_inserter(out),
                 "\nempty rows over prompt remainders of 1 to {}: {:.1f} % of the buckets' rows\n",
                 plan.max_rows() - 1, 100 * tailWaste(plan));
  return out;
}

std::string memoryTableJson(const fb::Plan &plan) {
  using Json = nlohmann::ordered_json;
  std::vector<MemoryEntry> entries = memoryEntries(plan);
  Json stages = Json::array();
  for (uint32_t s = 0; s < count(plan.stages()); ++s) {
    const fb::Stage &stage = *plan.stages()->Get(s);
    Json memory = Json::array(), states = Json::array(), forwards = Json::array();
    for (const MemoryEntry &entry : entries)
      if (entry.stage == s)
        memory.push_back({{"class", lowered(fb::EnumNameMemoryClass(entry.memoryClass))},
                          {"name", entry.name},
                          {"bytes", entry.bytes},
                          {"per", entry.per}});
    Json tables = Json::array();
    for (const fb::Weight *table : tablesOf(stage))
      tables.push_back({{"name", text(table->name())},
                        {"first_layer", table->first_layer()},
                        {"end_layer", table->end_layer()},
                        {"offset", table->offset()},
                        {"bytes", table->bytes()}});
    Json growth = Json::array();
    for (const GrowthCost &cost : growthCosts(plan, s))
      growth.push_back(
          {{"what", cost.what}, {"to", cost.to}, {"bytes", cost.bytes}, {"exact", cost.exact}});
    Json totals = Json::object();
    for (fb::MemoryClass memoryClass : fb::EnumValuesMemoryClass())
      totals[lowered(fb::EnumNameMemoryClass(memoryClass))] = classTotal(entries, s, memoryClass);
    for (uint32_t g = 0; g < count(stage.states()); ++g) {
      const fb::StateGroup &group = *stage.states()->Get(g);
      states.push_back({{"name", text(group.name())},
                        {"block_tokens", group.block_tokens()},
                        {"block_bytes", group.block_bytes()},
                        {"blocks_per_sequence", group.blocks_per_sequence()},
                        {"promised_blocks", group.promised_blocks()},
                        {"bytes_per_sequence", bytesPerSequence(plan, group)}});
    }
    for (uint32_t f = 0; f < count(stage.forwards()); ++f) {
      const fb::Forward &forward = *stage.forwards()->Get(f);
      const fb::Bucket &bucket = *plan.buckets()->Get(forward.bucket());
      forwards.push_back({{"bucket", text(bucket.name())},
                          {"rows", bucket.rows()},
                          {"sequences", bucket.sequences()},
                          {"commands", count(forward.commands())},
                          {"peak", forward.peak()},
                          {"lower_bound", forward.lower_bound()},
                          {"proven", forward.proven()},
                          {"padding_rows", mostPadding(plan, bucket)}});
    }
    stages.push_back({{"name", text(stage.name())},
                      {"target", text(stage.target())},
                      {"first_layer", stage.first_layer()},
                      {"end_layer", stage.end_layer()},
                      {"memory", memory},
                      {"totals", totals},
                      {"host_bytes", hostBytes(plan, s)},
                      {"tables", tables},
                      {"states", states},
                      {"growth", growth},
                      {"forwards", forwards}});
  }
  Json table = {{"model", text(plan.model())},           {"max_context", plan.max_context()},
                {"max_sequences", plan.max_sequences()}, {"chunk_rows", plan.max_rows()},
                {"tail_padding", tailWaste(plan)},       {"stages", stages}};
  return table.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace strata
