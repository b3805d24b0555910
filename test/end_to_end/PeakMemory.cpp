// Runs a command and writes the peak of its resident memory, in bytes, as the last line.
//
//   PeakMemory COMMAND ARGUMENT...
//
// A parent's own pages count in its child's peak until the child's exec; this one has next to none.
#include <cstdint>
#include <cstdio>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
  if (count < 2) {
    std::fprintf(stderr, "PeakMemory COMMAND ARGUMENT...\n");
    return 2;
  }
  pid_t child = fork();
  if (child == 0) {
    execv(arguments[1], arguments + 1);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child)
    return 1;
  std::printf("\n%jd\n", static_cast<intmax_t>(usage.ru_maxrss) * 1024); // given in KiB
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
