// What a stage needs from the machine that it runs on: memory taken at boot, kernels by name, and
// straight lines of commands that are prepared once and launched often.
//
// Every call names its device by being a member of it; there is no current device. A device belongs
// to one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

/// How many rows, sequences and head rows of a launch are valid: what a command's items multiply.
struct ItemCounts {
  uint32_t rows = 0;
  uint32_t sequences = 0;
  uint32_t headRows = 0;
};

/// One command with every address resolved.
struct DeviceCommand {
  std::string op;              ///< For messages: "layer 3 attention".
  std::string kernel;          ///< "linear.q4_1"
  std::vector<uint64_t> slots; ///< Addresses and constants, in the order of the kernel's signature.
  fb::Items items;
};

/// A line of commands that the device holds.
using LineId = uint32_t;

class Device {
public:
  virtual ~Device() = default;

  std::string_view name() const { return name_; }     ///< "cpu", for messages.
  uint64_t takenBytes() const { return takenBytes_; } ///< By allocate(), rounding included.

  /// Workers that run items side by side, each with scratch of its own.
  virtual uint32_t workers() const = 0;

  /// Zeroed memory, aligned to 4096 bytes, freed with the device. `what` names it in messages.
  /// Errors: ResourceExhausted (names `what` and the bytes), Internal (after lock()).
  virtual Result<std::byte *> allocate(std::string_view what, uint64_t bytes) = 0;

  /// Makes bytes of the host readable by kernels: as they lie, or by copying them into allocated
  /// memory. `bytes` outlives the device.
  virtual Result<const std::byte *> placeConstant(std::string_view what,
                                                  std::span<const std::byte> bytes) = 0;

  /// Takes over a line of commands; the device keeps all that they need except the memory that
  /// their addresses name. Errors: InvalidData (no such kernel), Internal (after lock()).
  virtual Result<LineId> prepare(std::string name, std::vector<DeviceCommand> commands) = 0;

  /// READY: from here on nothing is allocated, and asking for it is an Internal error.
  void lock() { isLocked_ = true; }

  /// Runs a line to its end. `stall` is how long one command may take: past it the launch is given
  /// up with DeadlineExceeded, naming line and command, and every later launch is refused.
  /// Allocates nothing unless it fails.
  virtual Status launch(LineId line, const ItemCounts &counts, std::chrono::nanoseconds stall) = 0;

protected:
  explicit Device(std::string name) : name_(std::move(name)) {}

  Status checkUnlocked(std::string_view what, uint64_t bytes) const {
    if (!isLocked_)
      return {};
    return makeError(StatusCode::Internal,
                     "{} asks for {} bytes after READY, when nothing may be allocated", what, bytes)
        .at("device", name_);
  }

  uint64_t takenBytes_ = 0;

private:
  std::string name_;
  bool isLocked_ = false;
};

} // namespace strata
