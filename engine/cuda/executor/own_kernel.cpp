#include "engine/cuda/executor/own_kernel.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include "engine/cuda/executor/own_kernel_check.h"
#include "engine/cuda/runtime/nvrtc.h"
#include "engine/own_kernels/ptx_source.h"
#include "engine/own_kernels/triton_kernel.h"
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

namespace {

// The name of an architecture for a compiler. The suffix "a" adds the instructions of this one, such as wgmma.
std::string architecture(int compute) { return "sm_" + std::to_string(compute) + (compute == 90 ? "a" : ""); }

std::vector<std::string> cuda_options(const own::KernelContract& contract, const std::string& file, const std::string& target) {
  const std::string headers = toolkit_headers();
  if (headers.empty() && needs_toolkit(contract))
    throw Failure("16-bit types need cuda_fp16.h of the CUDA toolkit. Set CUDA_HOME to its folder.");
  std::vector<std::string> options{"--gpu-architecture=" + target, "--std=c++17", "--include-path=" + fs::absolute(file).parent_path().string(),
                                   "--include-path=" + own::kernels_folder().string()};
  for (const char* folder : {"../include", "../profiling/annotate"})  // kernel_ranges.cuh: installed, or in the source
    options.push_back("--include-path=" + (resources_folder() / folder).string());
  if (!headers.empty()) options.push_back("--include-path=" + headers);
  return options;
}

std::string whole_source(const own::KernelContract& contract, const OwnKernelSource& source) {
  return own::prelude(contract, source.file) + source.text + own::ending();
}

own::KernelBuild build_cuda(const own::KernelContract& contract, const OwnKernelSource& source, int compute) {
  std::vector<std::string> options = cuda_options(contract, source.file, architecture(compute));
  options.emplace_back("--generate-line-info");
  const Compilation made = try_compile(whole_source(contract, source), "own_kernel.cu", options);
  own::KernelBuild build{.notes = own::notes_of(made.log, own::line_name(source.file)), .code = made.code};
  if (build.good()) build.facts = own::facts_of(build.code, compute);
  return build;
}

own::KernelBuild build_ptx(const OwnKernelSource& source, int compute) {
  const Compilation made = try_assemble(own::with_ptx_lines(source.text, source.file), architecture(compute));
  own::KernelBuild build{.notes = own::ptx_notes_of(made.log), .code = made.code};
  if (build.good()) build.facts = own::facts_of(build.code, compute);
  if (!build.facts || !build.facts->has_kernel || build.facts->threads > 0) return build;
  const std::string missing = std::string("It does not say how it is launched: add .visible .global .align 4 .u32 ") + own::kLaunch + "[3] = {blocks, threads, bytes};";
  return {.notes = {{0, true, {}, missing}}};
}

own::KernelBuild build_in_language(const own::KernelContract& contract, const OwnKernelSource& source, int compute) {
  switch (own::language_of(source.file)) {
    case own::KernelLanguage::Ptx:
      return build_ptx(source, compute);
    case own::KernelLanguage::Triton:
      return own::build_triton(contract, source, compute);
    case own::KernelLanguage::Cuda:
      break;
  }
  return build_cuda(contract, source, compute);
}

}  // namespace

own::KernelBuild build_own(const own::KernelContract& contract, const OwnKernelSource& source, int compute) {
  own::require_same_op(contract, source);
  own::KernelBuild build = build_in_language(contract, source, compute);
  own::check_parameters(contract, build);
  return build;
}

std::string first_ptx(const own::KernelContract& contract) {
  constexpr int kCompute = 80;  // the oldest GPU that it is for
  const OwnKernelSource source{"first.cu", own::first_version(contract)};
  const own::KernelBuild built = build_cuda(contract, source, kCompute);
  if (!built.good() || !built.facts) throw Failure(contract.op_name + ": its first version does not compile: " + built.errors());
  const std::string target = "compute_" + std::to_string(kCompute);
  return own::first_ptx(contract, compile_to_ptx(whole_source(contract, source), "first.cu", cuda_options(contract, source.file, target), "the first version could not be compiled"),
                        *built.facts);
}

OwnKernel::OwnKernel(const own::KernelContract& contract, const OwnKernelSource& source) : contract_(contract) {
  using enum OwnKernelFault;
  const int compute = 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) + device_attribute(cudaDevAttrComputeCapabilityMinor);
  const own::KernelBuild build = build_own(contract, source, compute);
  if (!build.good()) throw OwnKernelRefused(DoesNotCompile, source.file + " does not compile: " + build.errors());
  if (!build.facts) throw Failure(source.file + ": its machine code cannot be read. Install a newer version of this program.");
  hidden_ = build.hidden_pointers;
  launch_[0] = build.facts->blocks, launch_[1] = build.facts->threads, launch_[2] = build.facts->dynamic_bytes;
  CUDA_CHECK(cudaLibraryLoadData(library_.out(), build.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  if (CUDA_ATTEMPT(cudaLibraryGetKernel(&kernel_, library_, build.entry.c_str())) != cudaSuccess) {
    cudaGetLastError();
    throw OwnKernelRefused(NoKernel, source.file + " has no kernel named " + own::kEntry + ". Declare: extern \"C\" __global__ void " + own::kEntry + "(…).");
  }
  check_launch(own::language_of(source.file));
}

// A launch that the driver would refuse is one sentence here, with the number that is wrong.
void OwnKernel::check_launch(own::KernelLanguage language) {
  using Names = std::array<std::string, 3>;
  const std::string in_ptx = own::kLaunch;
  const Names names = language == own::KernelLanguage::Cuda  ? Names{"kBlocks", "kThreads", "kSharedBytes"}
                      : language == own::KernelLanguage::Ptx ? Names{in_ptx + "[0]", in_ptx + "[1]", in_ptx + "[2]"}
                                                             : Names{"blocks(c)", "32 times num_warps", "The shared memory of the kernel"};
  cudaFuncAttributes found{};
  CUDA_CHECK(cudaFuncGetAttributes(&found, kernel_));
  registers_ = found.numRegs, local_bytes_ = static_cast<int>(found.localSizeBytes);
  const auto [blocks, threads, shared] = std::to_array(launch_);
  const auto refused = [](const std::string& sentence) { return OwnKernelRefused(OwnKernelFault::BadLaunch, sentence); };
  if (blocks < 1) throw refused(names[0] + " is " + std::to_string(blocks) + ". A launch needs at least one block.");
  if (threads < 1 || threads > found.maxThreadsPerBlock)
    throw refused(names[1] + " is " + std::to_string(threads) + ". This kernel takes 1 to " + std::to_string(found.maxThreadsPerBlock) +
                  " threads per block, with its " + std::to_string(registers_) + " registers.");
  const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - static_cast<int>(found.sharedSizeBytes);
  if (shared < 0 || shared > most)
    throw refused(names[2] + " is " + std::to_string(shared) + ". This kernel takes at most " + std::to_string(most) + " bytes.");
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
  void* none = nullptr;
  for (int i = 0; i < hidden_; ++i) arguments.push_back(&none);
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
