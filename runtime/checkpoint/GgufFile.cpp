#include "runtime/checkpoint/GgufFile.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/ByteReader.h"
#include "runtime/checkpoint/GgufTensorTypes.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

constexpr uint64_t headerBytes = 24;
constexpr uint64_t leastPairBytes = 8 + 1 + 4 + 1;           // length, key of one byte, type, a u8
constexpr uint64_t leastTensorBytes = 8 + 1 + 4 + 0 + 4 + 8; // length, name, rank 0, type, offset
constexpr uint64_t maxKeyBytes = 65535;
constexpr uint64_t maxStringBytes = uint64_t{1} << 30;
constexpr uint64_t maxArrayElements = uint64_t{1} << 30;
constexpr uint64_t maxTensorNameBytes = 63;
constexpr uint32_t maxDimensions = 4;
constexpr uint64_t defaultAlignment = 32;

struct TypeInfo {
  std::string_view name;
  uint32_t bytes; // 0 for String and Array
};

constexpr std::array<TypeInfo, 13> typeInfos = {{{"u8", 1},
                                                 {"i8", 1},
                                                 {"u16", 2},
                                                 {"i16", 2},
                                                 {"u32", 4},
                                                 {"i32", 4},
                                                 {"f32", 4},
                                                 {"bool", 1},
                                                 {"string", 0},
                                                 {"array", 0},
                                                 {"u64", 8},
                                                 {"i64", 8},
                                                 {"f64", 8}}};

template <class T> T loadAs(const std::byte *source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

Result<std::string_view> readBoundedString(ByteReader &reader, std::string_view what) {
  STRATA_ASSIGN_OR_RETURN(std::string_view text, reader.readString(what));
  if (text.size() > maxStringBytes)
    return makeError(StatusCode::InvalidData, "{} has {} bytes; at most {} are read", what,
                     text.size(), maxStringBytes);
  return text;
}

Result<GgufValue> readValue(ByteReader &reader, std::string_view key) {
  std::string what = fmt::format("the value of key '{}'", printable(key));
  STRATA_ASSIGN_OR_RETURN(uint32_t typeId, reader.read<uint32_t>(what));
  GgufValue value{};
  if (typeId == uint32_t(GgufType::Array)) {
    value.isArray = true;
    STRATA_ASSIGN_OR_RETURN(typeId, reader.read<uint32_t>(what));
    STRATA_ASSIGN_OR_RETURN(value.count, reader.read<uint64_t>(what));
    if (typeId == uint32_t(GgufType::Array))
      return makeError(StatusCode::InvalidData, "key '{}' holds an array of arrays; GGUF has none",
                       printable(key));
    if (value.count > maxArrayElements)
      return makeError(StatusCode::InvalidData,
                       "key '{}' states an array of {} elements; at most {} are read",
                       printable(key), value.count, maxArrayElements);
  }
  if (typeId >= typeInfos.size())
    return makeError(StatusCode::InvalidData, "key '{}' has value type {}; types 0 to {} are known",
                     printable(key), typeId, typeInfos.size() - 1);
  value.type = GgufType(typeId);

  if (value.type != GgufType::String) {
    // At most 2^30 elements of 8 bytes: the product cannot overflow.
    STRATA_ASSIGN_OR_RETURN(value.bytes, reader.take(value.count * typeInfos[typeId].bytes, what));
    return value;
  }
  if (value.count > reader.remaining() / sizeof(uint64_t))
    return makeError(StatusCode::InvalidData,
                     "key '{}' states an array of {} strings, at least {} bytes, but {} bytes "
                     "remain; the download is incomplete or the file is damaged",
                     printable(key), value.count, value.count * sizeof(uint64_t),
                     reader.remaining());
  ByteReader start = reader;
  for (uint64_t i = 0; i < value.count; ++i)
    STRATA_RETURN_IF_ERROR(readBoundedString(reader, what).status());
  STRATA_ASSIGN_OR_RETURN(value.bytes, start.take(reader.position() - start.position(), what));
  return value;
}

Status checkKey(std::string_view key, uint64_t index) {
  if (key.empty())
    return makeError(StatusCode::InvalidData, "the key of pair {} is empty", index);
  if (key.size() > maxKeyBytes)
    return makeError(StatusCode::InvalidData, "the key of pair {} has {} bytes; at most {} may be",
                     index, key.size(), maxKeyBytes);
  if (std::any_of(key.begin(), key.end(), [](char c) { return c < 0x20 || c > 0x7E; }))
    return makeError(StatusCode::InvalidData, "key '{}' has bytes that are not printable ASCII",
                     printable(key));
  return Status::ok();
}

struct TensorRecord {
  std::string_view name;
  const WeightType *type;
  std::vector<uint64_t> shape;
  uint64_t offset; ///< From the start of the data section.
  uint64_t bytes;
};

Result<TensorRecord> readTensorRecord(ByteReader &reader, uint64_t index, uint64_t alignment) {
  TensorRecord record{};
  STRATA_ASSIGN_OR_RETURN(record.name,
                          reader.readString(fmt::format("the name of tensor {}", index)));
  if (record.name.empty() || record.name.size() > maxTensorNameBytes)
    return makeError(StatusCode::InvalidData,
                     "the name of tensor {} has {} bytes; 1 to {} are allowed", index,
                     record.name.size(), maxTensorNameBytes);
  if (!isUtf8(record.name))
    return makeError(StatusCode::InvalidData, "the name of tensor {}, '{}', is not UTF-8", index,
                     printable(record.name));
  std::string name = printable(record.name);
  std::string what = fmt::format("the record of tensor '{}'", name);

  STRATA_ASSIGN_OR_RETURN(uint32_t dimensions, reader.read<uint32_t>(what));
  if (dimensions > maxDimensions)
    return makeError(StatusCode::InvalidData, "tensor '{}' has {} dimensions; at most {} may be",
                     name, dimensions, maxDimensions);
  std::vector<uint64_t> extents; // innermost first, as in the file
  uint64_t elements = 1;
  for (uint32_t d = 0; d < dimensions; ++d) {
    STRATA_ASSIGN_OR_RETURN(int64_t extent, reader.read<int64_t>(what));
    if (extent <= 0)
      return makeError(StatusCode::InvalidData,
                       "dimension {} of tensor '{}' is {}; it must be positive", d, name, extent);
    std::optional<uint64_t> product = checkedMul(elements, uint64_t(extent));
    if (!product || *product >= uint64_t{1} << 63)
      return makeError(StatusCode::InvalidData,
                       "tensor '{}' has {} x {} elements or more; fewer than 2^63 may be", name,
                       elements, extent);
    elements = *product;
    extents.push_back(uint64_t(extent));
  }
  STRATA_ASSIGN_OR_RETURN(uint32_t typeId, reader.read<uint32_t>(what));
  STRATA_ASSIGN_OR_RETURN(record.offset, reader.read<uint64_t>(what));

  record.type = findWeightTypeByGgufId(typeId);
  if (!record.type)
    return unreadableTensorType(name, typeId);
  uint64_t rowElements = extents.empty() ? 1 : extents.front();
  if (rowElements % record.type->blockElements != 0)
    return makeError(StatusCode::InvalidData,
                     "tensor '{}' has rows of {} elements, which are no whole number of {} blocks "
                     "of {}",
                     name, rowElements, record.type->name, record.type->blockElements);
  std::optional<uint64_t> bytes = record.type->bytesFor(elements);
  if (!bytes)
    return makeError(StatusCode::InvalidData,
                     "tensor '{}' has {} elements of {}, more bytes than 64 bits count", name,
                     elements, record.type->name);
  record.bytes = *bytes;
  if (record.offset % alignment != 0)
    return makeError(StatusCode::InvalidData,
                     "tensor '{}' has offset {}, which is no multiple of the alignment {}", name,
                     record.offset, alignment);
  record.shape.assign(extents.rbegin(), extents.rend());
  return record;
}

/// Gaps are legal, overlap is not.
Status checkOverlap(const std::vector<TensorRecord> &records) {
  std::vector<const TensorRecord *> order;
  order.reserve(records.size());
  for (const TensorRecord &record : records)
    order.push_back(&record);
  std::sort(order.begin(), order.end(),
            [](const TensorRecord *a, const TensorRecord *b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorRecord &former = *order[i - 1], &latter = *order[i];
    if (latter.offset < former.offset + former.bytes)
      return makeError(StatusCode::InvalidData,
                       "tensor '{}' begins at offset {}, inside tensor '{}', which takes {}..{}",
                       printable(latter.name), latter.offset, printable(former.name), former.offset,
                       former.offset + former.bytes);
  }
  return Status::ok();
}

} // namespace

std::string_view ggufTypeName(GgufType type) { return typeInfos[uint32_t(type)].name; }

bool GgufValue::isInteger() const {
  return type != GgufType::F32 && type != GgufType::F64 && type != GgufType::Bool &&
         type != GgufType::String;
}

nlohmann::ordered_json GgufValue::element(uint64_t index) const {
  const std::byte *source = bytes.data() + index * typeInfos[uint32_t(type)].bytes;
  switch (type) {
  case GgufType::U8:
    return loadAs<uint8_t>(source);
  case GgufType::I8:
    return loadAs<int8_t>(source);
  case GgufType::U16:
    return loadAs<uint16_t>(source);
  case GgufType::I16:
    return loadAs<int16_t>(source);
  case GgufType::U32:
    return loadAs<uint32_t>(source);
  case GgufType::I32:
    return loadAs<int32_t>(source);
  case GgufType::F32:
    return loadAs<float>(source);
  case GgufType::Bool:
    return loadAs<uint8_t>(source) != 0;
  case GgufType::U64:
    return loadAs<uint64_t>(source);
  case GgufType::I64:
    return loadAs<int64_t>(source);
  case GgufType::F64:
    return loadAs<double>(source);
  case GgufType::String:
  case GgufType::Array:
    break;
  }
  return nullptr;
}

std::vector<std::string_view> GgufValue::strings() const {
  std::vector<std::string_view> result;
  result.reserve(count);
  for (const std::byte *at = bytes.data(); result.size() < count;) {
    auto length = loadAs<uint64_t>(at);
    result.emplace_back(reinterpret_cast<const char *>(at + sizeof length), length);
    at += sizeof length + length;
  }
  return result;
}

Result<GgufFile> GgufFile::open(const std::string &path, Parts parts) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapping, MappedFile::open(path));
  GgufFile file(std::move(mapping));
  Status status = file.parse(parts);
  if (!status.isOk())
    return std::move(status).at("file", path);
  return file;
}

Status GgufFile::parse(Parts parts) {
  std::span<const std::byte> bytes = mapping_->bytes();
  if (bytes.size() < headerBytes)
    return makeError(StatusCode::InvalidData,
                     "the file has {} bytes and a GGUF header takes {}; the download is incomplete",
                     bytes.size(), headerBytes);
  if (std::memcmp(bytes.data(), "GGUF", 4) != 0)
    return makeError(StatusCode::InvalidData, "the file does not begin with the letters GGUF");

  ByteReader reader(bytes.subspan(0));
  STRATA_RETURN_IF_ERROR(reader.take(4, "the magic").status());
  STRATA_ASSIGN_OR_RETURN(uint32_t version, reader.read<uint32_t>("the version"));
  if ((version & 0xFFFF) == 0)
    return makeError(StatusCode::Unimplemented,
                     "the file is big-endian GGUF (version field {:#010x}); only little-endian is "
                     "read: convert the model again",
                     version);
  if (version != 2 && version != 3)
    return makeError(StatusCode::Unimplemented,
                     "the file is GGUF version {}; versions 2 and 3 are read: convert the model "
                     "again",
                     version);
  STRATA_ASSIGN_OR_RETURN(uint64_t tensorCount, reader.read<uint64_t>("the tensor count"));
  STRATA_ASSIGN_OR_RETURN(uint64_t pairCount, reader.read<uint64_t>("the key/value count"));
  uint64_t room = reader.remaining();
  if (tensorCount > room / leastTensorBytes || pairCount > room / leastPairBytes ||
      tensorCount * leastTensorBytes + pairCount * leastPairBytes > room)
    return makeError(StatusCode::InvalidData,
                     "the header states {} tensors and {} key/value pairs, which cannot lie in the "
                     "{} bytes after it; the download is incomplete or the file is damaged",
                     tensorCount, pairCount, room);

  for (uint64_t i = 0; i < pairCount; ++i) {
    STRATA_ASSIGN_OR_RETURN(std::string_view key,
                            reader.readString(fmt::format("the key of pair {}", i)));
    STRATA_RETURN_IF_ERROR(checkKey(key, i));
    STRATA_ASSIGN_OR_RETURN(GgufValue value, readValue(reader, key));
    if (!pairIndex_.emplace(key, pairs_.size()).second)
      return makeError(StatusCode::InvalidData, "key '{}' appears twice", printable(key));
    pairs_.push_back({key, value});
  }
  return parts == Parts::All ? parseTensors(reader, tensorCount) : Status::ok();
}

Status GgufFile::parseTensors(ByteReader &reader, uint64_t count) {
  uint64_t alignment = defaultAlignment;
  if (const GgufValue *value = find("general.alignment")) {
    if (value->isArray || value->type != GgufType::U32)
      return makeError(StatusCode::InvalidData, "key 'general.alignment' is {}{}; it must be u32",
                       value->isArray ? "an array of " : "", ggufTypeName(value->type));
    alignment = value->element(0).get<uint64_t>();
    if (!std::has_single_bit(alignment))
      return makeError(StatusCode::InvalidData,
                       "key 'general.alignment' is {}; it must be a power of two", alignment);
  }

  std::vector<TensorRecord> records;
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    STRATA_ASSIGN_OR_RETURN(TensorRecord record, readTensorRecord(reader, i, alignment));
    if (!names.insert(record.name).second)
      return makeError(StatusCode::InvalidData, "tensor '{}' appears twice",
                       printable(record.name));
    records.push_back(std::move(record));
  }

  // The position is at most the file's size and the alignment at most 2^31: no overflow.
  uint64_t dataStart = alignUp(reader.position(), alignment);
  uint64_t fileBytes = mapping_->bytes().size();
  for (const TensorRecord &record : records) {
    std::optional<uint64_t> begin = checkedAdd(dataStart, record.offset);
    std::optional<uint64_t> end = begin ? checkedAdd(*begin, record.bytes) : std::nullopt;
    if (!end || *end > fileBytes)
      return makeError(StatusCode::InvalidData,
                       "tensor '{}' needs {} bytes at {} + {} but the file ends at {}; the "
                       "download is incomplete",
                       printable(record.name), record.bytes, dataStart, record.offset, fileBytes);
  }
  STRATA_RETURN_IF_ERROR(checkOverlap(records));

  tensors_.reserve(records.size());
  for (TensorRecord &record : records)
    tensors_.push_back({record.name, record.type, std::move(record.shape),
                        mapping_->bytes().subspan(dataStart + record.offset, record.bytes)});
  return Status::ok();
}

const GgufValue *GgufFile::find(std::string_view key) const {
  auto found = pairIndex_.find(key);
  return found == pairIndex_.end() ? nullptr : &pairs_[found->second].value;
}

Result<std::optional<uint64_t>> GgufFile::unsignedInteger(std::string_view key,
                                                          uint64_t limit) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<uint64_t>();
  if (value->isArray || !value->isInteger())
    return makeError(StatusCode::InvalidData, "key '{}' is {}{}; it must be an integer", key,
                     value->isArray ? "an array of " : "", ggufTypeName(value->type));
  nlohmann::ordered_json number = value->element(0);
  if (!number.is_number_unsigned() && number.get<int64_t>() < 0)
    return makeError(StatusCode::InvalidData, "key '{}' is {}; it must be 0 to {}", key,
                     number.get<int64_t>(), limit);
  auto result = number.get<uint64_t>();
  if (result > limit)
    return makeError(StatusCode::InvalidData, "key '{}' is {}; it must be 0 to {}", key, result,
                     limit);
  return std::optional<uint64_t>(result);
}

Result<std::optional<bool>> GgufFile::boolean(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<bool>();
  if (value->isArray || value->type != GgufType::Bool)
    return makeError(StatusCode::InvalidData, "key '{}' is {}{}; it must be bool", key,
                     value->isArray ? "an array of " : "", ggufTypeName(value->type));
  return std::optional<bool>(value->element(0).get<bool>());
}

Result<std::optional<std::string_view>> GgufFile::string(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<std::string_view>();
  if (value->isArray || value->type != GgufType::String)
    return makeError(StatusCode::InvalidData, "key '{}' is {}{}; it must be a string", key,
                     value->isArray ? "an array of " : "", ggufTypeName(value->type));
  return std::optional<std::string_view>(value->strings().front());
}

} // namespace strata
