#include "tools/run/TextFile.h"

#include <array>
#include <fstream>

namespace strata::run {

Result<std::string> readTextFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return makeError(StatusCode::NotFound, "cannot read '{}'", path);
  constexpr size_t mostBytes = size_t{1} << 30;
  std::string text;
  std::array<char, 1 << 16> piece;
  while (file.read(piece.data(), piece.size()) || file.gcount() > 0) {
    text.append(piece.data(), size_t(file.gcount()));
    if (text.size() > mostBytes)
      return makeError(StatusCode::InvalidArgument, "'{}' holds more than {} bytes of text", path,
                       mostBytes);
  }
  if (file.bad()) // a folder opens as well
    return makeError(StatusCode::InvalidArgument, "cannot read '{}'", path);
  return text;
}

} // namespace strata::run
