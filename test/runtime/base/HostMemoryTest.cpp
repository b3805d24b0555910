#include "runtime/base/HostMemory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace strata {
namespace {

class HostMemoryTest : public testing::Test {
protected:
  void SetUp() override {
    root_ = testing::TempDir() + "strata-memory-" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    put("meminfo",
        "MemTotal:       16000 kB\nMemFree:          100 kB\nMemAvailable:    9000 kB\n");
    files_ = {root_ + "/meminfo", root_ + "/membership", root_ + "/cgroups"};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string &name, const std::string &text) {
    std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::string root_;
  HostMemoryFiles files_;
};

TEST_F(HostMemoryTest, NothingSaysAnything) {
  EXPECT_EQ(availableHostBytes({"/absent", "/absent", "/absent"}), UINT64_MAX);
}

TEST_F(HostMemoryTest, TheMachineAlone) { EXPECT_EQ(availableHostBytes(files_), 9000u * 1024); }

TEST_F(HostMemoryTest, TheTightestGroupDecides) {
  put("membership", "0::/outer/inner\n");
  put("cgroups/outer/inner/memory.max", "max\n");
  put("cgroups/outer/inner/memory.current", "5000\n");
  EXPECT_EQ(availableHostBytes(files_), 9000u * 1024);
  put("cgroups/outer/memory.max", "10000\n");
  put("cgroups/outer/memory.current", "7000\n");
  EXPECT_EQ(availableHostBytes(files_), 3000u);
  put("cgroups/outer/memory.stat", "anon 6000\ninactive_file 500\nactive_file 400\n");
  EXPECT_EQ(availableHostBytes(files_), 3500u);
  put("cgroups/outer/inner/memory.max", "4000\n"); // used up already
  EXPECT_EQ(availableHostBytes(files_), 0u);
}

TEST_F(HostMemoryTest, AContainersOwnGroupIsTheRoot) {
  put("membership", "0::/docker/0123\n");
  put("cgroups/memory.max", "10000\n");
  put("cgroups/memory.current", "1000\n");
  EXPECT_EQ(availableHostBytes(files_), 9000u);
}

TEST_F(HostMemoryTest, VersionOne) {
  put("membership", "4:memory:/job\n3:cpu,cpuacct:/\n");
  put("cgroups/memory/job/memory.limit_in_bytes", "10000\n");
  put("cgroups/memory/job/memory.usage_in_bytes", "4000\n");
  put("cgroups/memory/job/memory.stat", "cache 900\ntotal_inactive_file 1000\n");
  EXPECT_EQ(availableHostBytes(files_), 7000u);
}

} // namespace
} // namespace strata
