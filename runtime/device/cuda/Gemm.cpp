#include "runtime/device/cuda/Gemm.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <cublasLt.h>
#include <dlfcn.h>

#include "runtime/base/CheckedMath.h"

namespace strata::cuda {
namespace {

#define STRATA_GEMM_FUNCTIONS(f)                                                                   \
  f(cublasLtCreate) f(cublasLtDestroy) f(cublasLtGetStatusString) f(cublasLtMatmul)                \
      f(cublasLtMatmulAlgoGetHeuristic) f(cublasLtMatmulDescCreate) f(cublasLtMatmulDescDestroy)   \
          f(cublasLtMatmulDescSetAttribute) f(cublasLtMatmulPreferenceCreate)                      \
              f(cublasLtMatmulPreferenceDestroy) f(cublasLtMatmulPreferenceSetAttribute)           \
                  f(cublasLtMatrixLayoutCreate) f(cublasLtMatrixLayoutDestroy)

struct Functions {
#define STRATA_DECLARE(name) decltype(&::name) name = nullptr;
  STRATA_GEMM_FUNCTIONS(STRATA_DECLARE)
#undef STRATA_DECLARE

  Status check(cublasStatus_t status, std::string_view call) const {
    if (status == CUBLAS_STATUS_SUCCESS)
      return {};
    return makeError(status == CUBLAS_STATUS_ALLOC_FAILED ? StatusCode::ResourceExhausted
                                                          : StatusCode::Internal,
                     "{} says {} ({})", call, cublasLtGetStatusString(status), int(status));
  }
};

constexpr uint64_t workspaceAlignment = 256, mostAlignment = 256;

cudaDataType_t dataType(std::string_view type) {
  return type == "bf16" ? CUDA_R_16BF : type == "f16" ? CUDA_R_16F : CUDA_R_32F;
}

/// The power of two at which `address` lies, as far as the library cares.
uint32_t alignmentOf(uint64_t address) {
  return uint32_t(std::min(mostAlignment, address & (~address + 1)));
}

/// Row-major y = x weight^T is, read by columns as the library does, y = weight^T x.
class Product final : public GemmProduct {
public:
  Product(const Functions &library, cublasLtHandle_t handle, const DeviceGemm &gemm)
      : library_(library), handle_(handle), gemm_(gemm) {
    uint64_t begin = alignUp(gemm.workspace, workspaceAlignment);
    uint64_t end = gemm.workspace + gemm.workspaceBytes;
    workspace_ = begin;
    workspaceBytes_ = end > begin ? end - begin : 0;
  }
  ~Product() override {
    if (operation_)
      (void)library_.cublasLtMatmulDescDestroy(operation_);
    for (cublasLtMatrixLayout_t layout : {weight_, x_, y_})
      if (layout)
        (void)library_.cublasLtMatrixLayoutDestroy(layout);
  }
  Product(const Product &) = delete;
  Product &operator=(const Product &) = delete;

  Status describe();
  Result<cublasLtMatmulAlgo_t> choose() const;
  void use(const cublasLtMatmulAlgo_t &algorithm) { algorithm_ = algorithm; }
  Status run(CUstream stream) const override;

  /// All that the choice of an algorithm depends on.
  auto shape() const {
    return std::tuple(gemm_.type, gemm_.yType, gemm_.rows, gemm_.columns, gemm_.outputs,
                      gemm_.accumulate, gemm_.bias != 0, alignmentOf(gemm_.x),
                      alignmentOf(gemm_.weight), alignmentOf(gemm_.y), workspaceBytes_);
  }

private:
  template <class T> Status set(cublasLtMatmulDescAttributes_t attribute, const T &value) {
    return library_.check(
        library_.cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
  }

  const Functions &library_;
  cublasLtHandle_t handle_;
  DeviceGemm gemm_;
  uint64_t workspace_ = 0, workspaceBytes_ = 0;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t weight_ = nullptr, x_ = nullptr, y_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

Status Product::describe() {
  // F32 sums, and F32 products of F32 numbers: no TF32.
  STRATA_RETURN_IF_ERROR(
      library_.check(library_.cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                     "cublasLtMatmulDescCreate"));
  STRATA_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  if (gemm_.bias != 0) {
    STRATA_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS));
    STRATA_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, gemm_.bias));
    STRATA_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F));
  }
  auto layout = [&](cublasLtMatrixLayout_t &to, std::string_view type, uint64_t height,
                    uint64_t width) {
    return library_.check(
        library_.cublasLtMatrixLayoutCreate(&to, dataType(type), height, width, int64_t(height)),
        "cublasLtMatrixLayoutCreate");
  };
  STRATA_RETURN_IF_ERROR(layout(weight_, gemm_.type, gemm_.columns, gemm_.outputs));
  STRATA_RETURN_IF_ERROR(layout(x_, gemm_.type, gemm_.columns, gemm_.rows));
  return layout(y_, gemm_.yType, gemm_.outputs, gemm_.rows);
}

Result<cublasLtMatmulAlgo_t> Product::choose() const {
  struct Preference {
    const Functions &library;
    cublasLtMatmulPreference_t handle = nullptr;
    ~Preference() {
      if (handle)
        (void)library.cublasLtMatmulPreferenceDestroy(handle);
    }
  } preference{library_};
  STRATA_RETURN_IF_ERROR(library_.check(library_.cublasLtMatmulPreferenceCreate(&preference.handle),
                                        "cublasLtMatmulPreferenceCreate"));
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
    return library_.check(library_.cublasLtMatmulPreferenceSetAttribute(
                              preference.handle, attribute, &value, sizeof value),
                          "cublasLtMatmulPreferenceSetAttribute");
  };
  STRATA_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes_));
  // Parts of a sum are joined in F32 and in order.
  STRATA_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  STRATA_RETURN_IF_ERROR(
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentOf(gemm_.weight)));
  STRATA_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentOf(gemm_.x)));
  STRATA_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignmentOf(gemm_.y)));
  STRATA_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignmentOf(gemm_.y)));
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  cublasStatus_t status = library_.cublasLtMatmulAlgoGetHeuristic(
      handle_, operation_, weight_, x_, y_, y_, preference.handle, 1, &found, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED)
    STRATA_RETURN_IF_ERROR(library_.check(status, "cublasLtMatmulAlgoGetHeuristic"));
  if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
    return makeError(StatusCode::Unimplemented,
                     "the matrix library has no algorithm for {} rows of {} columns in {} and {} "
                     "outputs in {} with a workspace of {} bytes",
                     gemm_.rows, gemm_.columns, gemm_.type, gemm_.outputs, gemm_.yType,
                     workspaceBytes_);
  return found.algo;
}

Status Product::run(CUstream stream) const {
  float one = 1, onto = gemm_.accumulate ? 1 : 0;
  auto at = [](uint64_t address) { return reinterpret_cast<void *>(address); };
  return library_.check(library_.cublasLtMatmul(handle_, operation_, &one, at(gemm_.weight),
                                                weight_, at(gemm_.x), x_, &onto, at(gemm_.y), y_,
                                                at(gemm_.y), y_, &algorithm_, at(workspace_),
                                                workspaceBytes_, stream),
                        "cublasLtMatmul");
}

class Library final : public GemmLibrary {
public:
  ~Library() override {
    if (handle_)
      (void)functions_.cublasLtDestroy(handle_);
  }
  Library() = default;
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  Status load();
  Result<std::unique_ptr<GemmProduct>> prepare(const DeviceGemm &gemm) override;

private:
  using Shape = decltype(std::declval<const Product &>().shape());

  Functions functions_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Shape, cublasLtMatmulAlgo_t> algorithms_;
};

Status Library::load() {
  std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  void *library = nullptr;
  for (const std::string &path : {name, "/usr/local/cuda/lib64/" + name})
    if (!library)
      library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(StatusCode::FailedPrecondition,
                     "{} is not found, which computes the plan's products of many rows; install "
                     "cuBLAS of CUDA {} or put its folder into LD_LIBRARY_PATH (Python's wheels "
                     "have it in nvidia/cu{}/lib)",
                     name, CUBLAS_VER_MAJOR, CUBLAS_VER_MAJOR);
  const char *missing = nullptr;
#define STRATA_LOAD(name)                                                                          \
  functions_.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name));                  \
  if (!functions_.name)                                                                            \
    missing = #name;
  STRATA_GEMM_FUNCTIONS(STRATA_LOAD)
#undef STRATA_LOAD
  if (missing)
    return makeError(StatusCode::FailedPrecondition, "{} of this machine lacks {}", name, missing);
  return functions_.check(functions_.cublasLtCreate(&handle_), "cublasLtCreate");
}

Result<std::unique_ptr<GemmProduct>> Library::prepare(const DeviceGemm &gemm) {
  auto product = std::make_unique<Product>(functions_, handle_, gemm);
  STRATA_RETURN_IF_ERROR(product->describe());
  auto found = algorithms_.find(product->shape());
  if (found == algorithms_.end()) {
    STRATA_ASSIGN_OR_RETURN(cublasLtMatmulAlgo_t algorithm, product->choose());
    found = algorithms_.emplace(product->shape(), algorithm).first;
  }
  product->use(found->second);
  return std::unique_ptr<GemmProduct>(std::move(product));
}

} // namespace

Result<std::unique_ptr<GemmLibrary>> GemmLibrary::open() {
  auto library = std::make_unique<Library>();
  STRATA_RETURN_IF_ERROR(library->load());
  return std::unique_ptr<GemmLibrary>(std::move(library));
}

} // namespace strata::cuda
