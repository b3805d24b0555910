#include "codegen/cuda/compile/Program.h"

#include <set>

#include <fmt/format.h>

namespace strata::cuda {
namespace {

/// `rms_norm_heads` to `rmsNormHeads`.
std::string templateName(std::string_view family) {
  std::string name;
  bool isStart = false;
  for (char c : family) {
    if (c != '_')
      name += isStart ? char(std::toupper(static_cast<unsigned char>(c))) : c;
    isStart = c == '_';
  }
  return name;
}

} // namespace

std::string moduleSource(std::span<const Specialisation> specialisations,
                         const CudaTarget &target) {
  std::string text;
  auto to = std::back_inserter(text);
  if (target.features.dependentLaunch)
    text += "#define STRATA_DEPENDENT_LAUNCH\n";
  if (target.features.clusters)
    text += "#define STRATA_CLUSTERS\n";
  fmt::format_to(to, "#define STRATA_MULTIPROCESSORS {}\n#define STRATA_SHARED_BYTES {}\n",
                 target.multiprocessors, target.sharedBytesPerBlock);
  std::set<std::string> headers;
  for (const Specialisation &each : specialisations)
    if (!isGemm(each.kernel))
      headers.insert(header(each.kernel));
  for (const std::string &name : headers)
    fmt::format_to(to, "#include \"codegen/cuda/{}\"\n", name);
  for (uint32_t i = 0; i < specialisations.size(); ++i) {
    const Specialisation &each = specialisations[i];
    if (isGemm(each.kernel))
      continue;
    const KernelSignature &signature = *findSignature(each.kernel);
    std::string function = functionName(i);
    fmt::format_to(to,
                   "\n// {}\nstruct {}_constants {{\n  static constexpr uint32_t threads = {}, "
                   "rows = {};\n",
                   each.kernel, function, each.threads, each.rows);
    size_t next = 0;
    for (const SlotSpec &slot : signature.slots)
      if (slot.isSpecialised())
        fmt::format_to(to, "  static constexpr uint64_t {} = {}ull;\n", slot.name,
                       each.constants[next++]);
    std::string cluster =
        each.clusterY > 1 ? fmt::format("__cluster_dims__(1, {}, 1) ", each.clusterY) : "";
    fmt::format_to(
        to,
        "}};\nextern \"C\" __global__ void {}__launch_bounds__({}, {}) {}(const __grid_constant__ "
        "strata::Slots<{}> slots) {{\n  strata::{}<{}{}_constants>(slots);\n}}\n",
        cluster, each.threads, each.residentBlocks, function, signature.slots.size(),
        templateName(signature.family), templateArguments(each.kernel), function);
  }
  return text;
}

} // namespace strata::cuda
