// The container: what is written comes back, nothing half-written stays, a store is only added to.
#include "runtime/plan/PlanFile.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/PlanWriter.h"
#include "test/runtime/plan/TinyPlan.h"

using namespace strata;
using namespace strata::test;
using testing::HasSubstr;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> filesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(PlanFile, HoldsWhatWasWritten) {
  TemporaryFolder folder;
  TinyModel model;
  fb::PlanT plan = tinyPlan();
  Status written = writeTinyPlan(folder / "a.strata", plan, model);
  ASSERT_TRUE(written.isOk()) << written.toString();
  EXPECT_THAT(filesIn(folder.path()), testing::ElementsAre("a.strata"));

  auto file = PlanFile::open(folder / "a.strata");
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  EXPECT_EQ((*file)->plan().stages()->size(), 1u);
  EXPECT_TRUE((*file)->verifySegments().isOk());
  std::span<const std::byte> embedding = (*file)->segment(0);
  ASSERT_EQ(embedding.size(), model.embedding.size() * 4); // 40 x 32 F32 = 5120 bytes
  EXPECT_EQ(std::memcmp(embedding.data(), model.embedding.data(), embedding.size()), 0);
  for (uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ((*file)->plan().segments()->Get(i)->file_offset() % 4096, 0u);
}

TEST(PlanFile, SameBytesOnRepetition) {
  TemporaryFolder folder;
  for (const char *name : {"a", "b"}) {
    fb::PlanT plan = tinyPlan({.stages = 2});
    ASSERT_TRUE(writeTinyPlan(folder / name, plan, TinyModel()).isOk());
  }
  EXPECT_EQ(readFile(folder / "a"), readFile(folder / "b"));
}

TEST(PlanFile, StoreIsOnlyAddedTo) {
  TemporaryFolder folder;
  TinyModel model;
  fb::PlanT plan = tinyPlan();
  ASSERT_TRUE(
      writeTinyPlan(folder / "a.strata", plan, model, fb::WeightsPlace::Store, "weights").isOk());
  std::vector<std::string> before = filesIn(folder / "weights");
  EXPECT_EQ(before.size(), 4u); // embedding, two layers, head
  auto timeOf = [&](const std::string &name) {
    return std::filesystem::last_write_time(folder / "weights/" + name);
  };
  std::filesystem::last_write_time(folder / "weights/" + before[0],
                                   timeOf(before[0]) - std::chrono::hours(1));
  auto old = timeOf(before[0]);

  // Another layer 1: one file more, the others untouched.
  model.layer[1].q[0] += 1;
  fb::PlanT again = tinyPlan();
  ASSERT_TRUE(
      writeTinyPlan(folder / "b.strata", again, model, fb::WeightsPlace::Store, "weights").isOk());
  EXPECT_EQ(filesIn(folder / "weights").size(), 5u);
  EXPECT_EQ(timeOf(before[0]), old);

  auto file = PlanFile::open(folder / "b.strata");
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  EXPECT_TRUE((*file)->verifySegments().isOk());
  EXPECT_EQ((*file)->segment(0).size(), 5120u);

  std::string name = (*file)->plan().segments()->Get(1)->name()->str();
  std::filesystem::resize_file(folder / "weights/" + name, 100);
  EXPECT_THAT(PlanFile::open(folder / "b.strata").status().toString(),
              HasSubstr("has 100 bytes but the plan needs 16512")); // 128 + 4 * 4096
  std::filesystem::remove(folder / "weights/" + name);
  EXPECT_EQ(PlanFile::open(folder / "b.strata").status().code(), StatusCode::NotFound);
}

TEST(PlanFile, StoreMendsADamagedSegment) {
  TemporaryFolder folder;
  auto write = [&] {
    fb::PlanT plan = tinyPlan();
    return writeTinyPlan(folder / "a.strata", plan, TinyModel(), fb::WeightsPlace::Store,
                         "weights");
  };
  ASSERT_TRUE(write().isOk());
  std::string segment = folder / "weights/" + filesIn(folder / "weights")[1];
  std::string intact = readFile(segment);
  std::string damaged = intact;
  damaged[damaged.size() / 2] ^= 1;
  std::ofstream(segment, std::ios::binary) << damaged;
  auto file = PlanFile::open(folder / "a.strata");
  ASSERT_TRUE(file.isOk());
  EXPECT_EQ((*file)->verifySegments().code(), StatusCode::InvalidData);
  ASSERT_TRUE(write().isOk());
  EXPECT_EQ(readFile(segment), intact);
}

TEST(PlanFile, WithoutWeights) {
  TemporaryFolder folder;
  fb::PlanT plan = tinyPlan();
  ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel(), fb::WeightsPlace::None).isOk());
  auto file = PlanFile::open(folder / "a");
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  EXPECT_TRUE((*file)->segment(0).empty());
  EXPECT_TRUE((*file)->verifySegments().isOk());
}

TEST(PlanFile, DamagedWeightsAreFoundByTheirName) {
  TemporaryFolder folder;
  fb::PlanT plan = tinyPlan();
  ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
  std::string bytes = readFile(folder / "a");
  bytes[plan.segments[2]->file_offset + 5] ^= 1;
  writeFile(folder / "a", bytes);
  auto file = PlanFile::open(folder / "a");
  ASSERT_TRUE(file.isOk());
  EXPECT_THAT((*file)->verifySegments().toString(), HasSubstr("segment 'layer 1' of 16512 bytes"));
}

TEST(PlanFile, HeaderErrorsNameTheNumbers) {
  TemporaryFolder folder;
  fb::PlanT plan = tinyPlan();
  ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
  const std::string good = readFile(folder / "a");
  auto openWith = [&](size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    writeFile(folder / "b", bytes);
    return PlanFile::open(folder / "b").status();
  };
  EXPECT_THAT(openWith(0, 'X').toString(), HasSubstr("does not begin as a plan does"));
  EXPECT_EQ(openWith(8, 9).code(), StatusCode::Unimplemented);
  EXPECT_THAT(
      openWith(8, 9).toString(),
      HasSubstr(fmt::format("format version 9 but this build reads {}", planFormatVersion)));
  EXPECT_THAT(openWith(48, char(good[48] ^ 1)).toString(), HasSubstr("the file is damaged"));
  EXPECT_THAT(openWith(good.size() - 1, char(good.back() ^ 1)).toString(),
              HasSubstr("the file is damaged"));
  EXPECT_THAT(openWith(0, 'X').toString(), HasSubstr("plan '" + (folder / "b")));
  EXPECT_EQ(PlanFile::open(folder / "absent").status().code(), StatusCode::NotFound);
}

TEST(PlanWriter, LeavesNothingBehindOnFailure) {
  TemporaryFolder folder;
  fb::PlanT plan = tinyPlan();
  plan.stages[0]->arena_bytes += 4;
  Status status = writeTinyPlan(folder / "a", plan, TinyModel());
  EXPECT_EQ(status.code(), StatusCode::InvalidData);
  EXPECT_THAT(status.toString(), HasSubstr("arena_bytes"));
  EXPECT_TRUE(filesIn(folder.path()).empty());

  // An old plan stays until the new one is whole.
  writeFile(folder / "a", "old");
  EXPECT_FALSE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
  EXPECT_EQ(readFile(folder / "a"), "old");

  auto writer = PlanWriter::create(folder / "b", fb::WeightsPlace::Store, "w");
  ASSERT_TRUE(writer.isOk());
  auto failed = (*writer)->addSegment([](SegmentSink &sink) -> Status {
    std::byte one{1};
    STRATA_RETURN_IF_ERROR(sink.write({&one, 1}));
    return makeError(StatusCode::Cancelled, "stop");
  });
  EXPECT_EQ(failed.status().code(), StatusCode::Cancelled);
  EXPECT_TRUE(filesIn(folder / "w").empty());
}

TEST(PlanWriter, RefusesWhatDoesNotFitItsPlace) {
  TemporaryFolder folder;
  EXPECT_EQ(PlanWriter::create(folder / "a", fb::WeightsPlace::Store).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(PlanWriter::create(folder / "none/a", fb::WeightsPlace::Inside).status().code(),
            StatusCode::NotFound);
  auto writer = PlanWriter::create(folder / "a", fb::WeightsPlace::None);
  ASSERT_TRUE(writer.isOk());
  EXPECT_EQ((*writer)->addSegment([](SegmentSink &) { return Status(); }).status().code(),
            StatusCode::InvalidArgument);
}

} // namespace
