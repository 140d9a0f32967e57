#include "engine/cuda/persistent/compiled_kernel.h"

#include <nvrtc.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/persistent/kernel_source.h"
#include "profiling/base/clock.h"

#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace ws::cuda::persistent {
namespace {

struct Program {
  nvrtcProgram value = nullptr;
  ~Program() {
    if (value) nvrtcDestroyProgram(&value);
  }
};

std::string log_of(nvrtcProgram program) {
  size_t size = 0;
  if (nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size < 2) return {};
  std::string log(size, '\0');
  if (nvrtcGetProgramLog(program, log.data()) != NVRTC_SUCCESS) return {};
  return log.substr(0, 600);
}

void check_nvrtc(nvrtcResult code, const char* call, nvrtcProgram program = nullptr) {
  if (code == NVRTC_SUCCESS) return;
  const std::string log = program ? log_of(program) : std::string();
  throw CallFailure(call, nvrtcGetErrorString(code), "the persistent kernel could not be compiled. " + log);
}

// wgmma is code for one architecture alone, which the letter a says.
std::string architecture(int compute) {
  return "--gpu-architecture=sm_" + std::to_string(compute) + (compute == 90 ? "a" : "");
}

std::string version() {
  int major = 0, minor = 0;
  nvrtcVersion(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

uint64_t hash_of(const std::string& text, uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::vector<char> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Under a temporary name first: another process never reads half of a file. A cache that cannot be written is no error.
void write_file(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path other = path.string() + "." + std::to_string(getpid());
  {
    std::ofstream file(other, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(other, path, error);
  if (error) std::filesystem::remove(other, error);
}

}  // namespace

std::vector<char> compile_source(const std::string& source, int compute) {
  const std::string arch = architecture(compute);
  const char* options[] = {arch.c_str(), "--std=c++17", "--disable-warnings"};
  Program program;
  check_nvrtc(nvrtcCreateProgram(&program.value, source.c_str(), "persistent.cu", 0, nullptr, nullptr),
              "nvrtcCreateProgram");
  check_nvrtc(nvrtcCompileProgram(program.value, static_cast<int>(std::size(options)), options), "nvrtcCompileProgram",
              program.value);
  size_t size = 0;
  check_nvrtc(nvrtcGetCUBINSize(program.value, &size), "nvrtcGetCUBINSize");
  std::vector<char> code(size);
  check_nvrtc(nvrtcGetCUBIN(program.value, code.data()), "nvrtcGetCUBIN");
  return code;
}

std::filesystem::path kernel_cache_folder() {
  if (const char* given = std::getenv("WARPSCOPE_KERNEL_CACHE")) return given;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "warpscope" / "kernels";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "warpscope" / "kernels";
  return {};
}

std::string kernel_cache_name(const std::string& source, int compute) {
  const std::string all = architecture(compute) + "|" + version() + "|" + source;
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx.cubin",
                static_cast<unsigned long long>(hash_of(all, 14695981039346656037ull)),
                static_cast<unsigned long long>(hash_of(all, 88172645463325252ull)));
  return name;
}

CompiledKernel::CompiledKernel(const Placement& placement, int compute) : placement_(placement) {
  const auto begin = std::chrono::steady_clock::now();
  load(code(kernel_source(placement), compute));
  cudaFuncAttributes attributes{};
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, train_));
  registers_ = attributes.numRegs, local_bytes_ = static_cast<int>(attributes.localSizeBytes);
  if (placement_.shared_bytes > 48 << 10)
    CUDA_CHECK(cudaFuncSetAttribute(train_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(placement_.shared_bytes)));
  if (placement_.blocks > 8)
    CUDA_CHECK(cudaFuncSetAttribute(train_, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  seconds_ = prof::seconds_since(begin);
}

std::vector<char> CompiledKernel::code(const std::string& source, int compute) {
  const std::filesystem::path folder = kernel_cache_folder();
  const std::filesystem::path path = folder.empty() ? folder : folder / kernel_cache_name(source, compute);
  if (!path.empty()) {
    std::vector<char> found = read_file(path);
    from_cache_ = found.size() > 64 && std::equal(found.begin(), found.begin() + 4, "\177ELF");
    if (from_cache_) return found;
  }
  std::vector<char> made = compile_source(source, compute);
  if (!path.empty()) write_file(path, made);
  return made;
}

void CompiledKernel::load(const std::vector<char>& code) {
  CUDA_CHECK(cudaLibraryLoadData(library_.out(), code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUDA_CHECK(cudaLibraryGetKernel(&train_, library_, "ws_train"));
  if (placement_.row_bytes > 0) CUDA_CHECK(cudaLibraryGetKernel(&prepare_, library_, "ws_prepare"));
}

void CompiledKernel::launch(cudaStream_t stream, void* arguments) const {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(placement_.blocks));
  config.blockDim = dim3(static_cast<unsigned>(placement_.threads));
  config.dynamicSmemBytes = static_cast<size_t>(placement_.shared_bytes);
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(placement_.blocks);
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  if (placement_.blocks > 1) config.attrs = &cluster, config.numAttrs = 1;
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
