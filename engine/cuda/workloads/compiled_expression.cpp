#include "engine/cuda/workloads/compiled_expression.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "engine/cuda/runtime/nvrtc.h"
#include "engine/workloads/expression_source.h"
#include "profiling/base/clock.h"

namespace ws::cuda::lab {
namespace {

std::string architecture() {
  int device = 0, major = 0, minor = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
}

constexpr const char* kName = "ws_fused_expression";

}  // namespace

CompiledExpression::CompiledExpression(const ws::lab::Expression& expression) : source_(cuda_source(expression, kName)) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<char> cubin = compile_to_cubin(source_, "expression.cu", {architecture(), "--std=c++17"},
                                                   "the expression could not be compiled for this GPU");
  CUDA_CHECK(cudaLibraryLoadData(library_.out(), cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUDA_CHECK(cudaLibraryGetKernel(&kernel_, library_, kName));
  seconds_ = prof::seconds_since(begin);
}

std::shared_ptr<const CompiledExpression> CompiledExpression::get(const ws::lab::Expression& expression) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const CompiledExpression>> known;
  const std::lock_guard lock(mutex);
  auto& entry = known[identity(expression)];
  if (!entry) entry = std::make_shared<const CompiledExpression>(expression);
  return entry;
}

void CompiledExpression::launch(cudaStream_t stream, const float* x, const float* y, float* out, int64_t n) const {
  constexpr int64_t kThreads = 256, kLong = int64_t{1} << 22;
  auto count = static_cast<unsigned long long>(n);
  int each = n >= kLong ? 4 : 1;  // groups of four elements per thread
  const int64_t in_block = kThreads * 4 * each;
  void* arguments[] = {&x, &y, &out, &count, &each};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::max<int64_t>((n + in_block - 1) / in_block, 1)));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  CUDA_CHECK(cudaLaunchKernelExC(&config, kernel_, arguments));
}

}  // namespace ws::cuda::lab
