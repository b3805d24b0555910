// What a stage needs from the machine that it runs on: memory taken at boot, kernels by name,
// straight lines of commands that are prepared once and launched often, and one queue of launches.
//
// Every call names its device by being a member of it; there is no current device. A device is
// called from one thread at a time; what it runs it runs by itself, in the order of enqueue().
// Devices meet on timelines alone: a launch waits for values of some and advances others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/device/Timeline.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

/// How many rows, sequences and head rows of a launch are valid: what a command's items multiply.
struct ItemCounts {
  uint32_t rows = 0;
  uint32_t sequences = 0;
  uint32_t headRows = 0;
};

/// A command's code on a GPU: a function of the stage's module, and the blocks that run it.
struct DeviceCode {
  std::string function;
  uint32_t gridX = 0, gridY = 0;
  uint32_t threads = 0;     ///< Of a block.
  uint32_t sharedBytes = 0; ///< Dynamic, of a block.
};

/// A product that a GPU's library computes: y (+)= x weight^T + bias, all row-major.
struct DeviceGemm {
  std::string type, yType; ///< Of x and weight, and of y: "f32", "bf16", "f16".
  uint64_t rows = 0, columns = 0, outputs = 0;
  bool accumulate = false;
  uint64_t x = 0, weight = 0, bias = 0, y = 0; ///< Addresses; a bias is F32, or 0.
  uint64_t workspace = 0, workspaceBytes = 0;
};

/// One command with every address resolved.
struct DeviceCommand {
  std::string op;              ///< For messages: "layer 3 attention".
  std::string kernel;          ///< "linear.q4_1"
  std::vector<uint64_t> slots; ///< Addresses and constants, in the order of the kernel's signature.
  fb::Items items;
  DeviceCode code = {};                ///< On a GPU.
  std::optional<DeviceGemm> gemm = {}; ///< In place of code.
  /// Where the step says how many of the command's rows are valid; a GPU's kernels look by
  /// themselves.
  uint64_t validRows = 0;
  /// About how much memory it moves in a full bucket: whether it is worth sharing between workers.
  uint64_t bytes = UINT64_MAX;
};

/// A line of commands that the device holds.
using LineId = uint32_t;

/// A value of a timeline: to wait for, or to advance to.
struct TimelineValue {
  Timeline *timeline = nullptr;
  uint32_t value = 0;
};

/// Bytes that a launch copies between memory of the host and the device's, or another's, or inside
/// the device's.
struct DeviceCopy {
  std::byte *to = nullptr;
  const std::byte *from = nullptr; ///< nullptr: zeros.
  uint64_t bytes = 0;
};

/// One run of a line, with everything around it, in this order: waits, copies in, the line, copies
/// out, signals.
struct DeviceLaunch {
  LineId line = 0;
  ItemCounts counts;
  std::vector<TimelineValue> waits;
  std::vector<DeviceCopy> copiesIn;
  std::vector<DeviceCopy> copiesOut;
  std::vector<TimelineValue> signals;
};

/// What a device is at, as it is now, for a report of a stall.
struct DeviceActivity {
  enum class Kind : uint8_t {
    Idle,    ///< No launch is left.
    Waiting, ///< `launch` waits for `launch->waits[index]`.
    Running  ///< `launch` runs command `index` of its line.
  };
  Kind kind = Kind::Idle;
  const DeviceLaunch *launch = nullptr;
  uint32_t index = 0;
  uint32_t worker = 0;   ///< Running: the first worker that has not ended the command.
  uint64_t progress = 0; ///< Differs whenever something was done in between.
};

/// What a message about memory that cannot be had ends with.
inline constexpr std::string_view memoryRemedy =
    "fewer --max-seqs or a smaller --max-context takes less (strata-run explain prints the table)";

class Device {
public:
  virtual ~Device() = default;

  std::string_view name() const { return name_; }     ///< "cpu", for messages.
  uint64_t takenBytes() const { return takenBytes_; } ///< By allocate(), rounding included.

  /// Workers that run items side by side, each with scratch of its own.
  virtual uint32_t workers() const = 0;

  /// Whether the host may read and write allocated memory as its own.
  virtual bool sharesHostMemory() const { return true; }

  /// Zeroed memory, aligned to 4096 bytes, freed with the device. `what` names it in messages.
  /// Errors: ResourceExhausted (names `what` and the bytes), Internal (after lock()).
  virtual Result<std::byte *> allocate(std::string_view what, uint64_t bytes) = 0;

  /// Zeroed memory of the host that launches copy from and to.
  virtual Result<std::byte *> allocateHost(std::string_view what, uint64_t bytes) = 0;

  /// Copies between the host and allocated memory, at once; only while no launch runs.
  virtual Status write(std::byte *to, std::span<const std::byte> bytes) = 0;
  virtual Status read(std::span<std::byte> to, const std::byte *from) = 0;

  /// Loads the code whose functions commands name; a stage has one. Errors: Internal (a device
  /// whose kernels are linked in), those of a GPU's driver.
  virtual Status loadModule(std::span<const std::byte> code) = 0;

  /// Makes bytes of the host readable by kernels: as they lie, or by copying them into allocated
  /// memory. `bytes` outlives the device.
  virtual Result<const std::byte *> placeConstant(std::string_view what,
                                                  std::span<const std::byte> bytes) = 0;

  /// Takes over a line of commands; the device keeps all that they need except the memory that
  /// their addresses name. Errors: InvalidData (no such kernel), Internal (after lock()).
  virtual Result<LineId> prepare(std::string name, std::vector<DeviceCommand> commands) = 0;

  /// READY: from here on nothing is allocated, and asking for it is an Internal error.
  void lock() { isLocked_ = true; }

  /// Queues a launch and returns at once; it runs after those queued before. `launch` stays as it
  /// is until its last signal is given, and its timelines outlive the device. As many launches may
  /// be queued as the device was made for. Allocates nothing unless it fails. Errors: Internal (an
  /// unknown line, a full queue), or whatever the device has failed with.
  virtual Status enqueue(const DeviceLaunch &launch) = 0;

  /// The host's wait for a value that launches of this device advance to: true when it is reached,
  /// false once `timeout` has passed. Errors: whatever the device has failed with.
  virtual Result<bool> wait(const TimelineValue &value, std::chrono::nanoseconds timeout) = 0;

  virtual DeviceActivity activity() const = 0;
  /// What command `index` of `line` is called.
  virtual std::string_view op(LineId line, uint32_t index) const = 0;

  /// From now on no queued launch begins; returns at once. A launch that waits leaves its wait once
  /// its timeline is closed.
  virtual void stop() = 0;
  /// After stop(): whether the device has come to rest within `patience`. One that has not may
  /// still touch everything that its launches name.
  virtual bool rests(std::chrono::nanoseconds patience) = 0;

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
