// Small right plans, for PlanFuzz to start from: FlatBuffers alone, and one whole file.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "test/runtime/plan/TinyPlan.h"

using namespace strata;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: MakePlanSeeds FOLDER\n");
    return 1;
  }
  std::filesystem::path folder = std::filesystem::path(argv[1]) / "PlanFuzz";
  std::filesystem::create_directories(folder);
  for (uint32_t stages : {1u, 2u}) {
    fb::PlanT plan = test::tinyPlan({.stages = stages});
    plan.vocabulary = std::make_unique<fb::VocabularyT>();
    plan.vocabulary->tokens = {'a', 'b', 'c'};
    plan.vocabulary->token_ends = {1, 3};
    plan.vocabulary->kinds = {1, 1};
    plan.vocabulary->scores = {0, -1};
    plan.vocabulary->model = 1;
    std::vector<uint8_t> bytes = test::packPlan(plan);
    std::ofstream(folder / std::to_string(stages), std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  }
  fb::PlanT plan = test::tinyPlan();
  Status status = test::writeTinyPlan((folder / "file").string(), plan, test::TinyModel());
  if (!status.isOk())
    std::fprintf(stderr, "%s\n", status.toString().c_str());
  return status.isOk() ? 0 : 1;
}
