// Counts what a running engine allocates: malloc and mmap are replaced in the whole process.
//
//   AllocationProbe PLAN THREADS SEQUENCES MAX_TOKENS ID,ID,... [--allocate]
//
// Every sequence has the same prompt and its own seed. Prints one JSON object: what the threads
// allocated between READY (with the requests submitted) and the last token, and the stack of every
// thread that was created. `--allocate` takes one byte after each step, to show that it is counted.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/Strata.h"
#include "runtime/plan/PlanFile.h"
#include "test/AllocationHook.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<uint64_t> calls{0}, callsElsewhere{0}, mappings{0};
pthread_t mainThread;
std::atomic<uint32_t> threadsCreated{0};
size_t stackBytes[64];

} // namespace

void strata::test::onAllocation() {
  if (!counting.load(std::memory_order_relaxed))
    return;
  calls.fetch_add(1, std::memory_order_relaxed);
  if (!pthread_equal(pthread_self(), mainThread))
    callsElsewhere.fetch_add(1, std::memory_order_relaxed);
}

extern "C" {

void *mmap(void *address, size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  if (counting.load(std::memory_order_relaxed))
    mappings.fetch_add(1, std::memory_order_relaxed);
  long result = syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  return reinterpret_cast<void *>(result);
}
void *mmap64(void *address, size_t bytes, int protection, int flags, int file,
             off_t offset) noexcept {
  return mmap(address, bytes, protection, flags, file, offset);
}

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument) {
  size_t bytes = 0;
  if (attributes)
    pthread_attr_getstacksize(attributes, &bytes);
  stackBytes[threadsCreated.fetch_add(1) % std::size(stackBytes)] = bytes;
  return __real_pthread_create(thread, attributes, function, argument);
}

} // extern "C"

namespace {

strata::Status run(char **arguments) {
  using namespace strata;
  EngineOptions options;
  options.threads = uint32_t(std::atoi(arguments[2]));
  int sequences = std::atoi(arguments[3]);
  Request request{.maxTokens = uint32_t(std::atoi(arguments[4])), .ignoreEndOfGeneration = true};
  for (char *id = std::strtok(arguments[5], ","); id; id = std::strtok(nullptr, ","))
    request.prompt.push_back(std::atoi(id));
  bool allocate = arguments[6] != nullptr;

  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::create(arguments[1], options));
  std::vector<TokenEvent> events(2 * engine->plan().plan().max_sequences());
  for (int i = 0; i < sequences; ++i) {
    request.sampling.temperature = i % 2 ? 0.8f : 0.0f;
    request.sampling.seed = uint64_t(i);
    Result<RequestId> id = engine->submit(request);
    if (!id.isOk())
      return std::move(id).status();
  }
  uint64_t steps = 0, tokens = 0;
  while (engine->busy()) {
    counting = true;
    Result<size_t> count = engine->poll(events);
    if (allocate)
      std::free(std::malloc(1 + steps));
    counting = false;
    if (!count.isOk())
      return std::move(count).status();
    for (const TokenEvent &event : std::span(events).first(*count))
      tokens += event.id >= 0;
    ++steps;
  }
  fmt::print("{{\"steps\": {}, \"tokens\": {}, \"allocations\": {}, \"by_other_threads\": {}, "
             "\"mappings\": {}, \"stack_bytes\": [{}]}}\n",
             steps, tokens, calls.load(), callsElsewhere.load(), mappings.load(),
             fmt::join(stackBytes, stackBytes + threadsCreated.load(), ", "));
  return Status::ok();
}

} // namespace

int main(int count, char **arguments) {
  mainThread = pthread_self();
  if (count != 6 && count != 7) {
    fmt::print(stderr, "AllocationProbe PLAN THREADS SEQUENCES MAX_TOKENS IDS [--allocate]\n");
    return 2;
  }
  strata::Status status = run(arguments);
  if (!status.isOk())
    fmt::print(stderr, "{}\n", status.toString());
  return status.isOk() ? 0 : 1;
}
