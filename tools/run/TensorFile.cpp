#include "tools/run/TensorFile.h"

#include <bit>

#include <nlohmann/json.hpp>

#include "runtime/base/CheckedMath.h"

namespace strata::run {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

Result<std::unique_ptr<TensorFile>> TensorFile::create(const std::string &path,
                                                       const std::string &name, uint64_t rows,
                                                       uint64_t columns) {
  auto values = checkedMul(rows, columns);
  auto bytes = values ? checkedMul<uint64_t>(*values, sizeof(float)) : std::nullopt;
  if (!bytes)
    return makeError(StatusCode::InvalidArgument, "a tensor of {} x {} values has no size", rows,
                     columns);
  std::unique_ptr<TensorFile> file(new TensorFile);
  file->path_ = path;
  file->missing_ = *values;
  STRATA_ASSIGN_OR_RETURN(file->file_, OutputFile::create(path));

  nlohmann::ordered_json header = {
      {name, {{"dtype", "F32"}, {"shape", {rows, columns}}, {"data_offsets", {0, *bytes}}}}};
  std::string text = header.dump();
  text.append(alignUp(text.size(), 8) - text.size(), ' ');
  uint64_t length = text.size();
  STRATA_RETURN_IF_ERROR(file->file_->append(std::as_bytes(std::span(&length, 1))));
  STRATA_RETURN_IF_ERROR(file->file_->append(std::as_bytes(std::span(text))));
  return file;
}

Status TensorFile::write(std::span<const float> values) {
  if (values.size() > missing_)
    return makeError(StatusCode::Internal, "'{}' takes {} more values, not {}", path_, missing_,
                     values.size());
  missing_ -= values.size();
  return file_->append(std::as_bytes(values));
}

Status TensorFile::finish() {
  if (missing_ > 0)
    return makeError(StatusCode::Internal, "'{}' lacks {} values", path_, missing_);
  return file_->publish(path_);
}

} // namespace strata::run
