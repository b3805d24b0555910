#include "runtime/base/OutputFile.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <sys/stat.h>

#include <gtest/gtest.h>

namespace strata {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "strata-" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    path_ = folder_ + "/out";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Status write(const std::string &path, std::string_view text) {
    STRATA_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::create(path));
    STRATA_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
    return file->publish(path);
  }
  static std::string read(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  size_t filesInFolder() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  std::string folder_, path_;
};

TEST_F(OutputFileTest, AppearsWholeOrNotAtAll) {
  ASSERT_TRUE(write(path_, "old").isOk());
  std::string_view text = "newer";
  {
    auto file = OutputFile::create(path_);
    ASSERT_TRUE(file.isOk()) << file.status().toString();
    ASSERT_TRUE((*file)->append(std::as_bytes(std::span(text))).isOk());
    EXPECT_EQ(read(path_), "old");
  }
  EXPECT_EQ(read(path_), "old");
  EXPECT_EQ(filesInFolder(), 1u);

  auto file = OutputFile::create(path_);
  ASSERT_TRUE(file.isOk());
  ASSERT_TRUE((*file)->writeAt(2, std::as_bytes(std::span(text))).isOk());
  ASSERT_TRUE((*file)->publish(path_).isOk());
  EXPECT_EQ(read(path_), std::string("\0\0newer", 7)); // what was skipped reads as zeros
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(OutputFileTest, ModeFollowsTheMask) {
  mode_t mask = umask(027);
  Status status = write(path_, "x");
  umask(mask);
  ASSERT_TRUE(status.isOk()) << status.toString();
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(OutputFileTest, SymbolicLinkKeepsItsPlace) {
  std::string target = folder_ + "/target";
  for (const char *text : {"first", "second"}) {
    if (!fs::is_symlink(path_))
      fs::create_symlink("target", path_); // leads nowhere yet
    ASSERT_TRUE(write(path_, text).isOk());
    EXPECT_TRUE(fs::is_symlink(path_));
    EXPECT_EQ(read(target), text);
  }
  EXPECT_EQ(filesInFolder(), 2u);
}

TEST_F(OutputFileTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(OutputFile::create(folder_).status().code(), StatusCode::InvalidArgument);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(OutputFile::create(path_).status().code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_EQ(OutputFile::create(folder_ + "/absent/out").status().code(), StatusCode::NotFound);
  EXPECT_EQ(filesInFolder(), 1u);
}

} // namespace
} // namespace strata
