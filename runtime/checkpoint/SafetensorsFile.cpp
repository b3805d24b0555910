#include "runtime/checkpoint/SafetensorsFile.h"

#include <algorithm>
#include <array>

#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/ByteReader.h"
#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/LfsPointer.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t maxHeaderBytes = 100'000'000; // the reference reader's limit
constexpr size_t maxDimensions = 16;

struct Dtype {
  std::string_view name;
  uint32_t bits;
};

constexpr std::array<Dtype, 20> dtypes = {
    {{"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
     {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},    {"BF16", 16},
     {"I32", 32},    {"U32", 32}, {"F32", 32}, {"I64", 64},    {"U64", 64},
     {"F64", 64},    {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}}};

struct Range {
  uint64_t begin, end; ///< From the start of the data section.
};

Result<std::string_view> headerText(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  STRATA_ASSIGN_OR_RETURN(uint64_t length, reader.read<uint64_t>("the header length"));
  if (length > maxHeaderBytes)
    return makeError(StatusCode::InvalidData,
                     "the header length is {}; at most {} are read: this is no safetensors file or "
                     "it is damaged",
                     length, maxHeaderBytes);
  STRATA_ASSIGN_OR_RETURN(std::span<const std::byte> header, reader.take(length, "the header"));
  std::string_view text(reinterpret_cast<const char *>(header.data()), header.size());
  // A file that begins otherwise may be a valid file of another format at once.
  if (text.empty() || text.front() != '{')
    return makeError(StatusCode::InvalidData, "the header of {} bytes does not begin with '{{'",
                     length);
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  if (text.back() != '}')
    return makeError(StatusCode::InvalidData,
                     "the header of {} bytes does not end with '}}' and spaces", length);
  return text;
}

Status checkMetadata(const Json &metadata) {
  if (!metadata.is_object())
    return makeError(StatusCode::InvalidData, "'__metadata__' is {}; it must be an object",
                     jsonKind(metadata));
  for (const auto &[key, value] : metadata.items())
    if (!value.is_string())
      return makeError(StatusCode::InvalidData,
                       "'__metadata__' has {} as '{}'; only strings may be", jsonKind(value),
                       printable(key));
  return Status::ok();
}

Result<std::vector<uint64_t>> unsignedList(const Json &value, std::string_view tensor,
                                           std::string_view field) {
  if (!value.is_array())
    return makeError(StatusCode::InvalidData, "'{}' of tensor '{}' is {}; it must be an array",
                     field, tensor, jsonKind(value));
  std::vector<uint64_t> list;
  list.reserve(value.size());
  for (const Json &element : value) {
    // A number above 2^64 - 1 or with an exponent arrives as a floating-point value.
    if (!element.is_number_unsigned())
      return makeError(StatusCode::InvalidData,
                       "'{}' of tensor '{}' holds {} ({}); it must be an integer of 0 to 2^64 - 1",
                       field, tensor, printable(element.dump()), jsonKind(element));
    list.push_back(element.get<uint64_t>());
  }
  return list;
}

/// Bytes that `shape` takes: a whole number of them, below 2^64.
Result<uint64_t> bytesOf(std::string_view tensor, const std::vector<uint64_t> &shape,
                         std::string_view dtype, uint32_t bits) {
  std::optional<uint64_t> elements = 1;
  for (uint64_t extent : shape) {
    elements = checkedMul(*elements, extent);
    if (!elements)
      break;
  }
  std::optional<uint64_t> total = elements ? checkedMul<uint64_t>(*elements, bits) : std::nullopt;
  if (!total)
    return makeError(StatusCode::InvalidData,
                     "the shape of tensor '{}', [{}], has more bits of {} than 64 bits count",
                     tensor, fmt::join(shape, ", "), dtype);
  if (*total % 8 != 0)
    return makeError(StatusCode::InvalidData,
                     "tensor '{}' has {} elements of {}, which is no whole number of bytes", tensor,
                     *elements, dtype);
  return *total / 8;
}

Result<std::pair<SafetensorsEntry, Range>> parseEntry(const std::string &rawName,
                                                      const Json &object) {
  std::string name = printable(rawName);
  if (!object.is_object())
    return makeError(StatusCode::InvalidData,
                     "the entry of tensor '{}' is {}; it must be an object", name,
                     jsonKind(object));
  for (std::string_view field : {"dtype", "shape", "data_offsets"})
    if (!object.contains(field))
      return makeError(StatusCode::InvalidData, "tensor '{}' has no '{}'", name, field);
  if (object.size() != 3)
    for (const auto &[key, value] : object.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        return makeError(StatusCode::InvalidData,
                         "tensor '{}' has a field '{}'; only dtype, shape and data_offsets may be",
                         name, printable(key));

  const Json &dtype = object["dtype"];
  if (!dtype.is_string())
    return makeError(StatusCode::InvalidData, "'dtype' of tensor '{}' is {}; it must be a string",
                     name, jsonKind(dtype));
  SafetensorsEntry entry{rawName, dtype.get<std::string>(), {}, {}};
  std::optional<uint32_t> bits = safetensorsDtypeBits(entry.dtype);
  if (!bits)
    return makeError(StatusCode::InvalidData, "tensor '{}' has dtype '{}', which is not known",
                     name, printable(entry.dtype));
  STRATA_ASSIGN_OR_RETURN(entry.shape, unsignedList(object["shape"], name, "shape"));
  if (entry.shape.size() > maxDimensions)
    return makeError(StatusCode::InvalidData, "tensor '{}' has {} dimensions; at most {} are read",
                     name, entry.shape.size(), maxDimensions);
  STRATA_ASSIGN_OR_RETURN(std::vector<uint64_t> offsets,
                          unsignedList(object["data_offsets"], name, "data_offsets"));
  if (offsets.size() != 2)
    return makeError(StatusCode::InvalidData,
                     "'data_offsets' of tensor '{}' has {} numbers; it must have 2", name,
                     offsets.size());
  Range range{offsets[0], offsets[1]};
  if (range.begin > range.end)
    return makeError(StatusCode::InvalidData, "tensor '{}' begins at {}, after its end at {}", name,
                     range.begin, range.end);
  STRATA_ASSIGN_OR_RETURN(uint64_t bytes, bytesOf(name, entry.shape, entry.dtype, *bits));
  if (range.end - range.begin != bytes)
    return makeError(StatusCode::InvalidData,
                     "tensor '{}' takes the bytes {}..{} ({}) but its shape [{}] of {} needs {}",
                     name, range.begin, range.end, range.end - range.begin,
                     fmt::join(entry.shape, ", "), entry.dtype, bytes);
  return std::pair(std::move(entry), range);
}

} // namespace

std::optional<uint32_t> safetensorsDtypeBits(std::string_view dtype) {
  for (const Dtype &known : dtypes)
    if (known.name == dtype)
      return known.bits;
  return std::nullopt;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapping, MappedFile::open(path));
  STRATA_RETURN_IF_ERROR(refuseLfsPointer(*mapping));
  SafetensorsFile file(std::move(mapping));
  Status status = file.parse();
  if (!status.isOk())
    return std::move(status).at("file", path);
  return file;
}

Status SafetensorsFile::parse() {
  std::span<const std::byte> bytes = mapping_->bytes();
  STRATA_ASSIGN_OR_RETURN(std::string_view text, headerText(bytes));
  uint64_t headerLength;
  std::memcpy(&headerLength, bytes.data(), sizeof headerLength);
  uint64_t dataStart = sizeof headerLength + headerLength;
  uint64_t dataBytes = bytes.size() - dataStart;
  STRATA_ASSIGN_OR_RETURN(Json header, parseJson(text));

  std::vector<std::pair<SafetensorsEntry, Range>> entries;
  for (const auto &[name, value] : header.items()) {
    if (name == "__metadata__") {
      STRATA_RETURN_IF_ERROR(checkMetadata(value));
      continue;
    }
    STRATA_ASSIGN_OR_RETURN(auto entry, parseEntry(name, value));
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second.begin, a.second.end) < std::pair(b.second.begin, b.second.end);
  });

  uint64_t covered = 0;
  for (auto &[entry, range] : entries) {
    if (range.begin != covered)
      return makeError(
          StatusCode::InvalidData,
          "tensor '{}' begins at {} but the data before it ends at {}: the file has {}",
          printable(entry.name), range.begin, covered,
          range.begin > covered ? "a hole" : "overlapping tensors");
    covered = range.end;
    if (covered > dataBytes)
      return makeError(StatusCode::InvalidData,
                       "tensor '{}' needs bytes {}..{} but the data ends at {}; the download is "
                       "incomplete",
                       printable(entry.name), range.begin, range.end, dataBytes);
    entry.bytes = bytes.subspan(dataStart + range.begin, range.end - range.begin);
    entries_.push_back(std::move(entry));
  }
  if (covered != dataBytes)
    return makeError(StatusCode::InvalidData,
                     "the tensors end at {} but the data section has {} bytes: {} bytes belong to "
                     "no tensor",
                     covered, dataBytes, dataBytes - covered);
  return Status::ok();
}

const SafetensorsEntry *SafetensorsFile::find(std::string_view name) const {
  for (const SafetensorsEntry &entry : entries_)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

} // namespace strata
