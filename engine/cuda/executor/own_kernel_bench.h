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

// Launches a kernel on guarded memory.
class GuardedKernel : public own::KernelBench {
 public:
  // Throws OwnKernelRefused if the kernel does not compile or cannot be launched.
  GuardedKernel(const own::KernelContract& contract, const OwnKernelSource& source, OnLaunch on_launch);
  own::LaunchResult launch(const std::vector<own::Bytes>& operands, const own::LaunchState& state) override;
  const OwnKernel& kernel() const { return kernel_; }

 protected:
  const own::KernelContract& contract() const { return kernel_.contract(); }
  char* address(size_t operand) const;
  virtual StepAt at() const { return {}; }  // of an update
  void place_operands(const std::vector<own::Bytes>& operands, unsigned char guard);
  void launch_own();
  void report(bool runs) const { on_launch_(runs); }

  Stream stream_ = make_stream();
  Handle<cudaLibrary_t, cudaLibraryUnload> helpers_;
  cudaKernel_t fill_ = nullptr, nothing_ = nullptr;

 private:
  void fill_shared_memory(unsigned char with);

  OwnKernel kernel_;
  OnLaunch on_launch_;
  std::vector<DeviceBlock<char>> blocks_;  // by operand: guard, buffer, guard
};

class OwnKernelBench final : public GuardedKernel {
 public:
  // `rate`: the learning rate of an update.
  OwnKernelBench(const Plan& plan, const Model& model, const data::Dataset& data, size_t op, const OwnKernelSource& source, double rate,
                 OnLaunch on_launch);
  // What the built-in kernels of the op make of the same operands.
  std::vector<own::Bytes> built_in(const std::vector<own::Bytes>& operands);
  double own_us();       // of one launch, median
  double built_in_us();  // after built_in()
  double empty_us();     // of a kernel that does nothing: no launch is faster

 private:
  StepAt at() const override { return {clock_.data(), 0, rate_.data(), sums_.data(), 1}; }
  Launching launching();
  double time(const std::function<void()>& launch);
  double time(const std::function<void()>& launch, int each, int times);

  size_t op_;
  Workplace place_;
  DevicePlan bound_;
  DeviceBlock<StepClock> clock_;
  DeviceBlock<float> rate_, sums_;
};

}  // namespace ws::cuda
