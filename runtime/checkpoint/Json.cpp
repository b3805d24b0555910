#include "runtime/checkpoint/Json.h"

#include <algorithm>
#include <vector>

#include "runtime/base/MappedFile.h"
#include "runtime/checkpoint/LfsPointer.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;
using ObjectEntries = std::vector<Json::object_t::value_type>;

constexpr size_t maxDepth = 64;
constexpr size_t maxValues = size_t{1} << 23;
constexpr size_t maxFileBytes = size_t{1} << 29;

/// Builds the document. A container on the stack stays where it is: it is the last element of its
/// parent, which takes no other element before this one is closed.
class DocumentBuilder {
public:
  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(Json::number_integer_t value) { return put(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return put(value); }
  bool number_float(Json::number_float_t value, const std::string &) { return put(value); }
  bool string(std::string &value) { return put(std::move(value)); }
  bool binary(Json::binary_t &) { return fail("a binary value"); }

  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_array() {
    stack_.pop_back();
    return true;
  }
  bool end_object() {
    const ObjectEntries &entries = entriesOf(*stack_.back());
    std::vector<const std::string *> keys;
    keys.reserve(entries.size());
    for (const auto &entry : entries)
      keys.push_back(&entry.first);
    std::sort(keys.begin(), keys.end(), [](auto *a, auto *b) { return *a < *b; });
    auto twice =
        std::adjacent_find(keys.begin(), keys.end(), [](auto *a, auto *b) { return *a == *b; });
    if (twice != keys.end())
      return fail(fmt::format("the key '{}' twice", printable(**twice)));
    stack_.pop_back();
    return true;
  }
  bool key(std::string &key) {
    // Json::operator[] would search all former keys; the duplicates are found at the end instead.
    entriesOf(*stack_.back()).emplace_back(std::move(key), nullptr);
    return true;
  }
  bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &) {
    error_ = fmt::format("the text is not valid JSON at byte {}", position);
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string &error() const { return error_; }

private:
  static ObjectEntries &entriesOf(Json &object) { return object.get_ref<Json::object_t &>(); }

  Json *place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json &parent = *stack_.back();
    if (parent.is_object()) {
      Json &slot = entriesOf(parent).back().second;
      slot = std::move(value);
      return &slot;
    }
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool put(Json value) {
    if (++values_ > maxValues)
      return fail(fmt::format("more than {} values", maxValues));
    place(std::move(value));
    return true;
  }
  bool open(Json container) {
    if (++values_ > maxValues)
      return fail(fmt::format("more than {} values", maxValues));
    if (stack_.size() == maxDepth)
      return fail(fmt::format("values nested deeper than {}", maxDepth));
    stack_.push_back(place(std::move(container)));
    return true;
  }
  bool fail(std::string what) {
    error_ = "the JSON holds " + std::move(what);
    return false;
  }

  Json root_;
  std::vector<Json *> stack_;
  size_t values_ = 0;
  std::string error_;
};

} // namespace

Result<Json> parseJson(std::string_view text) {
  // nlohmann's lexer takes a zero byte for the end of its input.
  if (size_t zero = text.find('\0'); zero != std::string_view::npos)
    return makeError(StatusCode::InvalidData, "the text is not valid JSON at byte {}", zero);
  DocumentBuilder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return Status(StatusCode::InvalidData, builder.error());
  return builder.take();
}

Result<Json> readJsonFile(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  STRATA_RETURN_IF_ERROR(refuseLfsPointer(*file));
  if (text.size() > maxFileBytes)
    return makeError(StatusCode::InvalidData, "'{}' has {} bytes; at most {} are read", path,
                     text.size(), maxFileBytes);
  Result<Json> document = parseJson(text);
  if (!document.isOk())
    return std::move(document).status().at("file", path);
  if (!document->is_object())
    return makeError(StatusCode::InvalidData, "'{}' holds {} where an object is expected", path,
                     jsonKind(*document));
  return document;
}

std::string_view jsonKind(const Json &value) {
  if (value.is_null())
    return "null";
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "an array";
  if (value.is_string())
    return "a string";
  if (value.is_boolean())
    return "a boolean";
  return value.is_number_integer() ? "an integer" : "a number with a fraction or exponent";
}

const Json *findMember(const Json &object, std::string_view key) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

} // namespace strata
