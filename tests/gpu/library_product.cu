// A product by the library and a kernel of our own that reads it: initcheck takes what some of the library's Hopper
// kernels store for memory that nobody wrote. tests/gpu/sanitize asks here whether it still does.
#include <cublasLt.h>

#include <cstdio>

namespace {

constexpr int kOut = 1536, kRows = 256, kIn = 1536, kCandidates = 8;
constexpr size_t kWorkspace = 32 << 20;

__global__ void sum_kernel(const float* values, int count, float* out) {
  float sum = 0;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += gridDim.x * blockDim.x)
    sum += values[i];
  atomicAdd(out, sum);
}

void* zeros(size_t bytes) {
  void* made = nullptr;
  cudaMalloc(&made, bytes);
  cudaMemset(made, 0, bytes);
  return made;
}

}  // namespace

int main() {
  cublasLtHandle_t handle = nullptr;
  if (cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 77;
  void* w = zeros(sizeof(float) * kOut * kIn);
  void* x = zeros(sizeof(float) * kIn * kRows);
  void* workspace = zeros(kWorkspace);
  auto* sum = static_cast<float*>(zeros(sizeof(float)));
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
  cublasLtMatrixLayout_t of_w = nullptr, of_x = nullptr, of_z = nullptr;
  cublasLtMatrixLayoutCreate(&of_w, CUDA_R_32F, kOut, kIn, kOut);
  cublasLtMatrixLayoutCreate(&of_x, CUDA_R_32F, kIn, kRows, kIn);
  cublasLtMatrixLayoutCreate(&of_z, CUDA_R_32F, kOut, kRows, kOut);
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulPreferenceCreate(&preference);
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                       sizeof kWorkspace);
  cublasLtMatmulHeuristicResult_t found[kCandidates];
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(handle, product, of_w, of_x, of_z, of_z, preference, kCandidates, found, &count);
  cudaDeviceSynchronize();
  const float one = 1, zero = 0;
  for (int i = 0; i < count; ++i) {
    float* z = nullptr;  // only the product writes it
    cudaMalloc(&z, sizeof(float) * kOut * kRows);
    cublasLtMatmul(handle, product, &one, w, of_w, x, of_x, &zero, z, of_z, z, of_z, &found[i].algo, workspace,
                   kWorkspace, nullptr);
    sum_kernel<<<64, 256>>>(z, kOut * kRows, sum);
    cudaDeviceSynchronize();
    cudaFree(z);
  }
  std::printf("%d products read\n", count);
  return count > 0 ? 0 : 77;
}
