#include "test/AllocationHook.h"

#include <cerrno>
#include <cstdlib>

// NOLINTBEGIN(bugprone-reserved-identifier): glibc's own names of what is replaced
extern "C" void *__libc_malloc(size_t bytes);
extern "C" void *__libc_calloc(size_t count, size_t bytes);
extern "C" void *__libc_realloc(void *old, size_t bytes);
extern "C" void *__libc_memalign(size_t alignment, size_t bytes);

extern "C" void *malloc(size_t bytes) {
  strata::test::onAllocation();
  return __libc_malloc(bytes);
}
extern "C" void *calloc(size_t count, size_t bytes) {
  strata::test::onAllocation();
  return __libc_calloc(count, bytes);
}
extern "C" void *realloc(void *old, size_t bytes) {
  strata::test::onAllocation();
  return __libc_realloc(old, bytes);
}
extern "C" void *memalign(size_t alignment, size_t bytes) {
  strata::test::onAllocation();
  return __libc_memalign(alignment, bytes);
}
extern "C" void *aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}
extern "C" int posix_memalign(void **result, size_t alignment, size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result ? 0 : ENOMEM;
}
// NOLINTEND(bugprone-reserved-identifier)
