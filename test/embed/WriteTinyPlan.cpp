// Writes the hand-made plan of the plan's tests, so that the example has something to run where
// there is no compiler: WriteTinyPlan FILE
#include <cstdio>

#include "test/runtime/plan/TinyPlan.h"

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  strata::fb::PlanT plan = strata::test::tinyPlan();
  strata::Status status = strata::test::writeTinyPlan(argv[1], plan, strata::test::TinyModel());
  if (!status.isOk())
    std::fprintf(stderr, "%s\n", status.toString().c_str());
  return status.isOk() ? 0 : 1;
}
