// One F32 matrix written row by row to a safetensors file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/Status.h"

namespace strata::run {

/// The file appears under its name only when finish() succeeds; until then it is a temporary file
/// of the same folder, which the destructor removes.
class TensorFile {
public:
  /// `name` is the tensor's, its shape [rows, columns]. Errors: those of checkOutputPath(),
  /// InvalidArgument (too many values), NotFound (no such folder), Internal.
  static Result<std::unique_ptr<TensorFile>>
  create(const std::string &path, const std::string &name, uint64_t rows, uint64_t columns);
  ~TensorFile();
  TensorFile(const TensorFile &) = delete;
  TensorFile &operator=(const TensorFile &) = delete;

  Status write(std::span<const float> values); ///< Appends. Errors: Internal (I/O).
  Status finish();                             ///< Errors: Internal (values missing, I/O).

private:
  TensorFile() = default;
  Status writeBytes(const void *bytes, size_t count);

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  uint64_t missing_ = 0; ///< Values still to come.
};

} // namespace strata::run
