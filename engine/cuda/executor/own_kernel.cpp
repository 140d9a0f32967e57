#include "engine/cuda/executor/own_kernel.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include "engine/cuda/executor/own_kernel_check.h"
#include "engine/cuda/runtime/nvrtc.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/base/paths.h"

namespace ws::cuda {
namespace {

namespace fs = std::filesystem;

// The folder of cuda_fp16.h and cuda_bf16.h; empty if there is none.
std::string toolkit_headers() {
  const char *home = std::getenv("CUDA_HOME"), *path = std::getenv("CUDA_PATH");
  std::error_code error;
  for (const std::string root : {home ? home : "", path ? path : "", "/usr/local/cuda"})
    if (!root.empty() && fs::exists(root + "/include/cuda_fp16.h", error)) return root + "/include";
  return {};
}

bool needs_toolkit(const own::KernelContract& contract) {
  for (const own::Operand& o : contract.operands)
    if (size_of(o.type) == 2) return true;
  return false;
}

}  // namespace

int device_attribute(cudaDeviceAttr what) {
  int device = 0, value = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&value, what, device));
  return value;
}

own::KernelBuild build_own(const own::KernelContract& contract, const OwnKernelSource& source, int compute) {
  own::require_same_op(contract, source);
  const std::string headers = toolkit_headers();
  if (headers.empty() && needs_toolkit(contract))
    throw Failure("16-bit types need cuda_fp16.h of the CUDA toolkit. Set CUDA_HOME to its folder.");
  std::vector<std::string> options{"--gpu-architecture=sm_" + std::to_string(compute) + (compute == 90 ? "a" : ""),
                                   "--std=c++17", "--generate-line-info",
                                   "--include-path=" + fs::absolute(source.file).parent_path().string(),
                                   "--include-path=" + own::kernels_folder().string()};
  for (const char* folder : {"../include", "../profiling/annotate"})  // kernel_ranges.cuh: installed, or in the source
    options.push_back("--include-path=" + (resources_folder() / folder).string());
  if (!headers.empty()) options.push_back("--include-path=" + headers);
  const Compilation made = try_compile(own::prelude(contract, source.file) + source.text + own::ending(), "own_kernel.cu", options);
  own::KernelBuild build{own::notes_of(made.log, own::line_name(source.file)), made.code, {}};
  if (build.good()) build.facts = own::facts_of(build.code, compute);
  return build;
}

OwnKernel::OwnKernel(const own::KernelContract& contract, const OwnKernelSource& source) : contract_(contract) {
  using enum OwnKernelFault;
  const int compute = 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) + device_attribute(cudaDevAttrComputeCapabilityMinor);
  const own::KernelBuild build = build_own(contract, source, compute);
  if (!build.good()) throw OwnKernelRefused(DoesNotCompile, source.file + " does not compile: " + build.errors());
  CUDA_CHECK(cudaLibraryLoadData(library_.out(), build.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  if (CUDA_ATTEMPT(cudaLibraryGetKernel(&kernel_, library_, own::kEntry)) != cudaSuccess) {
    cudaGetLastError();
    throw OwnKernelRefused(NoKernel, source.file + " has no kernel named " + own::kEntry + ". Declare: extern \"C\" __global__ void " + own::kEntry + "(…).");
  }
  read_launch();
  check_launch();
}

void OwnKernel::read_launch() {
  void* address = nullptr;
  size_t bytes = 0;
  CUDA_CHECK(cudaLibraryGetGlobal(&address, &bytes, library_, own::kLaunch));
  CUDA_CHECK(cudaMemcpy(launch_, address, sizeof launch_, cudaMemcpyDeviceToHost));
}

// A launch that the driver would refuse is one sentence here, with the number that is wrong.
void OwnKernel::check_launch() {
  cudaFuncAttributes found{};
  CUDA_CHECK(cudaFuncGetAttributes(&found, kernel_));
  registers_ = found.numRegs, local_bytes_ = static_cast<int>(found.localSizeBytes);
  const auto [blocks, threads, shared] = std::to_array(launch_);
  const auto refused = [](const std::string& sentence) { return OwnKernelRefused(OwnKernelFault::BadLaunch, sentence); };
  if (blocks < 1) throw refused("kBlocks is " + std::to_string(blocks) + ". A launch needs at least one block.");
  if (threads < 1 || threads > found.maxThreadsPerBlock)
    throw refused("kThreads is " + std::to_string(threads) + ". This kernel takes 1 to " + std::to_string(found.maxThreadsPerBlock) +
                  " threads a block, with its " + std::to_string(registers_) + " registers.");
  const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - static_cast<int>(found.sharedSizeBytes);
  if (shared < 0 || shared > most)
    throw refused("kSharedBytes is " + std::to_string(shared) + ". This kernel takes at most " + std::to_string(most) + " bytes.");
  if (shared > 0) CUDA_CHECK(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  int at_once = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel_, threads, static_cast<size_t>(shared)));
  occupancy_ = static_cast<double>(at_once) * threads / device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
}

void OwnKernel::take_all_shared_memory() {
  CUDA_CHECK(cudaFuncSetAttribute(kernel_, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
}

void OwnKernel::launch(cudaStream_t stream, std::span<void* const> operands, StepAt at) const {
  std::vector<void*> addresses(operands.begin(), operands.end()), arguments;
  for (void*& address : addresses) arguments.push_back(&address);
  if (contract_.takes_step()) arguments.push_back(&at);  // step_t in the prelude has the same members
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(launch_[0]));
  config.blockDim = dim3(static_cast<unsigned>(launch_[1]));
  config.dynamicSmemBytes = static_cast<size_t>(launch_[2]);
  config.stream = stream;
  CUDA_CHECK(cudaLaunchKernelExC(&config, kernel_, arguments.data()));
}

std::string OwnKernel::note() const {
  return "your kernel: " + std::to_string(launch_[0]) + " × " + std::to_string(launch_[1]) + " threads, " +
         std::to_string(registers_) + " registers" + (local_bytes_ > 0 ? ", " + std::to_string(local_bytes_) + " bytes in local memory" : "");
}

}  // namespace ws::cuda
