#include "runtime/plan/WeightPlaces.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanFile.h"

namespace strata {

uint32_t layerCount(const fb::Weight &weight) {
  return weight.end_layer() == 0 ? 1 : weight.end_layer() - weight.first_layer();
}

uint64_t layerStride(const fb::Weight &table) {
  uint64_t elements = 1;
  for (uint32_t i = table.end_layer() == 0 ? 0 : 1; i < table.shape()->size(); ++i)
    elements *= table.shape()->Get(i);
  const WeightType &type = *findWeightType(text(table.type()));
  return alignUp(type.bytesFor(elements).value(), weightAlignment);
}

WeightPlaces::WeightPlaces(const fb::Stage &stage) : places(count(stage.weights())) {
  std::vector<uint32_t> order(places.size());
  std::iota(order.begin(), order.end(), 0);
  auto weight = [&](uint32_t i) -> const fb::Weight & { return *stage.weights()->Get(i); };
  std::ranges::sort(order, {},
                    [&](uint32_t i) { return std::pair(weight(i).segment(), weight(i).offset()); });
  for (uint32_t i : order) {
    const fb::Weight &next = weight(i);
    if (runs.empty() || runs.back().segment != next.segment() ||
        runs.back().begin + runs.back().bytes < next.offset())
      runs.push_back({next.segment(), next.offset(), 0});
    WeightRun &run = runs.back();
    places[i] = {static_cast<uint32_t>(runs.size() - 1), next.offset() - run.begin};
    run.bytes = std::max(run.bytes, alignUp(places[i].offset + next.bytes(), weightAlignment));
  }
}

uint64_t WeightPlaces::bytes() const {
  uint64_t bytes = 0;
  for (const WeightRun &run : runs)
    bytes += run.bytes;
  return bytes;
}

} // namespace strata
