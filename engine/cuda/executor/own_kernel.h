// A kernel that a person wrote for one op: compiled for this GPU, and launched in place of the built-in ones.
#pragma once
#include <span>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_versions.h"
#include "engine/own_kernels/own_kernel_verdict.h"

namespace ws::cuda {

int device_attribute(cudaDeviceAttr what);  // of the GPU of this thread

class OwnKernel {
 public:
  // For the GPU of this thread. Throws OwnKernelRefused if it does not compile or cannot be launched.
  OwnKernel(const own::KernelContract& contract, const OwnKernelSource& source);
  // `operands`: addresses in the order of the contract.
  void launch(cudaStream_t stream, std::span<void* const> operands, StepAt at) const;
  // Runs with as much shared memory as there is: a multiprocessor that divides its memory anew would lose what stands there.
  void take_all_shared_memory();
  const own::KernelContract& contract() const { return contract_; }
  int registers() const { return registers_; }
  int local_bytes() const { return local_bytes_; }  // of a thread, for spilled registers and arrays
  double occupancy() const { return occupancy_; }   // share of the most threads of a multiprocessor
  std::string note() const;                         // "your kernel: 32 × 256 threads, 18 registers"

 private:
  void check_launch(own::KernelLanguage language);

  own::KernelContract contract_;
  Handle<cudaLibrary_t, cudaLibraryUnload> library_;
  cudaKernel_t kernel_ = nullptr;
  int launch_[3] = {};  // blocks, threads, bytes of shared memory
  int hidden_ = 0;       // parameters of Triton, which get nullptr
  int registers_ = 0, local_bytes_ = 0;
  double occupancy_ = 0;
};

}  // namespace ws::cuda
