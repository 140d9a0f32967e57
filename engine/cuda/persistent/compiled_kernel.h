// A persistent kernel compiled at run time for one network, or read from the cache on disk.
#pragma once
#include <cuda_runtime_api.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/persistent/residency.h"

namespace ws::cuda::persistent {

// Machine code for a GPU of `compute` capability (times ten). Needs no GPU. Throws Failure with the compiler's words.
std::vector<char> compile_source(const std::string& source, int compute);

// Where compiled kernels are kept: WARPSCOPE_KERNEL_CACHE, else a folder in the user's cache. Empty: nowhere.
std::filesystem::path kernel_cache_folder();
// Names a kernel by its source, the options and the version of the compiler.
std::string kernel_cache_name(const std::string& source, int compute);

class CompiledKernel {
 public:
  // `stamps`: the one that says when it begins each part of a step.
  CompiledKernel(const Placement& placement, int compute, bool stamps = false);
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  // `arguments`: one value of type Arguments.
  void launch(cudaStream_t stream, void* arguments) const;
  // Rows as the kernel reads them; only where the placement has row_bytes.
  void prepare_rows(cudaStream_t stream, const float* from, void* to, int64_t rows) const;
  bool from_cache() const { return from_cache_; }
  double seconds() const { return seconds_; }  // to compile, or to read
  int compute() const { return compute_; }
  int registers() const { return registers_; }
  int local_bytes() const { return local_bytes_; }  // of a thread: what its registers do not hold

 private:
  std::vector<char> code(const std::string& source, int compute);
  void load(const std::vector<char>& code);
  void check_that_all_run() const;

  Placement placement_;
  Handle<cudaLibrary_t, cudaLibraryUnload> library_;
  cudaKernel_t train_ = nullptr, prepare_ = nullptr;
  int compute_ = 0;
  bool from_cache_ = false;
  double seconds_ = 0;
  int registers_ = 0, local_bytes_ = 0;
};

}  // namespace ws::cuda::persistent
