// GGUF: a right file is read to the bit, and every broken one is refused by the thing and the
// number.
#include <fcntl.h>
#include <unistd.h>

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/GgufFile.h"
#include "test/TestData.h"
#include "test/runtime/checkpoint/FileBuilders.h"

namespace strata {
namespace {

using test::Bytes;
using test::GgufBuilder;
using test::TemporaryFolder;

constexpr StatusCode invalid = StatusCode::InvalidData;
constexpr StatusCode unimplemented = StatusCode::Unimplemented;

std::string floats(const std::vector<float> &values) {
  Bytes bytes;
  for (float value : values)
    bytes.put(value);
  return bytes.str();
}

class GgufTest : public testing::Test {
protected:
  Result<std::unique_ptr<Checkpoint>> open(std::string_view bytes) {
    return Checkpoint::open(folder_.write("model.gguf", bytes));
  }
  Result<std::unique_ptr<Checkpoint>> open(const GgufBuilder &builder) {
    return open(builder.build());
  }
  TemporaryFolder folder_;
};

GgufBuilder minimal() {
  GgufBuilder builder;
  builder.string("general.architecture", "llama");
  builder.tensor("a.weight", {2, 3}, 0, floats({1, 2, 3, 4, 5, 6}));
  return builder;
}

/// The record of one F32 tensor `t` of 32 elements at offset 0, with whatever a case changes.
GgufBuilder oneRecord(const std::vector<int64_t> &extents, uint32_t type, uint64_t offset) {
  GgufBuilder builder;
  builder.record("t", extents, type, offset).data(std::string(128, '\0'));
  return builder;
}

TEST_F(GgufTest, ReadsEveryKindOfValue) {
  GgufBuilder builder = minimal();
  builder.pair("k.u8", 0, Bytes().put<uint8_t>(200).str());
  builder.pair("k.i8", 1, Bytes().put<int8_t>(-2).str());
  builder.pair("k.u16", 2, Bytes().put<uint16_t>(60000).str());
  builder.pair("k.i16", 3, Bytes().put<int16_t>(-3).str());
  builder.u32("k.u32", 4000000000u);
  builder.pair("k.i32", 5, Bytes().put<int32_t>(-4).str());
  builder.pair("k.f32", 6, Bytes().put(1.5f).str());
  builder.pair("k.bool", 7, Bytes().put<uint8_t>(3).str());
  builder.pair("k.u64", 10, Bytes().put<uint64_t>(UINT64_MAX).str());
  builder.pair("k.i64", 11, Bytes().put<int64_t>(INT64_MIN).str());
  builder.pair("k.f64", 12, Bytes().put(0.1).str());
  builder.numbers<int32_t>("k.list", 5, {3, -1, 2});
  builder.strings("k.names", {"a", "", "\xC3\xA9"});
  builder.numbers<int32_t>("k.empty", 5, {});
  builder.string("tokenizer.ggml.note", "not part of the configuration");

  auto checkpoint = open(builder);
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  EXPECT_EQ((*checkpoint)->format(), CheckpointFormat::Gguf);
  const auto &config = (*checkpoint)->config();
  EXPECT_EQ(config["general.architecture"], "llama");
  EXPECT_EQ(config["k.u8"], 200);
  EXPECT_EQ(config["k.i8"], -2);
  EXPECT_EQ(config["k.u16"], 60000);
  EXPECT_EQ(config["k.i16"], -3);
  EXPECT_EQ(config["k.u32"], 4000000000u);
  EXPECT_EQ(config["k.i32"], -4);
  EXPECT_EQ(config["k.f32"], 1.5);
  EXPECT_EQ(config["k.bool"], true);
  EXPECT_EQ(config["k.u64"], UINT64_MAX);
  EXPECT_EQ(config["k.i64"], INT64_MIN);
  EXPECT_EQ(config["k.f64"], 0.1);
  EXPECT_EQ(config["k.list"], nlohmann::ordered_json({3, -1, 2}));
  EXPECT_EQ(config["k.names"], nlohmann::ordered_json({"a", "", "\xC3\xA9"}));
  EXPECT_EQ(config["k.empty"], nlohmann::ordered_json::array());
  EXPECT_EQ(config.size(), 15u); // architecture and 14 of `k.`; nothing of `tokenizer.`

  const Tensor *tensor = (*checkpoint)->find("a.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (std::vector<uint64_t>{3, 2})); // the file has the inner extent first
  EXPECT_EQ(tensor->type->name, "f32");
  ASSERT_EQ(tensor->bytes.size(), 24u);
  float last;
  std::memcpy(&last, tensor->bytes.data() + 20, 4);
  EXPECT_EQ(last, 6.0f);
  EXPECT_EQ((*checkpoint)->find("b.weight"), nullptr);
  auto vocabulary = (*checkpoint)->vocabulary();
  ASSERT_TRUE(vocabulary.isOk());
  EXPECT_FALSE(vocabulary->has_value());
}

TEST_F(GgufTest, ReadsVersion2AndBlocksAndScalars) {
  GgufBuilder builder;
  builder.version = 2;
  builder.tensor("scalar", {}, 0, floats({7}));
  builder.tensor("blocks", {64, 2, 1}, 8, std::string(4 * 34, '\1'));
  auto checkpoint = open(builder);
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  EXPECT_EQ((*checkpoint)->find("scalar")->bytes.size(), 4u);
  EXPECT_TRUE((*checkpoint)->find("scalar")->shape.empty());
  EXPECT_EQ((*checkpoint)->find("blocks")->bytes.size(), 136u); // 4 blocks of 34 bytes
  EXPECT_EQ((*checkpoint)->find("blocks")->shape, (std::vector<uint64_t>{1, 2, 64}));
}

TEST_F(GgufTest, GapsAndFilesWithoutTensorsAreLegal) {
  GgufBuilder gap;
  gap.record("late", {1}, 0, 64).record("early", {1}, 0, 0).data(std::string(68, '\0'));
  EXPECT_TRUE(open(gap).isOk());
  GgufBuilder none;
  none.string("general.architecture", "llama").u32("general.alignment", 1u << 31);
  EXPECT_TRUE(open(none).isOk());
}

TEST_F(GgufTest, EveryTruncationIsRefused) {
  std::string whole = minimal().build();
  ASSERT_TRUE(open(whole).isOk());
  for (size_t size = 0; size < whole.size(); ++size) {
    auto checkpoint = open(whole.substr(0, size));
    ASSERT_FALSE(checkpoint.isOk()) << size;
    EXPECT_EQ(checkpoint.status().code(), invalid) << checkpoint.status().toString();
  }
}

TEST_F(GgufTest, HeadersThatAreNotRead) {
  EXPECT_REFUSED(open(std::string_view("GGUF\3\0\0\0", 8)), invalid, "8 bytes", "24", "incomplete");
  std::string text = minimal().build();
  text[0] = 'X';
  EXPECT_REFUSED(open(text), invalid, "does not begin with the letters GGUF");
  GgufBuilder builder = minimal();
  builder.version = 1;
  EXPECT_REFUSED(open(builder), unimplemented, "version 1", "2 and 3", "convert");
  builder.version = 4;
  EXPECT_REFUSED(open(builder), unimplemented, "version 4");
  builder.version = 3u << 24;
  EXPECT_REFUSED(open(builder), unimplemented, "big-endian", "0x03000000");
}

TEST_F(GgufTest, CountsThatCannotLieInTheFile) {
  // In `minimal` the bytes after the header are room / 25 tensors at most.
  for (int64_t delta : {int64_t(1000), INT64_MIN, int64_t(-2), INT64_MAX - 2}) {
    GgufBuilder tensors = minimal();
    tensors.tensorCountDelta = delta;
    EXPECT_REFUSED(open(tensors), invalid, fmt::format("{} tensors", uint64_t(1) + delta));
    GgufBuilder pairs = minimal();
    pairs.pairCountDelta = delta;
    EXPECT_REFUSED(open(pairs), invalid, fmt::format("{} key/value pairs", uint64_t(1) + delta));
  }
}

TEST_F(GgufTest, LengthsBeyondTheFile) {
  std::string whole = minimal().build();
  // Where the lengths of the first key, its value and the tensor's name stand.
  size_t key = 24, value = key + 8 + 20 + 4, name = value + 8 + 5;
  const std::pair<size_t, std::string_view> fields[] = {
      {key, "the key of pair 0"},
      {value, "key 'general.architecture'"},
      {name, "the name of tensor 0"},
  };
  for (auto [position, what] : fields) {
    uint64_t remaining = whole.size() - position - 8;
    for (uint64_t length : {uint64_t(1) << 63, UINT64_MAX, UINT64_MAX - 7, remaining + 1}) {
      std::string broken = whole;
      std::memcpy(broken.data() + position, &length, 8);
      EXPECT_REFUSED(open(broken), invalid, what, fmt::format("needs {} bytes", length));
    }
  }
}

TEST_F(GgufTest, Keys) {
  EXPECT_REFUSED(open(minimal().u32("", 1)), invalid, "key of pair 1 is empty");
  EXPECT_REFUSED(open(minimal().u32("a\nb", 1)), invalid, "a\\x0ab", "printable ASCII");
  EXPECT_REFUSED(open(minimal().u32("k.x", 1).u32("k.x", 1)), invalid, "'k.x' appears twice");
  EXPECT_REFUSED(open(minimal().u32(std::string(65536, 'k'), 1)), invalid, "65536", "65535");
}

TEST_F(GgufTest, Values) {
  EXPECT_REFUSED(open(minimal().pair("k.x", 13, "12345678")), invalid, "'k.x'", "type 13",
                 "0 to 12");
  EXPECT_REFUSED(open(minimal().array("k.x", 9, 1, std::string(12, '\0'))), invalid, "'k.x'",
                 "array of arrays");
  EXPECT_REFUSED(open(minimal().array("k.x", 13, 0, "")), invalid, "'k.x'", "type 13");
  EXPECT_REFUSED(open(minimal().array("k.x", 8, 1u << 30, "")), invalid, "'k.x'",
                 "1073741824 strings", "remain");
  EXPECT_REFUSED(open(minimal().array("k.x", 10, 1u << 30, "")), invalid, "'k.x'",
                 "needs 8589934592 bytes");
  for (uint64_t count : {(uint64_t(1) << 30) + 1, uint64_t(1) << 63, UINT64_MAX})
    EXPECT_REFUSED(open(minimal().array("k.x", 4, count, "")), invalid, "'k.x'",
                   fmt::format("{} elements", count), "1073741824");
  EXPECT_REFUSED(open(minimal().string("k.x", "\xFF")), invalid, "'k.x'", "not UTF-8", "\\xff");
  EXPECT_REFUSED(open(minimal().numbers<uint8_t>("k.x", 0, std::vector<uint8_t>(1 << 20, 0))),
                 invalid, "'k.x'", "1048577", "1048576");
}

TEST_F(GgufTest, Alignment) {
  for (uint32_t alignment : {0u, 3u})
    EXPECT_REFUSED(open(minimal().u32("general.alignment", alignment)), invalid,
                   "'general.alignment'", fmt::format("is {};", alignment), "power of two");
  EXPECT_REFUSED(open(minimal().pair("general.alignment", 10, Bytes().put<uint64_t>(32).str())),
                 invalid, "'general.alignment'", "u64", "u32");
  EXPECT_REFUSED(open(minimal().u32("general.alignment", 1u << 31)), invalid, "'a.weight'",
                 "2147483648 + 0");
  GgufBuilder wide;
  wide.alignment = 128;
  wide.u32("general.alignment", 128).tensor("t", {1}, 0, floats({9}));
  auto checkpoint = open(wide);
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  float value;
  std::memcpy(&value, (*checkpoint)->find("t")->bytes.data(), 4);
  EXPECT_EQ(value, 9.0f);
}

TEST_F(GgufTest, TensorNames) {
  GgufBuilder twice = minimal();
  twice.tensor("a.weight", {1}, 0, floats({1}));
  EXPECT_REFUSED(open(twice), invalid, "'a.weight' appears twice");
  GgufBuilder empty;
  empty.tensor("", {1}, 0, floats({1}));
  EXPECT_REFUSED(open(empty), invalid, "tensor 0", "0 bytes", "1 to 63");
  GgufBuilder longest, longer;
  longest.tensor(std::string(63, 'n'), {1}, 0, floats({1}));
  longer.tensor(std::string(64, 'n'), {1}, 0, floats({1}));
  EXPECT_TRUE(open(longest).isOk());
  EXPECT_REFUSED(open(longer), invalid, "tensor 0", "64 bytes", "1 to 63");
  GgufBuilder bytes;
  bytes.tensor("\xC0\x80", {1}, 0, floats({1}));
  EXPECT_REFUSED(open(bytes), invalid, "tensor 0", "not UTF-8");
}

TEST_F(GgufTest, TensorShapes) {
  EXPECT_TRUE(open(oneRecord({32}, 0, 0)).isOk());
  EXPECT_REFUSED(open(oneRecord({1, 1, 1, 1, 1}, 0, 0)), invalid, "'t'", "5 dimensions", "4");
  EXPECT_REFUSED(open(oneRecord({0}, 0, 0)), invalid, "dimension 0 of tensor 't' is 0");
  EXPECT_REFUSED(open(oneRecord({4, -1}, 0, 0)), invalid, "dimension 1 of tensor 't' is -1");
  int64_t big = int64_t(1) << 32;
  EXPECT_REFUSED(open(oneRecord({big, big}, 0, 0)), invalid, "'t'", "4294967296 x 4294967296");
  EXPECT_REFUSED(open(oneRecord({big, big / 2}, 0, 0)), invalid, "'t'", "2^63");
  EXPECT_REFUSED(open(oneRecord({INT64_MAX}, 0, 0)), invalid, "'t'", "9223372036854775807",
                 "64 bits");
  EXPECT_REFUSED(open(oneRecord({16, 2}, 2, 0)), invalid, "'t'", "rows of 16", "q4_0", "32");
}

TEST_F(GgufTest, TensorTypes) {
  for (uint32_t retired : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u})
    EXPECT_REFUSED(open(oneRecord({32}, retired, 0)), invalid, "'t'",
                   fmt::format("type {},", retired), "retired");
  for (uint32_t unknown : {41u, 42u, 1000u, UINT32_MAX})
    EXPECT_REFUSED(open(oneRecord({32}, unknown, 0)), invalid, "'t'",
                   fmt::format("type {},", unknown), "not known");
  EXPECT_REFUSED(open(oneRecord({256}, 16, 0)), unimplemented, "'t'", "IQ2_XXS", "(16)", "q4_0");
  EXPECT_REFUSED(open(oneRecord({32}, 26, 0)), unimplemented, "'t'", "I32", "(26)");
}

TEST_F(GgufTest, TensorPlaces) {
  EXPECT_REFUSED(open(oneRecord({32}, 0, 16)), invalid, "'t'", "offset 16", "alignment 32");
  EXPECT_REFUSED(open(oneRecord({32}, 0, 32)), invalid, "'t'", "needs 128 bytes", "incomplete");
  EXPECT_REFUSED(open(oneRecord({32}, 0, UINT64_MAX - 31)), invalid, "'t'", "18446744073709551584");
  GgufBuilder overlap;
  overlap.record("a", {32}, 0, 0).record("b", {8}, 0, 96).data(std::string(128, '\0'));
  EXPECT_REFUSED(open(overlap), invalid, "'b' begins at offset 96", "'a'", "0..128");
  GgufBuilder same;
  same.record("a", {8}, 0, 0).record("b", {8}, 0, 0).data(std::string(128, '\0'));
  EXPECT_REFUSED(open(same), invalid, "inside tensor");
}

TEST_F(GgufTest, HostileNamesAreCutAndEscapedInMessages) {
  std::string key(60000, 'k');
  auto checkpoint = open(minimal().pair(key, 77, ""));
  ASSERT_FALSE(checkpoint.isOk());
  EXPECT_LT(checkpoint.status().message().size(), 300u);
  EXPECT_NE(checkpoint.status().message().find("(60000 bytes)"), std::string::npos);
}

TEST_F(GgufTest, HostileSizesTakeNoMemory) {
  uint64_t before = test::peakResidentKiB();
  for (uint32_t type : {0u, 4u, 8u, 10u})
    EXPECT_FALSE(open(minimal().array("tokenizer.ggml.tokens", type, 1u << 30, "")).isOk());
  // A gigabyte promised in a file of 160 bytes: as a key, a value, an element, a tensor's name.
  auto promised = Bytes().put(uint64_t(1) << 30).str();
  std::string start = Bytes().text("GGUF").put(3u).put<uint64_t>(0).put<uint64_t>(1).str();
  std::string key = Bytes().string("k").str();
  std::string tensors = Bytes().text("GGUF").put(3u).put<uint64_t>(1).put<uint64_t>(0).str();
  for (std::string file : {start + promised, start + key + Bytes().put(8u).str() + promised,
                           start + key + Bytes().put(9u).put(8u).put<uint64_t>(2).str() + promised,
                           tensors + promised}) {
    file.resize(160);
    EXPECT_REFUSED(Checkpoint::open(folder_.write("small.gguf", file)), invalid, "1073741824 bytes",
                   "the file has 160 bytes");
  }
  GgufBuilder counts = minimal();
  counts.tensorCountDelta = counts.pairCountDelta = INT64_MAX / 2;
  EXPECT_FALSE(open(counts).isOk());
  EXPECT_FALSE(open(oneRecord({int64_t(1) << 40}, 0, 0)).isOk());
  EXPECT_LT(test::peakResidentKiB() - before, 16u * 1024);
}

class SplitGgufTest : public testing::Test {
protected:
  /// Part `index` of `count`, with one tensor.
  std::string writePart(int index, int count, int stated, const std::string &tensor) {
    GgufBuilder builder;
    if (index == 0)
      builder.string("general.architecture", "llama");
    builder.pair("split.no", 2, Bytes().put<uint16_t>(stated).str());
    builder.pair("split.count", 2, Bytes().put<uint16_t>(2).str());
    builder.pair("split.tensors.count", 5, Bytes().put<int32_t>(2).str());
    builder.tensor(tensor, {1}, 0, floats({float(index)}));
    return folder_.write(fmt::format("m-{:05}-of-{:05}.gguf", index + 1, count), builder.build());
  }
  TemporaryFolder folder_;
};

TEST_F(SplitGgufTest, AllPartsAreRead) {
  std::string first = writePart(0, 2, 0, "a"), second = writePart(1, 2, 1, "b");
  auto checkpoint = Checkpoint::open(first);
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  float value;
  std::memcpy(&value, (*checkpoint)->find("b")->bytes.data(), 4);
  EXPECT_EQ(value, 1.0f);
  EXPECT_EQ((*checkpoint)->config().size(), 1u); // the `split.` keys are the container's
  EXPECT_REFUSED(Checkpoint::open(second), invalid, "part 2 of 2", "00001-of-00002.gguf");
}

TEST_F(SplitGgufTest, PartsThatDisagree) {
  std::string first = writePart(0, 2, 0, "a");
  EXPECT_REFUSED(Checkpoint::open(first), StatusCode::NotFound, "m-00002-of-00002.gguf");
  writePart(1, 2, 1, "a");
  EXPECT_REFUSED(Checkpoint::open(first), invalid, "'a' appears twice");
  writePart(1, 2, 0, "b");
  EXPECT_REFUSED(Checkpoint::open(first), invalid, "part 1 of 2", "2 of 2");
  std::filesystem::rename(first, folder_.file("other.gguf"));
  EXPECT_REFUSED(Checkpoint::open(folder_.file("other.gguf")), invalid, "part 1 of 2",
                 "-00001-of-00002.gguf");
}

TEST_F(GgufTest, ReadsStories260K) {
  STRATA_REQUIRE_TEST_DATA("stories260K/stories260K.gguf");
  auto checkpoint = Checkpoint::open(test::testData("stories260K/stories260K.gguf"));
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  EXPECT_EQ((*checkpoint)->tensors().size(), 47u);
  EXPECT_EQ((*checkpoint)->config()["llama.block_count"], 5);
  const Tensor *down = (*checkpoint)->find("blk.0.ffn_down.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, (std::vector<uint64_t>{64, 172}));
  EXPECT_EQ(down->bytes.size(), 64u * 172 * 4);
}

TEST_F(GgufTest, ReadsMixedTypes) {
  STRATA_REQUIRE_TEST_DATA("inferno/tiny.gguf");
  for (const char *name : {"inferno/tiny.gguf", "inferno/tiny_bias.gguf"}) {
    auto checkpoint = Checkpoint::open(test::testData(name));
    ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
    EXPECT_EQ((*checkpoint)->find("blk.0.ffn_down.weight")->type->name, "q4_k");
    EXPECT_EQ((*checkpoint)->find("blk.0.ffn_up.weight")->type->name, "bf16");
    EXPECT_EQ((*checkpoint)->find("blk.0.attn_q.weight")->bytes.size(), 64u * 64 / 32 * 34);
  }
}

TEST_F(GgufTest, RecognisesWhatIsNoModel) {
  EXPECT_REFUSED(Checkpoint::open(folder_.file("absent.gguf")), StatusCode::NotFound,
                 "absent.gguf");
  EXPECT_REFUSED(Checkpoint::open(folder_.write("x.bin", "hello")), invalid, "x.bin", "GGUF");
  EXPECT_REFUSED(Checkpoint::open(folder_.write("x.safetensors", "hello")),
                 StatusCode::InvalidArgument, "x.safetensors", "folder");
  EXPECT_REFUSED(open("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"),
                 invalid, "model.gguf", "Git LFS pointer", "git lfs pull");
}

} // namespace
} // namespace strata
