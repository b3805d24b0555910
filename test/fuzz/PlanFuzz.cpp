// The plan loader, up to the moment before any of a plan's code would be loaded.
#include <cstring>
#include <vector>

#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/plan/VocabularyCodec.h"
#include "test/fuzz/MemoryFile.h"
#include "test/fuzz/UseVocabulary.h"

using namespace strata;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size >= planMagic.size() && std::memcmp(data, planMagic.data(), planMagic.size()) == 0) {
    test::MemoryFile file(data, size);
    (void)PlanFile::open(file.path());
    return 0;
  }
  // The FlatBuffer alone, as if the hash in the header had been made to fit.
  std::vector<uint64_t> aligned(size / 8 + 1);
  if (size > 0)
    std::memcpy(aligned.data(), data, size);
  auto plan = verifyPlan({reinterpret_cast<const uint8_t *>(aligned.data()), size},
                         {segmentAlignment, 1 << 20});
  if (!plan.isOk())
    return 0;
  (void)memoryTableText(**plan);
  (void)memoryTableJson(**plan);
  (void)stateGroups(**plan);
  if ((*plan)->vocabulary())
    test::useVocabulary(decodeVocabulary(*(*plan)->vocabulary()));
  return 0;
}
