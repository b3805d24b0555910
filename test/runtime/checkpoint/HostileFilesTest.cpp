// What stands in a model's folder without being what its name says: every file that is read, cut at
// every byte, as a Git LFS pointer, as a pipe, as a folder. No crash, no hang, an error with a
// name.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/checkpoint/Checkpoint.h"
#include "test/runtime/checkpoint/FileBuilders.h"

namespace strata {
namespace {

using test::Bytes;
using test::GgufBuilder;
using testing::HasSubstr;

constexpr const char *lfsPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";

std::string oneTensor(std::string_view name) {
  std::string header =
      fmt::format(R"({{"{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}})", name);
  return test::safetensors(header, std::string(4, '\0'));
}

/// A folder of two shards with a vocabulary.
class HostileFolder : public testing::Test {
protected:
  void SetUp() override {
    for (const auto &[name, content] : files)
      folder_.write(name, content);
  }

  /// What reading the weights and the vocabulary says.
  Status read() const {
    auto checkpoint = Checkpoint::open(folder_.path());
    if (!checkpoint.isOk())
      return checkpoint.status();
    if (Status status = (*checkpoint)->configuredEndOfGeneration().status(); !status.isOk())
      return status;
    return (*checkpoint)->vocabulary().status();
  }

  const std::vector<std::pair<std::string, std::string>> files = {
      {"config.json", R"({"model_type":"llama","eos_token_id":1})"},
      {"generation_config.json", R"({"eos_token_id":[1,0]})"},
      {"model.safetensors.index.json",
       R"({"weight_map":{"x":"1.safetensors","y":"2.safetensors"}})"},
      {"1.safetensors", oneTensor("x")},
      {"2.safetensors", oneTensor("y")},
      {"tokenizer.json",
       R"({"added_tokens":[{"id":0,"content":"<unk>","special":true}],"model":{"type":"BPE",)"
       R"("unk_token":"<unk>","vocab":{"<unk>":0,"a":1},"merges":[]},"normalizer":null,)"
       R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}})"},
      {"tokenizer_config.json", R"({"add_bos_token":false})"},
  };
  test::TemporaryFolder folder_;
};

TEST_F(HostileFolder, IsReadAsItStands) { EXPECT_TRUE(read().isOk()) << read().toString(); }

TEST_F(HostileFolder, EveryTruncationOfEveryFileIsRefusedByName) {
  for (const auto &[name, content] : files) {
    for (size_t size = 0; size < content.size(); ++size) {
      folder_.write(name, content.substr(0, size));
      Status status = read();
      ASSERT_FALSE(status.isOk()) << name << " cut at " << size;
      ASSERT_EQ(status.code(), StatusCode::InvalidData) << status.toString();
      ASSERT_THAT(status.toString(), HasSubstr(name));
    }
    folder_.write(name, content);
  }
}

TEST_F(HostileFolder, EveryFileMayBeAPointerOfGitLfs) {
  for (const auto &[name, content] : files) {
    folder_.write(name, lfsPointer);
    EXPECT_THAT(read().toString(), testing::AllOf(HasSubstr(name), HasSubstr("Git LFS pointer"),
                                                  HasSubstr("git lfs pull")));
    folder_.write(name, content);
  }
}

TEST_F(HostileFolder, PipesAndFoldersAreNoFiles) {
  for (const auto &[name, content] : files) {
    std::filesystem::remove(folder_.file(name));
    ASSERT_EQ(mkfifo(folder_.file(name).c_str(), 0600), 0);
    EXPECT_THAT(read().toString(), HasSubstr(name + "' is not a regular file"));
    std::filesystem::remove(folder_.file(name));
    std::filesystem::create_directory(folder_.file(name));
    EXPECT_THAT(read().toString(), HasSubstr(name + "' is not a regular file"));
    std::filesystem::remove(folder_.file(name));
    folder_.write(name, content);
  }
}

TEST_F(HostileFolder, FilesThatAreMissing) {
  for (const char *name : {"config.json", "1.safetensors", "2.safetensors"}) {
    std::filesystem::rename(folder_.file(name), folder_.file("away"));
    Status status = read();
    EXPECT_EQ(status.code(), StatusCode::NotFound) << status.toString();
    EXPECT_THAT(status.toString(), HasSubstr(name));
    std::filesystem::rename(folder_.file("away"), folder_.file(name));
  }
}

TEST_F(HostileFolder, BytesThatAreNoUtf8) {
  for (const char *name : {"config.json", "generation_config.json", "model.safetensors.index.json",
                           "tokenizer.json", "tokenizer_config.json"}) {
    std::string before;
    for (const auto &[file, content] : files)
      if (file == name)
        before = content;
    folder_.write(name, before.substr(0, before.size() - 1) + ",\"x\":\"\xC3\x28\"}");
    EXPECT_THAT(read().toString(), testing::AllOf(HasSubstr(name), HasSubstr("not valid JSON")));
    folder_.write(name, before);
  }
}

/// Two parts of a split file.
class HostileParts : public testing::Test {
protected:
  std::string part(uint16_t number, std::string_view tensor, uint16_t count = 2,
                   int32_t tensors = 2) {
    GgufBuilder builder;
    if (number == 0)
      builder.string("general.architecture", "llama");
    builder.pair("split.no", 2, Bytes().put(number).str());
    builder.pair("split.count", 2, Bytes().put(count).str());
    builder.pair("split.tensors.count", 5, Bytes().put(tensors).str());
    return builder.tensor(tensor, {1}, 0, std::string(4, '\0')).build();
  }
  Status read(const std::string &first, const std::string &second) {
    folder_.write("m-00001-of-00002.gguf", first);
    folder_.write("m-00002-of-00002.gguf", second);
    return Checkpoint::open(folder_.file("m-00001-of-00002.gguf")).status();
  }
  test::TemporaryFolder folder_;
};

TEST_F(HostileParts, CountsThatDisagree) {
  EXPECT_TRUE(read(part(0, "a"), part(1, "b")).isOk());
  EXPECT_THAT(read(part(0, "a", 2, 3), part(1, "b")).toString(),
              HasSubstr("key 'split.tensors.count' is 3 but the 2 parts hold 2 tensors"));
  EXPECT_THAT(read(part(0, "a", 2, -1), part(1, "b")).toString(),
              HasSubstr("'split.tensors.count' is -1; it must be 0 to"));
  EXPECT_THAT(read(part(0, "a"), part(1, "b", 3)).toString(),
              HasSubstr("says that it is part 2 of 3, but its name and the first part say 2 of 2"));
  EXPECT_THAT(
      read(part(0, "a", 3), part(1, "b")).toString(),
      HasSubstr("the file is part 1 of 3, whose name must end with '-00001-of-00003.gguf'"));
}

TEST_F(HostileParts, EveryTruncationOfALaterPart) {
  const std::string whole = part(1, "b");
  for (size_t size = 0; size < whole.size(); ++size) {
    Status status = read(part(0, "a"), whole.substr(0, size));
    ASSERT_EQ(status.code(), StatusCode::InvalidData) << size;
    ASSERT_THAT(status.toString(), HasSubstr("m-00002-of-00002.gguf"));
  }
  EXPECT_THAT(read(part(0, "a"), lfsPointer).toString(), HasSubstr("m-00002-of-00002.gguf"));
}

TEST_F(HostileParts, PipesAreNoFiles) {
  ASSERT_EQ(mkfifo(folder_.file("m.gguf").c_str(), 0600), 0);
  EXPECT_THAT(Checkpoint::open(folder_.file("m.gguf")).status().toString(),
              HasSubstr("m.gguf' is not a regular file"));
}

} // namespace
} // namespace strata
