#include "engine/cuda/persistent/compiled_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "engine/cuda/persistent/kernel_source.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/nvrtc.h"
#include "profiling/base/clock.h"
#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"

namespace ws::cuda::persistent {
namespace {

// wgmma exists on one architecture only, and the suffix "a" selects it.
std::string architecture(int compute) {
  return "--gpu-architecture=sm_" + std::to_string(compute) + (compute == 90 ? "a" : "");
}

struct LaunchConfig : cudaLaunchConfig_t {
  explicit LaunchConfig(const Placement& p) : cudaLaunchConfig_t{} {
    gridDim = dim3(static_cast<unsigned>(p.blocks));
    blockDim = dim3(static_cast<unsigned>(p.threads));
    dynamicSmemBytes = static_cast<size_t>(p.shared_bytes);
    attrs = attributes;
    if (p.cluster > 1) {
      attributes[numAttrs].id = cudaLaunchAttributeClusterDimension;
      attributes[numAttrs++].val.clusterDim = {static_cast<unsigned>(p.cluster), 1, 1};
    }
    if (p.blocks > p.cluster) {
      attributes[numAttrs].id = cudaLaunchAttributeCooperative;
      attributes[numAttrs++].val.cooperative = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;
  cudaLaunchAttribute attributes[2] = {};
};

uint64_t hash_of(const std::string& text, uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::vector<char> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<char> compile_source(const std::string& source, int compute) {
  return compile_to_cubin(source, "persistent.cu", {architecture(compute), "--std=c++17", "--disable-warnings", "--generate-line-info"},
                          "the persistent kernel could not be compiled");
}

std::filesystem::path kernel_cache_folder() {
  if (const char* given = std::getenv("WARPSIGHT_KERNEL_CACHE")) return given;
  const std::filesystem::path cache = cache_folder();
  return cache.empty() ? cache : cache / "kernels";
}

std::string kernel_cache_name(const std::string& source, int compute) {
  const std::string all = architecture(compute) + "|" + nvrtc_version() + "|" + source;
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx.cubin",
                static_cast<unsigned long long>(hash_of(all, 14695981039346656037ull)),
                static_cast<unsigned long long>(hash_of(all, 88172645463325252ull)));
  return name;
}

CompiledKernel::CompiledKernel(const Placement& placement, int compute, bool stamps)
    : placement_(placement), compute_(compute) {
  const auto begin = std::chrono::steady_clock::now();
  load(code(kernel_source(placement, stamps), compute));
  cudaFuncAttributes attributes{};
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, train_));
  registers_ = attributes.numRegs, local_bytes_ = static_cast<int>(attributes.localSizeBytes);
  if (placement_.shared_bytes > 0)
    CUDA_CHECK(cudaFuncSetAttribute(train_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(placement_.shared_bytes)));
  if (placement_.cluster > 8)
    CUDA_CHECK(cudaFuncSetAttribute(train_, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  if (placement_.blocks > placement_.cluster) check_that_all_run();
  seconds_ = prof::seconds_since(begin);
}

std::vector<char> CompiledKernel::code(const std::string& source, int compute) {
  const std::filesystem::path folder = kernel_cache_folder();
  const std::filesystem::path path = folder.empty() ? folder : folder / kernel_cache_name(source, compute);
  if (!path.empty()) {
    std::vector<char> found = read_file(path);
    if (found.size() > 64 && std::equal(found.begin(), found.begin() + 4, "\177ELF")) return found;
  }
  std::vector<char> made = compile_source(source, compute);
  if (!path.empty()) prof::write_shared(path.string(), {made.data(), made.size()});
  return made;
}

void CompiledKernel::load(const std::vector<char>& code) {
  CUDA_CHECK(cudaLibraryLoadData(library_.out(), code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUDA_CHECK(cudaLibraryGetKernel(&train_, library_, "ws_train"));
  if (placement_.row_bytes > 0) CUDA_CHECK(cudaLibraryGetKernel(&prepare_, library_, "ws_prepare"));
}

int CompiledKernel::blocks_at_once() const {
  int count = 0;
  if (placement_.cluster > 1) {
    LaunchConfig config(placement_);
    config.numAttrs = 1;  // only the cluster attribute
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&count, train_, &config));
    return count * placement_.cluster;
  }
  int device = 0, multiprocessors = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, train_, placement_.threads,
                                                           static_cast<size_t>(placement_.shared_bytes)));
  return count * multiprocessors;
}

// Blocks wait for each other, so all must be on the GPU at once.
void CompiledKernel::check_that_all_run() const {
  const int blocks = blocks_at_once();
  if (blocks < placement_.blocks)
    throw Failure("persistent: this GPU runs " + std::to_string(blocks) + " blocks in clusters of " +
                  std::to_string(placement_.cluster) + " at once, the kernel needs " +
                  std::to_string(placement_.blocks) + ". Choose launch graph.");
}

void CompiledKernel::launch(cudaStream_t stream, void* arguments) const {
  LaunchConfig config(placement_);
  config.stream = stream;
  void* values[] = {arguments};
  CUDA_CHECK(cudaLaunchKernelExC(&config, train_, values));
}

void CompiledKernel::prepare_rows(cudaStream_t stream, const float* from, void* to, int64_t rows) const {
  long long count = rows;
  void* values[] = {&from, &to, &count};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1024);
  config.blockDim = dim3(256);
  config.stream = stream;
  CUDA_CHECK(cudaLaunchKernelExC(&config, prepare_, values));
}

}  // namespace ws::cuda::persistent
