#include "runtime/device/cuda/Driver.h"

#include <dlfcn.h>

namespace strata::cuda {

#define STRATA_TEXT(name) #name
#define STRATA_SYMBOL(name) STRATA_TEXT(name)

Result<std::unique_ptr<const Driver>> openDriver() {
  void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(StatusCode::FailedPrecondition,
                     "there is no NVIDIA driver on this machine: {}", ::dlerror());
  auto opened = std::make_unique<Driver>();
  Driver &driver = *opened;
  const char *missing = nullptr;
#define STRATA_LOAD(name)                                                                          \
  driver.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, STRATA_SYMBOL(name)));        \
  if (!driver.name)                                                                                \
    missing = STRATA_SYMBOL(name);
  STRATA_DRIVER_FUNCTIONS(STRATA_LOAD)
#undef STRATA_LOAD
  if (missing)
    return makeError(StatusCode::FailedPrecondition,
                     "the NVIDIA driver of this machine lacks {}; it is older than CUDA {}.{}",
                     missing, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
  if (Status status = driver.check(driver.cuInit(0), "cuInit"); !status.isOk())
    return makeError(StatusCode::FailedPrecondition, "the NVIDIA driver does not start: {}",
                     status.message());
  return std::unique_ptr<const Driver>(std::move(opened));
}

Status Driver::check(CUresult result, std::string_view call) const {
  if (result == CUDA_SUCCESS)
    return {};
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS)
    name = "an unknown error";
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS)
    text = "";
  return makeError(result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::ResourceExhausted
                                                      : StatusCode::Internal,
                   "{} says {} ({}): {}", call, name, int(result), text);
}

} // namespace strata::cuda
