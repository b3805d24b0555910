#include "codegen/TextCheck.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "runtime/base/MappedFile.h"

namespace strata {
namespace {

constexpr size_t mostBytes = size_t{1} << 30; // hundreds of layers in dozens of buckets take 1 %
constexpr size_t mostDepth = 256;

/// Behind the string that begins at `at`.
size_t skipString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\')
      ++at;
  return at + 1;
}

bool isNamePart(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) ||
         std::string_view("_$.@%#!^").find(character) != std::string_view::npos;
}

/// Behind the name or number that begins at `at`.
size_t skipName(std::string_view text, size_t at) {
  while (at < text.size() && isNamePart(text[at]))
    ++at;
  return at;
}

} // namespace

Status checkModelText(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  if (text.size() > mostBytes)
    return makeError(StatusCode::InvalidData, "'{}' has {} bytes; a model's text has at most {}",
                     path, text.size(), mostBytes);
  size_t depth = 0;
  for (size_t at = 0; at < text.size();) {
    char character = text[at];
    std::string_view pair = text.substr(at, 2);
    if (character == '"') {
      at = skipString(text, at);
    } else if (pair == "//") {
      at = std::min(text.find_first_of("\r\n", at), text.size());
    } else if (pair == "->") {
      at += 2;
    } else if (isNamePart(character)) {
      size_t end = skipName(text, at);
      std::string_view name = text.substr(at, end - at);
      if (name == "affine_map" || name == "affine_set")
        return makeError(StatusCode::InvalidData, "'{}' holds an {}, which no model has", path,
                         name);
      at = end;
    } else {
      if (character == '<' || character == '[' || character == '{' || character == '(')
        ++depth;
      else if (character == '>' || character == ']' || character == '}' || character == ')')
        depth -= std::min<size_t>(depth, 1);
      if (depth > mostDepth)
        return makeError(StatusCode::InvalidData, "'{}' nests brackets more than {} deep", path,
                         mostDepth);
      ++at;
    }
  }
  return Status::ok();
}

} // namespace strata
