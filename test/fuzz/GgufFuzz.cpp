#include "runtime/checkpoint/Checkpoint.h"
#include "test/fuzz/MemoryFile.h"
#include "test/fuzz/UseVocabulary.h"

using namespace strata;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  test::MemoryFile file(data, size);
  // A file's first bytes say what it is, so this reaches the other forms too.
  if (auto checkpoint = Checkpoint::open(file.path()); checkpoint.isOk()) {
    volatile uint8_t sum = 0;
    for (const Tensor &tensor : (*checkpoint)->tensors())
      for (std::byte byte : tensor.bytes)
        sum = sum + uint8_t(byte);
    (void)(*checkpoint)->configuredEndOfGeneration();
  }
  if (auto vocabulary = readVocabulary(file.path()); vocabulary.isOk())
    test::useVocabulary(*std::move(vocabulary));
  return 0;
}
