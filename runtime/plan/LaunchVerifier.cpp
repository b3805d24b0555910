// A command's launch, held against the one that its kernel was made for.
#include <algorithm>

#include "codegen/cuda/KernelTable.h"
#include "runtime/plan/Checks.h"

namespace strata::checks {

Status checkLaunch(const fb::Stage &stage, const fb::Command &command, uint64_t rows) {
  const fb::Kernel &kernel = *stage.kernels()->Get(command.kernel());
  std::string_view name = text(kernel.name());
  std::optional<KernelLibrary> library = KernelLibrary::of(text(stage.target()));
  bool isGemm = !library->isCpu() && cuda::isGemm(name);
  fb::CommandKind kind = isGemm ? fb::CommandKind::Gemm : fb::CommandKind::Dispatch;
  if (command.kind() != kind)
    return invalid("kernel '{}' is run by a {}, but its command is a {}", name,
                   fb::EnumNameCommandKind(kind), fb::EnumNameCommandKind(command.kind()));
  if (library->isCpu())
    return command.grid() ? invalid("kernel '{}' of a CPU has a grid", name) : Status();
  const KernelSignature &signature = *findSignature(name);
  uint32_t next = 0;
  for (uint32_t i = 0; i < signature.slots.size(); ++i) {
    if (!signature.slots[i].isSpecialised())
      continue;
    uint64_t made = kernel.constants()->Get(next++), given = command.slots()->Get(i)->offset();
    if (made != given)
      return invalid("kernel '{}' was made for a '{}' of {} but is given {}", name,
                     signature.slots[i].name, made, given);
  }
  if (isGemm)
    return command.grid() ? invalid("kernel '{}' of a library has a grid", name) : Status();
  cuda::LaunchShape shape = cuda::launchShape(
      name, rows,
      [&](std::string_view constant) {
        auto spec = std::find_if(signature.slots.begin(), signature.slots.end(),
                                 [&](const SlotSpec &each) { return each.name == constant; });
        return command.slots()->Get(uint32_t(spec - signature.slots.begin()))->offset();
      },
      *library->gpu());
  constexpr uint64_t mostX = INT32_MAX, mostY = 65535; // of every architecture
  if (shape.gridX > mostX || shape.gridY > mostY)
    return invalid("kernel '{}' needs a grid of {} x {} blocks; {} x {} are possible", name,
                   shape.gridX, shape.gridY, mostX, mostY);
  if (!command.grid() || command.grid()->x() != shape.gridX || command.grid()->y() != shape.gridY ||
      kernel.threads() != shape.threads || kernel.shared_bytes() != shape.sharedBytes ||
      kernel.rows() != shape.rows)
    return invalid("kernel '{}' is launched with {} x {} blocks of {} threads for {} rows; {} x {} "
                   "of {} for {} are right",
                   name, command.grid() ? command.grid()->x() : 0,
                   command.grid() ? command.grid()->y() : 0, kernel.threads(), kernel.rows(),
                   shape.gridX, shape.gridY, shape.threads, shape.rows);
  return {};
}

} // namespace strata::checks
