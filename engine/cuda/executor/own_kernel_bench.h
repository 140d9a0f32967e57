// Runs a person's kernel on the GPU for its check, and times it beside the built-in kernels of the op.
// A wrong kernel can end this process or never return, so use it in a process that may end.
#pragma once
#include <functional>

#include "datasets/dataset.h"
#include "engine/cuda/executor/own_kernel.h"
#include "engine/cuda/executor/stream_executor.h"
#include "engine/own_kernels/kernel_check.h"
#include "engine/plan/model.h"

namespace ws::cuda {

class OwnKernelBench final : public own::KernelBench {
 public:
  // Throws OwnKernelRefused if the kernel does not compile or cannot be launched. `rate`: the learning rate of an update.
  OwnKernelBench(const Plan& plan, const Model& model, const data::Dataset& data, size_t op, const OwnKernelSource& source, double rate);
  own::LaunchResult launch(const std::vector<own::Bytes>& operands, const own::LaunchState& state) override;
  // What the built-in kernels of the op make of the same operands.
  std::vector<own::Bytes> built_in(const std::vector<own::Bytes>& operands);
  double own_us();       // of one launch, median
  double built_in_us();  // after built_in()
  double empty_us();     // of a kernel that does nothing: no launch is faster
  const OwnKernel& kernel() const { return kernel_; }

 private:
  const own::KernelContract& contract() const { return kernel_.contract(); }
  Launching launching();
  void place_operands(const std::vector<own::Bytes>& operands, unsigned char guard);
  void launch_own();
  void fill_shared_memory(unsigned char with);
  double time(const std::function<void()>& launch);

  size_t op_;
  OwnKernel kernel_;
  Workplace place_;
  DevicePlan bound_;
  std::vector<DeviceBlock<char>> blocks_;  // by operand: guard, buffer, guard
  Handle<cudaLibrary_t, cudaLibraryUnload> filler_;
  cudaKernel_t fill_ = nullptr, nothing_ = nullptr;
  DeviceBlock<StepClock> clock_;
  DeviceBlock<float> rate_, sums_;
};

}  // namespace ws::cuda
