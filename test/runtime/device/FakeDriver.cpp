#include "test/runtime/device/FakeDriver.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

struct CUctx_st {};
struct CUstream_st {};
struct CUevent_st {};
struct CUmod_st {};
struct CUgraphNode_st {};
struct CUfunc_st {
  const char *name;
  uint32_t slots;
};

namespace {

/// A node keeps its parameters as they were when it was made.
struct Kernel {
  CUfunction function = nullptr;
  std::vector<uint64_t> parameters;

  Kernel(CUfunction function, void *const *list)
      : function(function), parameters(function->slots + 1) {
    std::memcpy(parameters.data(), list[0], parameters.size() * sizeof(uint64_t));
  }
};

} // namespace

struct CUgraph_st {
  std::vector<Kernel> kernels;
};
struct CUgraphExec_st {
  std::vector<Kernel> kernels;
};

namespace {

enum class Health {
  Sound,
  Struck, ///< A kernel did wrong, which no call has said yet.
  Broken
};

struct Gpu {
  std::mutex mutex;
  uint64_t memoryBytes = 0, takenBytes = 0;
  std::map<void *, uint64_t> memory;
  int64_t objects = 0;
  Health health = Health::Sound;
  uint32_t queries = 0; ///< Since the kernel did wrong.
  std::optional<strata::test::DriverFault> fault;
  bool hasStruck = false;
  CUctx_st context;
  CUfunc_st functions[2] = {{"twice", 1}, {"faulty", 1}};
};

Gpu &gpu() {
  static Gpu gpu;
  return gpu;
}

/// A call under way: alone, and with the result that it must return if not success.
class Call {
public:
  /// `meetsFault`: whether it is one of those that a GPU which did wrong refuses.
  explicit Call(const char *name, bool meetsFault = true) : lock_(gpu().mutex) {
    Gpu &g = gpu();
    if (g.health == Health::Struck && meetsFault)
      g.health = Health::Broken;
    if (g.health == Health::Broken && meetsFault)
      result = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (g.fault && !g.hasStruck && g.fault->call == name && g.fault->number-- == 0) {
      g.hasStruck = true;
      result = g.fault->result;
    }
  }
  CUresult result = CUDA_SUCCESS;

private:
  std::lock_guard<std::mutex> lock_;
};

#define STRATA_CALL(...)                                                                           \
  Call call(__VA_ARGS__);                                                                          \
  if (call.result != CUDA_SUCCESS)                                                                 \
  return call.result

template <class Object> CUresult make(Object *&made) {
  made = new Object;
  ++gpu().objects;
  return CUDA_SUCCESS;
}

template <class Object> CUresult unmake(Object *object) {
  delete object;
  --gpu().objects;
  return CUDA_SUCCESS;
}

CUresult take(void *&address, uint64_t bytes) {
  constexpr uint64_t page = 4096;
  uint64_t rounded = (bytes + page - 1) / page * page;
  address = std::aligned_alloc(page, rounded);
  std::memset(address, 0xAB, rounded); // memory is not zero by itself
  gpu().memory[address] = rounded;
  ++gpu().objects;
  return CUDA_SUCCESS;
}

CUresult give(void *address) {
  auto found = gpu().memory.find(address);
  if (found == gpu().memory.end())
    return CUDA_ERROR_INVALID_VALUE;
  gpu().memory.erase(found);
  std::free(address);
  --gpu().objects;
  return CUDA_SUCCESS;
}

void *pointer(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

void run(const Kernel &kernel) {
  if (kernel.function == &gpu().functions[1]) {
    gpu().health = Health::Struck;
    gpu().queries = 0;
  }
  if (gpu().health != Health::Sound)
    return;
  auto *values = static_cast<float *>(pointer(kernel.parameters[0]));
  uint32_t valid = *static_cast<const uint32_t *>(pointer(kernel.parameters[1]));
  for (uint32_t i = 0; i < valid && i < 32; ++i)
    values[i] *= 2;
}

} // namespace

namespace strata::test {

void resetDriver(uint64_t memoryBytes) {
  Gpu &g = gpu();
  std::lock_guard lock(g.mutex);
  g.memoryBytes = memoryBytes;
  g.takenBytes = 0;
  for (auto [address, bytes] : g.memory)
    std::free(address);
  g.memory.clear();
  g.objects = 0;
  g.health = Health::Sound;
  g.fault.reset();
}

void injectFault(DriverFault fault) {
  std::lock_guard lock(gpu().mutex);
  gpu().fault = std::move(fault);
  gpu().hasStruck = false;
}

bool removeFault() {
  std::lock_guard lock(gpu().mutex);
  gpu().fault.reset();
  return gpu().hasStruck;
}

int64_t driverObjects() {
  std::lock_guard lock(gpu().mutex);
  return gpu().objects;
}

} // namespace strata::test

extern "C" {

CUresult cuGetErrorName(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY     ? "OUT_OF_MEMORY"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "ILLEGAL_ADDRESS"
                                                : "UNKNOWN";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "as the test wants it";
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int) { return Call("cuInit").result; }

CUresult cuDriverGetVersion(int *version) {
  STRATA_CALL("cuDriverGetVersion");
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  STRATA_CALL("cuDeviceGetCount");
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  STRATA_CALL("cuDeviceGet");
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  STRATA_CALL("cuDeviceGetName");
  std::strncpy(name, "fake", size_t(size));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice) {
  STRATA_CALL("cuDeviceGetUuid");
  std::memset(uuid, 7, sizeof *uuid);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
  STRATA_CALL("cuDeviceTotalMem");
  *bytes = gpu().memoryBytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  STRATA_CALL("cuDeviceGetAttribute");
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  STRATA_CALL("cuDevicePrimaryCtxRetain");
  *context = &gpu().context;
  ++gpu().objects;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  STRATA_CALL("cuDevicePrimaryCtxRelease", false);
  --gpu().objects;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext) { return Call("cuCtxSetCurrent", false).result; }

CUresult cuStreamCreate(CUstream *stream, unsigned int) {
  STRATA_CALL("cuStreamCreate");
  return make(*stream);
}

CUresult cuStreamDestroy(CUstream stream) {
  STRATA_CALL("cuStreamDestroy", false);
  return unmake(stream);
}

CUresult cuStreamSynchronize(CUstream) { return Call("cuStreamSynchronize").result; }

CUresult cuEventCreate(CUevent *event, unsigned int) {
  STRATA_CALL("cuEventCreate");
  return make(*event);
}

CUresult cuEventDestroy(CUevent event) {
  STRATA_CALL("cuEventDestroy", false);
  return unmake(event);
}

CUresult cuEventRecord(CUevent, CUstream) { return Call("cuEventRecord", false).result; }

// A kernel that does wrong is at it for a while.
CUresult cuEventQuery(CUevent) {
  STRATA_CALL("cuEventQuery", false);
  Gpu &g = gpu();
  if (g.health == Health::Struck && ++g.queries > 1000)
    g.health = Health::Broken;
  return g.health == Health::Sound    ? CUDA_SUCCESS
         : g.health == Health::Struck ? CUDA_ERROR_NOT_READY
                                      : CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  STRATA_CALL("cuMemAlloc");
  if (bytes > gpu().memoryBytes - gpu().takenBytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *taken = nullptr;
  CUresult result = take(taken, bytes);
  gpu().takenBytes += gpu().memory[taken];
  *address = reinterpret_cast<CUdeviceptr>(taken);
  return result;
}

CUresult cuMemFree(CUdeviceptr address) {
  STRATA_CALL("cuMemFree", false);
  if (auto found = gpu().memory.find(pointer(address)); found != gpu().memory.end())
    gpu().takenBytes -= found->second;
  return give(pointer(address));
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int) {
  STRATA_CALL("cuMemHostAlloc");
  return take(*address, bytes);
}

CUresult cuMemFreeHost(void *address) {
  STRATA_CALL("cuMemFreeHost", false);
  return give(address);
}

CUresult cuMemGetInfo(size_t *free, size_t *total) {
  STRATA_CALL("cuMemGetInfo");
  *free = gpu().memoryBytes - gpu().takenBytes;
  *total = gpu().memoryBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  STRATA_CALL("cuMemsetD8");
  std::memset(pointer(to), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  STRATA_CALL("cuMemsetD8Async");
  std::memset(pointer(to), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  STRATA_CALL("cuMemcpyHtoD");
  std::memcpy(pointer(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  STRATA_CALL("cuMemcpyDtoH");
  std::memcpy(to, pointer(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  STRATA_CALL("cuMemcpyAsync");
  std::memcpy(pointer(to), pointer(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *) {
  STRATA_CALL("cuModuleLoadData");
  return make(*module);
}

CUresult cuModuleUnload(CUmodule module) {
  STRATA_CALL("cuModuleUnload", false);
  return unmake(module);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  STRATA_CALL("cuModuleGetFunction");
  for (CUfunc_st &known : gpu().functions)
    if (std::strcmp(known.name, name) == 0) {
      *function = &known;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncLoad(CUfunction) { return Call("cuFuncLoad").result; }

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  return Call("cuFuncSetAttribute").result;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t, size_t *offset, size_t *bytes) {
  STRATA_CALL("cuFuncGetParamInfo");
  *offset = 0;
  *bytes = (function->slots + 1) * sizeof(uint64_t);
  return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int) {
  STRATA_CALL("cuGraphCreate");
  return make(*graph);
}

CUresult cuGraphDestroy(CUgraph graph) {
  STRATA_CALL("cuGraphDestroy", false);
  return unmake(graph);
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *, size_t,
                              const CUDA_KERNEL_NODE_PARAMS *parameters) {
  static CUgraphNode_st any;
  STRATA_CALL("cuGraphAddKernelNode");
  graph->kernels.emplace_back(parameters->func, parameters->kernelParams);
  *node = &any;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *,
                                const CUgraphEdgeData *, size_t) {
  return Call("cuGraphAddDependencies").result;
}

// Products are captured from a library that wants a GPU: no line of the test has one.
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuStreamBeginCapture(CUstream, CUstreamCaptureMode) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuStreamEndCapture(CUstream, CUgraph *) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  STRATA_CALL("cuGraphInstantiateWithFlags");
  CUresult result = make(*executable);
  (*executable)->kernels = graph->kernels;
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  STRATA_CALL("cuGraphExecDestroy", false);
  return unmake(executable);
}

CUresult cuGraphUpload(CUgraphExec, CUstream) { return Call("cuGraphUpload").result; }

CUresult cuGraphLaunch(CUgraphExec executable, CUstream) {
  STRATA_CALL("cuGraphLaunch");
  for (const Kernel &kernel : executable->kernels)
    run(kernel);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, unsigned int, CUstream, void **parameters,
                        void **) {
  STRATA_CALL("cuLaunchKernel");
  run(Kernel(function, parameters));
  return CUDA_SUCCESS;
}

} // extern "C"
