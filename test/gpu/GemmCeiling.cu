// The rate at which this card multiplies matrices at most: BF16 numbers, sums in F32, all three
// matrices of 8192 x 8192 random numbers, by cuBLASLt, best of the algorithms that it proposes. Prints
// one number, in TFLOP/s.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>

namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  std::fprintf(stderr, "%s\n", cublasLtGetStatusString(status));
  std::exit(1);
}

constexpr uint64_t size = 8192, workspaceBytes = 32 << 20;

/// Numbers spread over -1 to 1: zeros are multiplied faster.
__global__ void fill(__nv_bfloat16 *to, uint32_t seed) {
  uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  uint32_t bits = uint32_t(i) * 2654435761u + seed;
  bits = (bits ^ bits >> 16) * 2246822519u;
  bits ^= bits >> 13;
  to[i] = __float2bfloat16(float(bits) * 0x1p-31f - 1.0f);
}

} // namespace

int main() {
  __nv_bfloat16 *matrices[3];
  for (uint32_t i = 0; i < 3; ++i) {
    check(cudaMalloc(&matrices[i], size * size * sizeof(__nv_bfloat16)));
    fill<<<size * size / 256, 256>>>(matrices[i], i);
    check(cudaGetLastError());
  }
  void *workspace;
  check(cudaMalloc(&workspace, workspaceBytes));
  cublasLtHandle_t handle;
  check(cublasLtCreate(&handle));
  cublasLtMatmulDesc_t operation;
  check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t transposed = CUBLAS_OP_T;
  check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                       sizeof transposed));
  cublasLtMatrixLayout_t layout;
  check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, size, size, size));
  cublasLtMatmulPreference_t preference;
  check(cublasLtMatmulPreferenceCreate(&preference));
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspaceBytes, sizeof workspaceBytes));
  cublasLtMatmulHeuristicResult_t found[4];
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle, operation, layout, layout, layout, layout,
                                       preference, 4, found, &count));
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  float one = 1, zero = 0;
  double best = 0;
  for (int i = 0; i < count; ++i) {
    std::vector<float> times;
    for (int repeat = 0; repeat < 21; ++repeat) {
      check(cudaEventRecord(begin));
      check(cublasLtMatmul(handle, operation, &one, matrices[0], layout, matrices[1], layout, &zero,
                           matrices[2], layout, matrices[2], layout, &found[i].algo, workspace,
                           workspaceBytes, nullptr));
      check(cudaEventRecord(end));
      check(cudaEventSynchronize(end));
      float milliseconds;
      check(cudaEventElapsedTime(&milliseconds, begin, end));
      times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    best = std::max(best, 2.0 * size * size * size / 1e9 / times[times.size() / 2]);
  }
  std::printf("%.0f\n", best);
}
