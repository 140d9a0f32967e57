// A persistent kernel that is compiled at run time for one network, or loaded from the cache on disk.
#pragma once
#include <cuda_runtime_api.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/persistent/residency.h"

namespace ws::cuda::persistent {

// Returns machine code for a GPU of `compute` capability (times ten). Needs no GPU. Throws Failure with the compiler's
// message.
std::vector<char> compile_source(const std::string& source, int compute);

// Returns the folder of compiled kernels: WARPSIGHT_KERNEL_CACHE, or a folder in the user's cache. Empty: no cache.
std::filesystem::path kernel_cache_folder();
// Returns a file name that depends on the source, the options and the version of the compiler.
std::string kernel_cache_name(const std::string& source, int compute);

class CompiledKernel {
 public:
  // `stamps`: the kernel records when each part of a step begins.
  CompiledKernel(const Placement& placement, int compute, bool stamps = false);
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  // `arguments` points to one value of type Arguments.
  void launch(cudaStream_t stream, void* arguments) const;
  // Converts rows to the layout that the kernel reads. Call it only if the placement has row_bytes.
  void prepare_rows(cudaStream_t stream, const float* from, void* to, int64_t rows) const;
  double seconds() const { return seconds_; }  // to compile or to load from the cache
  int compute() const { return compute_; }
  int registers() const { return registers_; }
  int local_bytes() const { return local_bytes_; }  // bytes per thread that do not fit into registers

 private:
  std::vector<char> code(const std::string& source, int compute);
  void load(const std::vector<char>& code);
  int blocks_at_once() const;
  void check_that_all_run() const;

  Placement placement_;
  Handle<cudaLibrary_t, cudaLibraryUnload> library_;
  cudaKernel_t train_ = nullptr, prepare_ = nullptr;
  int compute_ = 0;
  double seconds_ = 0;
  int registers_ = 0, local_bytes_ = 0;
};

}  // namespace ws::cuda::persistent
