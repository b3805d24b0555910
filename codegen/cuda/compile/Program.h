// The source of a stage's module: one function for every specialisation that its commands run.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "codegen/cuda/KernelTable.h"
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata::cuda {

/// A file that sources include, by the path that they name it by.
struct SourceFile {
  std::string_view path;
  std::string_view text;
};

/// The templates, what they include of the runtime, and small stand-ins for the C++ headers that
/// those include: a module is compiled from these alone, whatever is installed.
std::span<const SourceFile> sourceFiles();

/// A translation unit with function `functionName(i)` for specialisation i, products of the
/// vendor's library left out.
std::string moduleSource(std::span<const Specialisation> specialisations, const CudaTarget &target);

} // namespace strata::cuda
