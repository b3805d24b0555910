// strata-run verify: every check of loading, and the content of every weight segment.
#include <memory>

#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"
#include "tools/run/Prompt.h"

namespace strata::run {
namespace {

Status verify(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> file, PlanFile::open(path));
  STRATA_RETURN_IF_ERROR(file->verifySegments());
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, planTokenizer(*file));

  const fb::Plan &plan = file->plan();
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count(plan.segments()); ++i)
    bytes += plan.segments()->Get(i)->bytes();
  size_t forwards = 0;
  for (const fb::Stage *stage : *plan.stages())
    forwards += stage->forwards()->size();
  fmt::print("{}: sound\n  stages {}, forwards {}, {}\n", path, plan.stages()->size(), forwards,
             tokenizer ? fmt::format("vocabulary {}", tokenizer->vocabulary().tokens.size())
                       : "no vocabulary");
  if (plan.weights_place() == fb::WeightsPlace::None)
    fmt::print("  no weights: bench fills them with --random-weights\n");
  else
    fmt::print("  weight segments {}, {} bytes, each as its name says\n", count(plan.segments()),
               bytes);
  return Status::ok();
}

} // namespace

Action addVerify(CLI::App &command) {
  auto path = std::make_shared<std::string>();
  command.add_option("PLAN", *path, "A plan file")->required();
  return [path] { return verify(*path); };
}

} // namespace strata::run
