#include "codegen/TextCheck.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "runtime/base/MappedFile.h"

namespace strata {
namespace {

constexpr size_t mostBytes = size_t{1} << 30; // hundreds of layers in dozens of buckets take 1 %
constexpr size_t mostDepth = 256;
constexpr uint64_t mostResults = 1 << 16; // of an op: an arena has one a buffer

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

/// The result that a value's name such as `%0#3` picks; 0 where it picks none.
uint64_t resultNumber(std::string_view name) {
  size_t hash = name.find('#');
  if (!name.starts_with('%') || hash == std::string_view::npos)
    return 0;
  uint64_t number = 0;
  auto [end, error] = std::from_chars(name.data() + hash + 1, name.data() + name.size(), number);
  return error == std::errc::result_out_of_range ? UINT64_MAX : number;
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
  // An alias may stand in the next one, so that what each nests adds up.
  size_t depth = 0, deepest = 0, aliasDepth = 0;
  bool inAliases = false;
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
      if (resultNumber(name) >= mostResults)
        return makeError(StatusCode::InvalidData, "'{}' names the result {}; an op has at most {}",
                         path, name, mostResults);
      at = end;
      size_t next = std::min(text.find_first_not_of(" \t\r\n", end), text.size());
      if (depth == 0 && (character == '#' || character == '!') && text.substr(next, 1) == "=") {
        if (inAliases)
          aliasDepth += 1 + deepest;
        inAliases = true, deepest = 0;
        if (aliasDepth > mostDepth)
          return makeError(StatusCode::InvalidData, "'{}' nests aliases more than {} deep", path,
                           mostDepth);
      }
    } else {
      if (character == '<' || character == '[' || character == '{' || character == '(')
        ++depth;
      else if (character == '>' || character == ']' || character == '}' || character == ')')
        depth -= std::min<size_t>(depth, 1);
      deepest = std::max(deepest, depth);
      if (depth > mostDepth)
        return makeError(StatusCode::InvalidData, "'{}' nests brackets more than {} deep", path,
                         mostDepth);
      ++at;
    }
  }
  return Status::ok();
}

} // namespace strata
