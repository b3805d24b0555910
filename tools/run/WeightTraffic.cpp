#include "tools/run/WeightTraffic.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "codegen/kernels/Signatures.h"
#include "runtime/plan/PlanAccess.h"

namespace strata::run {
namespace {

bool readsRowsAlone(const fb::Stage &stage, const fb::Command &command) {
  std::string_view kernel = stage.kernels()->Get(command.kernel())->name()->string_view();
  return kernel.substr(0, kernel.find('.')) == "embed";
}

/// How much of its stack of experts a command reads at most for `rows` rows.
double partRead(const fb::Stage &stage, const fb::Command &command, uint32_t rows) {
  std::string_view kernel = stage.kernels()->Get(command.kernel())->name()->string_view();
  if (!kernel.starts_with("expert_"))
    return 1;
  const KernelSignature &signature = *findSignature(kernel);
  auto constant = [&](std::string_view name) {
    for (uint32_t i = 0; i < signature.slots.size(); ++i)
      if (signature.slots[i].name == name)
        return double(command.slots()->Get(i)->offset());
    return 1.0;
  };
  return std::min(1.0, rows * constant("used") / constant("experts"));
}

/// The smallest bucket that takes the step with its head, in one launch; else nullptr.
const fb::Bucket *decodeBucket(const fb::Plan &plan, uint32_t sequences, uint32_t &index) {
  const fb::Bucket *best = nullptr;
  for (uint32_t i = 0; i < plan.buckets()->size(); ++i) {
    const fb::Bucket *bucket = plan.buckets()->Get(i);
    bool takes = bucket->body() && bucket->head() && bucket->rows() >= sequences &&
                 bucket->sequences() >= sequences;
    if (takes && (!best || bucket->rows() < best->rows())) {
      best = bucket;
      index = i;
    }
  }
  return best;
}

} // namespace

uint64_t weightBytesPerStep(const fb::Plan &plan, uint32_t sequences) {
  uint32_t bucket = 0;
  if (!decodeBucket(plan, sequences, bucket))
    return 0;
  uint64_t bytes = 0;
  for (const fb::Stage *stage : *plan.stages()) {
    std::set<std::pair<uint32_t, uint64_t>> seen; // weight, offset inside it
    for (const fb::Forward *forward : *stage->forwards()) {
      if (forward->bucket() != bucket)
        continue;
      for (uint32_t i = 0; i < count(forward->commands()); ++i) {
        const fb::Command *command = forward->commands()->Get(i);
        bool isProduct = command->kind() == fb::CommandKind::Gemm;
        if ((command->kind() != fb::CommandKind::Dispatch && !isProduct) ||
            readsRowsAlone(*stage, *command))
          continue;
        for (const fb::Slot *slot : *command->slots())
          if (slot->kind() == fb::SlotKind::Weight &&
              seen.emplace(slot->object(), slot->offset()).second)
            bytes += uint64_t(double(slot->bytes()) * partRead(*stage, *command, sequences));
      }
    }
  }
  return bytes;
}

} // namespace strata::run
