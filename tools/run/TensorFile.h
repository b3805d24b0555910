// One F32 matrix written row by row to a safetensors file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/OutputFile.h"
#include "runtime/base/Status.h"

namespace strata::run {

/// The file appears under its name only when finish() succeeds (OutputFile).
class TensorFile {
public:
  /// `name` is the tensor's, its shape [rows, columns]. Errors: those of checkOutputPath(),
  /// InvalidArgument (too many values), NotFound (no such folder), Internal.
  static Result<std::unique_ptr<TensorFile>>
  create(const std::string &path, const std::string &name, uint64_t rows, uint64_t columns);

  Status write(std::span<const float> values); ///< Appends. Errors: Internal (I/O).
  Status finish();                             ///< Errors: Internal (values missing, I/O).

private:
  TensorFile() = default;

  std::string path_;
  std::unique_ptr<OutputFile> file_;
  uint64_t missing_ = 0; ///< Values still to come.
};

} // namespace strata::run
