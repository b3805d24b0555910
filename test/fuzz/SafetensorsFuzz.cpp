#include "runtime/checkpoint/SafetensorsFile.h"
#include "test/fuzz/MemoryFile.h"

using namespace strata;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  test::MemoryFile input(data, size);
  auto file = SafetensorsFile::open(input.path());
  if (!file.isOk())
    return 0;
  volatile uint8_t sum = 0;
  for (const SafetensorsEntry &entry : file->entries())
    for (std::byte byte : entry.bytes)
      sum = sum + uint8_t(byte);
  return 0;
}
