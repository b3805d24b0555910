#include "tools/run/TensorFile.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <sys/stat.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace strata::run {
namespace {

class TensorFileTest : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    path_ = folder_ + "/out.safetensors";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  size_t filesInFolder() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_, path_;
};

TEST_F(TensorFileTest, HeaderSaysWhereTheValuesLie) {
  auto file = TensorFile::create(path_, "logits", 2, 3);
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE((*file)->write(std::span(values).first(3)).isOk());
  ASSERT_TRUE((*file)->write(std::span(values).last(3)).isOk());
  ASSERT_TRUE((*file)->finish().isOk());

  std::ifstream stream(path_, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ(length % 8, 0u); // the values are aligned
  ASSERT_EQ(bytes.size(), 8 + length + 24);
  auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header, nlohmann::json::parse(
                        R"({"logits":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})"));
  std::vector<float> written(6);
  std::memcpy(written.data(), bytes.data() + 8 + length, 24);
  EXPECT_EQ(written, values);
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(TensorFileTest, NothingAppearsBeforeTheLastValue) {
  {
    auto file = TensorFile::create(path_, "logits", 2, 2);
    ASSERT_TRUE(file.isOk());
    std::vector<float> values(3);
    ASSERT_TRUE((*file)->write(values).isOk());
    EXPECT_FALSE(std::filesystem::exists(path_));
    Status status = (*file)->finish();
    EXPECT_EQ(status.code(), StatusCode::Internal);
    EXPECT_NE(status.message().find("lacks 1 values"), std::string::npos) << status.message();
  }
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(TensorFileTest, OverfullIsRefused) {
  auto file = TensorFile::create(path_, "logits", 1, 2);
  ASSERT_TRUE(file.isOk());
  EXPECT_EQ((*file)->write(std::vector<float>(3)).code(), StatusCode::Internal);
}

TEST_F(TensorFileTest, PipeIsNotReplaced) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(TensorFile::create(path_, "logits", 1, 1).status().code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(TensorFileTest, AbsentFolderAndImpossibleSize) {
  EXPECT_EQ(TensorFile::create(folder_ + "/absent/out", "logits", 1, 1).status().code(),
            StatusCode::NotFound);
  EXPECT_EQ(TensorFile::create(path_, "logits", UINT64_MAX, 2).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(TensorFile::create(path_, "logits", UINT64_MAX / 2, 1).status().code(),
            StatusCode::InvalidArgument);
}

} // namespace
} // namespace strata::run
