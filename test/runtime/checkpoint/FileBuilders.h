// Builds checkpoint files, right ones and broken ones, byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/Status.h"

namespace strata::test {

/// A folder that disappears with the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strata-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string path() const { return path_.string(); }
  std::string file(std::string_view name) const { return (path_ / name).string(); }
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }

private:
  std::filesystem::path path_;
};

/// Appends little-endian values to a string.
class Bytes {
public:
  template <class T> Bytes &put(T value) {
    text_.append(reinterpret_cast<const char *>(&value), sizeof value);
    return *this;
  }
  Bytes &text(std::string_view value) {
    text_.append(value);
    return *this;
  }
  /// A u64 length and the bytes.
  Bytes &string(std::string_view value) { return put<uint64_t>(value.size()).text(value); }
  const std::string &str() const { return text_; }

private:
  std::string text_;
};

/// A GGUF file. What a case wants broken it sets by hand: every field may be overridden.
class GgufBuilder {
public:
  uint32_t version = 3;
  uint64_t alignment = 32;
  int64_t tensorCountDelta = 0; ///< Added to the true count in the header.
  int64_t pairCountDelta = 0;
  bool cutTailPadding = true;

  GgufBuilder &pair(std::string_view key, uint32_t type, std::string_view value) {
    pairs_.string(key).put(type).text(value);
    ++pairCount_;
    return *this;
  }
  GgufBuilder &u32(std::string_view key, uint32_t value) {
    return pair(key, 4, Bytes().put(value).str());
  }
  GgufBuilder &boolean(std::string_view key, bool value) {
    return pair(key, 7, Bytes().put<uint8_t>(value).str());
  }
  GgufBuilder &string(std::string_view key, std::string_view value) {
    return pair(key, 8, Bytes().string(value).str());
  }
  GgufBuilder &array(std::string_view key, uint32_t elementType, uint64_t count,
                     std::string_view elements) {
    return pair(key, 9, Bytes().put(elementType).put(count).text(elements).str());
  }
  GgufBuilder &strings(std::string_view key, const std::vector<std::string> &values) {
    Bytes bytes;
    for (const std::string &value : values)
      bytes.string(value);
    return array(key, 8, values.size(), bytes.str());
  }
  template <class T>
  GgufBuilder &numbers(std::string_view key, uint32_t elementType, const std::vector<T> &values) {
    Bytes bytes;
    for (T value : values)
      bytes.put(value);
    return array(key, elementType, values.size(), bytes.str());
  }

  /// A record with a stated offset; `extents` innermost first.
  GgufBuilder &record(std::string_view name, const std::vector<int64_t> &extents, uint32_t type,
                      uint64_t offset) {
    records_.string(name).put(uint32_t(extents.size()));
    for (int64_t extent : extents)
      records_.put(extent);
    records_.put(type).put(offset);
    ++recordCount_;
    return *this;
  }
  /// A record and its bytes, placed after the former tensor.
  GgufBuilder &tensor(std::string_view name, const std::vector<int64_t> &extents, uint32_t type,
                      std::string_view bytes) {
    pad(data_);
    record(name, extents, type, data_.size());
    data_ += bytes;
    return *this;
  }
  GgufBuilder &data(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }

  /// The bytes before the data section.
  std::string head() const {
    std::string head = Bytes()
                           .text("GGUF")
                           .put(version)
                           .put(uint64_t(recordCount_ + tensorCountDelta))
                           .put(uint64_t(pairCount_ + pairCountDelta))
                           .text(pairs_.str())
                           .text(records_.str())
                           .str();
    if (recordCount_ > 0)
      pad(head);
    return head;
  }
  std::string build() const { return head() + data_; }

private:
  void pad(std::string &text) const {
    text.resize((text.size() + alignment - 1) / alignment * alignment);
  }

  Bytes pairs_, records_;
  std::string data_;
  int64_t pairCount_ = 0, recordCount_ = 0;
};

/// A safetensors file of a header and data, with the length that the header has.
inline std::string safetensors(std::string_view header, std::string_view data) {
  return Bytes().string(header).text(data).str();
}

/// The most memory that the process has had resident, in KiB.
inline uint64_t peakResidentKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::stoull(line.substr(6));
  return 0;
}

/// Whether the error's text contains every one of `parts`.
inline testing::AssertionResult contains(const Status &status,
                                         std::initializer_list<std::string_view> parts) {
  std::string text = status.toString();
  for (std::string_view part : parts)
    if (text.find(part) == std::string::npos)
      return testing::AssertionFailure() << "missing: " << part << "\nin: " << text;
  return testing::AssertionSuccess();
}

} // namespace strata::test

/// Expects an error of `code` whose text contains every one of the given parts.
#define EXPECT_REFUSED(result, expectedCode, ...)                                                  \
  do {                                                                                             \
    auto &&strataResult = (result);                                                                \
    ASSERT_FALSE(strataResult.isOk()) << "expected: " #__VA_ARGS__;                                \
    EXPECT_EQ(::strata::statusCodeName(strataResult.status().code()),                              \
              ::strata::statusCodeName(expectedCode))                                              \
        << strataResult.status().toString();                                                       \
    EXPECT_TRUE(::strata::test::contains(strataResult.status(), {__VA_ARGS__}));                   \
  } while (false)
