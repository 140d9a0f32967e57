// An expression compiled into one kernel at run time. A process compiles each meaning only once.
#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "engine/cuda/runtime/handles.h"
#include "engine/workloads/expression.h"

namespace ws::cuda::lab {

class CompiledExpression {
 public:
  static std::shared_ptr<const CompiledExpression> get(const ws::lab::Expression& expression);
  void launch(cudaStream_t stream, const float* x, const float* y, float* out, int64_t n) const;
  const std::string& source() const { return source_; }
  double compile_seconds() const { return seconds_; }
  cudaKernel_t kernel() const { return kernel_; }

  explicit CompiledExpression(const ws::lab::Expression& expression);
  CompiledExpression(const CompiledExpression&) = delete;
  CompiledExpression& operator=(const CompiledExpression&) = delete;

 private:
  std::string source_;
  double seconds_ = 0;
  Handle<cudaLibrary_t, cudaLibraryUnload> library_;
  cudaKernel_t kernel_ = nullptr;
};

}  // namespace ws::cuda::lab
