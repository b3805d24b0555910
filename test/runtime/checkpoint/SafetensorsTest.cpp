// Safetensors and Hugging Face folders: what is right is read, what is broken is refused by name.
#include <gmock/gmock.h>

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/SafetensorsFile.h"
#include "test/TestData.h"
#include "test/runtime/checkpoint/FileBuilders.h"

namespace strata {
namespace {

using test::Bytes;
using test::safetensors;
using test::TemporaryFolder;

constexpr StatusCode invalid = StatusCode::InvalidData;

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

/// A header of these entries.
std::string header(std::initializer_list<std::string> entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

class SafetensorsTest : public testing::Test {
protected:
  Result<SafetensorsFile> open(std::string_view bytes) {
    return SafetensorsFile::open(folder_.write("model.safetensors", bytes));
  }
  /// One entry of the given fields over `dataBytes` bytes of data.
  Result<SafetensorsFile> openOne(std::string_view dtype, std::string_view shape,
                                  std::string_view offsets, size_t dataBytes) {
    return open(
        safetensors(header({entry("t", dtype, shape, offsets)}), std::string(dataBytes, '\1')));
  }
  TemporaryFolder folder_;
};

TEST_F(SafetensorsTest, ReadsEntriesInAnyOrder) {
  // b: 2 x 3 F16 = 12 bytes at 0; a: a scalar F32 at 12; c: nothing at 16; 16 bytes in all.
  std::string text =
      header({R"("__metadata__":{"format":"pt"})", entry("a", "F32", "[]", "[12,16]"),
              entry("b", "F16", "[2,3]", "[0,12]"), entry("c", "BF16", "[0,5]", "[16,16]")});
  text.append(3, ' '); // writers pad the header
  auto file = open(safetensors(text, std::string(12, '\0') + Bytes().put(2.5f).str()));
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  ASSERT_EQ(file->entries().size(), 3u);
  float value;
  std::memcpy(&value, file->find("a")->bytes.data(), 4);
  EXPECT_EQ(value, 2.5f);
  EXPECT_TRUE(file->find("a")->shape.empty());
  EXPECT_EQ(file->find("b")->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(file->find("c")->bytes.size(), 0u);
}

TEST_F(SafetensorsTest, ZeroByteTensorsMayStandAnywhere) {
  std::string text =
      header({entry("full", "U8", "[4]", "[0,4]"), entry("none", "U8", "[0]", "[0,0]")});
  EXPECT_TRUE(open(safetensors(text, "1234")).isOk());
  EXPECT_TRUE(open(safetensors("{}", "")).isOk());
}

TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
  std::string whole = safetensors(header({entry("t", "F32", "[2]", "[0,8]")}), "12345678");
  ASSERT_TRUE(open(whole).isOk());
  for (size_t size = 0; size < whole.size(); ++size) {
    auto file = open(whole.substr(0, size));
    ASSERT_FALSE(file.isOk()) << size;
    EXPECT_EQ(file.status().code(), invalid);
  }
  EXPECT_REFUSED(open(whole + "9"), invalid, "the tensors end at 8", "9 bytes", "1 bytes belong");
  EXPECT_REFUSED(open(whole.substr(0, whole.size() - 1)), invalid, "'t'", "0..8", "ends at 7");
}

TEST_F(SafetensorsTest, HeaderLengths) {
  std::string tail(16, ' ');
  for (uint64_t length : {uint64_t(1) << 63, UINT64_MAX, uint64_t(100'000'001)})
    EXPECT_REFUSED(open(Bytes().put(length).text(tail).str()), invalid,
                   fmt::format("header length is {}", length), "100000000");
  for (uint64_t length : {17u, 24u, 100'000'000u})
    EXPECT_REFUSED(open(Bytes().put(length).text(tail).str()), invalid,
                   fmt::format("needs {} bytes", length), "24 bytes");
  EXPECT_REFUSED(open(safetensors("", "")), invalid, "0 bytes", "does not begin with '{'");
  EXPECT_REFUSED(open(safetensors("{", "")), invalid, "does not end with '}'");
}

TEST_F(SafetensorsTest, HeadersThatAreNotStrictJson) {
  EXPECT_REFUSED(open(safetensors(" {}", "")), invalid, "does not begin with '{'");
  EXPECT_REFUSED(open(safetensors("[{}]", "")), invalid, "does not begin with '{'");
  EXPECT_REFUSED(open(safetensors("{}\n", "")), invalid, "does not end with '}'");
  EXPECT_REFUSED(open(safetensors("{}{}", "")), invalid, "not valid JSON at byte 3");
  EXPECT_REFUSED(open(safetensors(std::string("{}\0}", 4), "")), invalid, "not valid JSON at byte");
  EXPECT_REFUSED(open(safetensors("{\"\xFF\":1}", "")), invalid, "not valid JSON");
  EXPECT_REFUSED(open(safetensors("{/**/}", "")), invalid, "not valid JSON");
  std::string nested = fmt::format(R"({{"t":{:[<100000}}})", "");
  EXPECT_REFUSED(open(safetensors(nested, "")), invalid, "nested deeper than 64");
  std::string twice = header({entry("t", "U8", "[1]", "[0,1]"), entry("t", "U8", "[1]", "[1,2]")});
  EXPECT_REFUSED(open(safetensors(twice, "12")), invalid, "'t' twice");
  EXPECT_REFUSED(open(safetensors(R"({"t":{"dtype":"U8","dtype":"U8"}})", "")), invalid,
                 "'dtype' twice");
}

TEST_F(SafetensorsTest, Metadata) {
  EXPECT_REFUSED(open(safetensors(R"({"__metadata__":[]})", "")), invalid, "'__metadata__'",
                 "an array");
  EXPECT_REFUSED(open(safetensors(R"({"__metadata__":{"n":3}})", "")), invalid, "'__metadata__'",
                 "'n'", "an integer");
}

TEST_F(SafetensorsTest, Fields) {
  EXPECT_REFUSED(open(safetensors(R"({"t":3})", "")), invalid, "'t'", "an integer");
  EXPECT_REFUSED(open(safetensors(R"({"t":{"dtype":"U8","shape":[]}})", "")), invalid, "'t'",
                 "no 'data_offsets'");
  EXPECT_REFUSED(open(safetensors(R"({"t":{"shape":[],"data_offsets":[0,0]}})", "")), invalid,
                 "'t'", "no 'dtype'");
  EXPECT_REFUSED(
      open(safetensors(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"stride":1}})", "")),
      invalid, "'t'", "'stride'");
  EXPECT_REFUSED(openOne("U9", "[1]", "[0,1]", 1), invalid, "'t'", "'U9'", "not known");
  EXPECT_REFUSED(openOne("U8", "1", "[0,1]", 1), invalid, "'shape' of tensor 't'", "an integer");
  EXPECT_REFUSED(openOne("U8", "[1]", "[0]", 1), invalid, "'data_offsets' of tensor 't' has 1");
  EXPECT_REFUSED(openOne("U8", "[1]", "[0,1,2]", 1), invalid, "'data_offsets'", "has 3");
  EXPECT_REFUSED(openOne("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]", 1), invalid, "'t'",
                 "17 dimensions", "16");
}

TEST_F(SafetensorsTest, NumbersAreExactIntegers) {
  for (const char *number : {"1e2", "-1", "1.0", "18446744073709551616", "\"1\"", "null", "true"}) {
    EXPECT_REFUSED(openOne("U8", fmt::format("[{}]", number), "[0,1]", 1), invalid,
                   "'shape' of tensor 't'", "integer of 0 to 2^64 - 1");
    EXPECT_REFUSED(openOne("U8", "[1]", fmt::format("[0,{}]", number), 1), invalid,
                   "'data_offsets' of tensor 't'", "integer of 0 to 2^64 - 1");
  }
  // 2^53 + 1 is not a double: the message shows that it was kept exactly.
  EXPECT_REFUSED(openOne("U8", "[9007199254740993]", "[0,9007199254740993]", 1), invalid, "'t'",
                 "0..9007199254740993", "ends at 1");
}

TEST_F(SafetensorsTest, SizesAndPlaces) {
  EXPECT_REFUSED(openOne("U8", "[4294967296,4294967296]", "[0,0]", 0), invalid, "'t'",
                 "4294967296, 4294967296", "64 bits");
  EXPECT_REFUSED(openOne("F32", "[1152921504606846976]", "[0,0]", 0), invalid, "'t'", "64 bits");
  EXPECT_REFUSED(openOne("F4", "[3]", "[0,2]", 2), invalid, "'t'", "3 elements of F4");
  EXPECT_TRUE(openOne("F4", "[4]", "[0,2]", 2).isOk());
  EXPECT_REFUSED(openOne("F32", "[2]", "[0,7]", 7), invalid, "'t'", "0..7 (7)", "needs 8");
  EXPECT_REFUSED(openOne("U8", "[1]", "[2,1]", 2), invalid, "'t'", "begins at 2", "end at 1");
  EXPECT_REFUSED(openOne("U8", "[1]", "[1,2]", 2), invalid, "'t' begins at 1", "a hole");
  std::string hole = header({entry("a", "U8", "[1]", "[0,1]"), entry("b", "U8", "[1]", "[2,3]")});
  EXPECT_REFUSED(open(safetensors(hole, "123")), invalid, "'b' begins at 2", "ends at 1", "a hole");
  std::string overlap =
      header({entry("a", "U8", "[2]", "[0,2]"), entry("b", "U8", "[2]", "[1,3]")});
  EXPECT_REFUSED(open(safetensors(overlap, "123")), invalid, "'b' begins at 1", "ends at 2",
                 "overlapping");
}

TEST_F(SafetensorsTest, HostileSizesTakeNoMemory) {
  uint64_t before = test::peakResidentKiB();
  EXPECT_FALSE(open(Bytes().put<uint64_t>(99'999'999).text("{").str()).isOk());
  EXPECT_FALSE(openOne("U8", "[1099511627776]", "[0,1099511627776]", 1).isOk());
  EXPECT_LT(test::peakResidentKiB() - before, 16u * 1024);
}

class FolderTest : public testing::Test {
protected:
  void SetUp() override { folder_.write("config.json", R"({"model_type":"llama"})"); }
  Result<std::unique_ptr<Checkpoint>> open() { return Checkpoint::open(folder_.path()); }
  std::string one(std::string_view name, float value) {
    return safetensors(header({entry(name, "F32", "[1]", "[0,4]")}), Bytes().put(value).str());
  }
  TemporaryFolder folder_;
};

TEST_F(FolderTest, ReadsOneFileAndItsConfigurations) {
  folder_.write("model.safetensors", one("w", 3));
  folder_.write("generation_config.json", R"({"eos_token_id":[7,5]})");
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  EXPECT_EQ((*checkpoint)->format(), CheckpointFormat::HuggingFace);
  EXPECT_EQ((*checkpoint)->config()["model_type"], "llama");
  EXPECT_EQ((*checkpoint)->generationConfig()["eos_token_id"].size(), 2u);
  EXPECT_EQ((*checkpoint)->find("w")->type->name, "f32");
  auto vocabulary = (*checkpoint)->vocabulary();
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_FALSE(vocabulary->has_value());
  auto ends = (*checkpoint)->configuredEndOfGeneration();
  ASSERT_TRUE(ends.isOk());
  EXPECT_EQ(*ends, (std::vector<int32_t>{7, 5}));
}

TEST_F(FolderTest, ReadsShardsByTheirIndex) {
  folder_.write("model.safetensors.index.json",
                R"({"metadata":{"total_size":8},"weight_map":{"x":"s1.st","y":"s2.st"}})");
  folder_.write("s1.st", one("x", 1));
  std::string two =
      header({entry("y", "F32", "[1]", "[0,4]"), entry("extra", "I64", "[1]", "[4,12]")});
  folder_.write("s2.st", safetensors(two, std::string(12, '\0')));
  folder_.write("model.safetensors", "the index goes before this");
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  EXPECT_EQ((*checkpoint)->tensors().size(), 2u);
  EXPECT_EQ((*checkpoint)->find("extra"), nullptr);
  ASSERT_EQ((*checkpoint)->notes().size(), 1u);
  EXPECT_NE((*checkpoint)->notes()[0].find("'s2.st' holds 1 tensors"), std::string::npos);
}

TEST_F(FolderTest, IndexesThatLeadAstray) {
  for (const char *name : {"../s.st", "/etc/passwd", "a/b", "a\\\\b", "..", ".", "", "a\\u0000b"}) {
    folder_.write("model.safetensors.index.json",
                  fmt::format(R"({{"weight_map":{{"x":"{}"}}}})", name));
    EXPECT_REFUSED(open(), invalid, "tensor 'x'", "plain file names");
  }
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"x":3}})");
  EXPECT_REFUSED(open(), invalid, "tensor 'x'", "an integer");
  folder_.write("model.safetensors.index.json", R"({"weights":{}})");
  EXPECT_REFUSED(open(), invalid, "no object 'weight_map'");
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"x":"s.st","x":"s.st"}})");
  EXPECT_REFUSED(open(), invalid, "'x' twice");
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"x":"s.st"}})");
  EXPECT_REFUSED(open(), StatusCode::NotFound, "s.st");
  folder_.write("s.st", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n");
  EXPECT_REFUSED(open(), invalid, "s.st", "Git LFS pointer");
  folder_.write("s.st", one("y", 1));
  EXPECT_REFUSED(open(), invalid, "tensor 'x'", "'s.st'", "does not hold it");
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"x":"r.st","y":"s.st"}})");
  folder_.write("r.st", safetensors(header({entry("x", "F32", "[1]", "[0,4]"),
                                            entry("y", "F32", "[1]", "[4,8]")}),
                                    "12345678"));
  EXPECT_REFUSED(open(), invalid, "'y' lies in two shards", "'r.st'", "'s.st'");
}

TEST_F(FolderTest, FoldersThatAreNoCheckpoint) {
  EXPECT_REFUSED(open(), StatusCode::NotFound, "model.safetensors", "index.json");
  folder_.write("model.safetensors", one("w", 1));
  folder_.write("config.json", "[1]");
  EXPECT_REFUSED(open(), invalid, "config.json", "an array");
  folder_.write("config.json", R"({"a":1,})");
  EXPECT_REFUSED(open(), invalid, "config.json", "byte 8");
  folder_.write("config.json", R"({"a":1,"a":2})");
  EXPECT_REFUSED(open(), invalid, "config.json", "'a' twice");
  std::filesystem::remove(folder_.file("config.json"));
  EXPECT_REFUSED(open(), StatusCode::NotFound, "no config.json");
}

TEST_F(FolderTest, PointersOfGitLfsAreRecognised) {
  const char *pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
  folder_.write("model.safetensors", pointer);
  EXPECT_REFUSED(open(), invalid, "model.safetensors", "Git LFS pointer", "git lfs pull");
  folder_.write("model.safetensors", one("w", 1));
  folder_.write("tokenizer.json", pointer);
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint.isOk());
  EXPECT_REFUSED((*checkpoint)->vocabulary(), invalid, "tokenizer.json", "Git LFS pointer");
}

TEST_F(FolderTest, TypesThatAreNoWeightsAreRefusedByName) {
  folder_.write("model.safetensors",
                safetensors(header({entry("w", "I64", "[1]", "[0,8]")}), "12345678"));
  EXPECT_REFUSED(open(), StatusCode::Unimplemented, "'w'", "I64", "bf16");
}

TEST_F(FolderTest, ForeignQuantisationIsRefusedByName) {
  folder_.write("model.safetensors", one("w", 1));
  for (const char *method : {"gptq", "awq", "bitsandbytes", "fp8", "compressed-tensors"}) {
    folder_.write(
        "config.json",
        fmt::format(R"({{"model_type":"llama","quantization_config":{{"quant_method":"{}"}}}})",
                    method));
    EXPECT_REFUSED(open(), StatusCode::Unimplemented, "'quantization_config'", method, "GGUF");
  }
  folder_.write("config.json", R"({"quantization_config":{"bits":4}})");
  EXPECT_REFUSED(open(), StatusCode::Unimplemented, "an unnamed method");
  folder_.write("config.json", R"({"model_type":"llama","quantization_config":null})");
  EXPECT_TRUE(open().isOk());
}

TEST_F(FolderTest, EightBitWeightsWithScalesAreRefused) {
  for (const char *scale : {"a.weight_scale_inv", "a.weight_scale"}) {
    folder_.write("model.safetensors",
                  safetensors(header({entry("a.weight", "F8_E4M3", "[4]", "[0,4]"),
                                      entry(scale, "F32", "[1]", "[4,8]")}),
                              "12345678"));
    EXPECT_REFUSED(open(), StatusCode::Unimplemented, "'a.weight'", scale);
  }
  folder_.write("model.safetensors",
                safetensors(header({entry("a.weight", "F8_E4M3", "[4]", "[0,4]")}), "1234"));
  EXPECT_TRUE(open().isOk());
}

TEST_F(FolderTest, ABareConfigurationHasNoWeights) {
  auto checkpoint = Checkpoint::open(folder_.file("config.json"));
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
  EXPECT_EQ((*checkpoint)->format(), CheckpointFormat::ConfigOnly);
  EXPECT_TRUE((*checkpoint)->tensors().empty());
  EXPECT_EQ((*checkpoint)->config()["model_type"], "llama");
  EXPECT_TRUE((*checkpoint)->generationConfig().is_null());
}

TEST(JsonTest, KeepsOrderAndIsLinearInKeys) {
  std::string text = "{\"k0\":0";
  for (uint64_t i = 1; i < 300000; ++i)
    text += fmt::format(",\"k{}\":{}", (i * 7919) % 300000, i);
  text += "}";
  // A quadratic search would take minutes here.
  auto document = parseJson(text);
  ASSERT_TRUE(document.isOk()) << document.status().toString();
  EXPECT_EQ(document->size(), 300000u);
  EXPECT_EQ(document->begin().key(), "k0");
  auto small = parseJson(R"({"b":[1,{"c":null}],"a":-2.5,"d":"\u00e9"})");
  ASSERT_TRUE(small.isOk());
  EXPECT_EQ(small->dump(), "{\"b\":[1,{\"c\":null}],\"a\":-2.5,\"d\":\"\xC3\xA9\"}");
}

TEST(RealFoldersTest, AllAreRead) {
  STRATA_REQUIRE_TEST_DATA("fixtures");
  std::vector<std::string> folders = {test::testData("stories260K-hf"), test::testData("inferno")};
  for (const auto &folder : std::filesystem::directory_iterator(test::testData("fixtures")))
    folders.push_back(folder.path().string());
  EXPECT_GE(folders.size(), 12u);
  for (const std::string &folder : folders) {
    auto checkpoint = Checkpoint::open(folder);
    ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().toString();
    EXPECT_GT((*checkpoint)->tensors().size(), 10u) << folder;
    for (const Tensor &tensor : (*checkpoint)->tensors()) {
      uint64_t elements = 1;
      for (uint64_t extent : tensor.shape)
        elements *= extent;
      EXPECT_EQ(tensor.type->bytesFor(elements), tensor.bytes.size()) << tensor.name;
    }
  }
}

} // namespace
} // namespace strata
