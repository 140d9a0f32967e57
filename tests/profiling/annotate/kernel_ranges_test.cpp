// The header for ranges inside kernels compiles for GPUs old and new, offline and at run time, and leaves nothing
// behind where it is switched off. The compilers need no GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/cuda/runtime/nvrtc.h"

namespace ws {
namespace {

const std::string kKernel = R"(
#include "profiling/annotate/kernel_ranges.cuh"
__global__ void kernel(float* x, int n, warpsight::Ranges ranges) {
  ranges.begin(0);
  float value = x[threadIdx.x];
  ranges.end(0);
  for (int i = 0; i < n; ++i) {
    const warpsight::Range multiply(ranges, 1);
    value *= 1.5f;
  }
  x[threadIdx.x] = value;
}
)";
const std::string kPlain = R"(
namespace warpsight {
struct Ranges {
  unsigned long long words[6];
};
}  // namespace warpsight
__global__ void kernel(float* x, int n, warpsight::Ranges) {
  float value = x[threadIdx.x];
  for (int i = 0; i < n; ++i) value *= 1.5f;
  x[threadIdx.x] = value;
}
)";
const std::string kHost = R"(
int main() {
  const warpsight::KernelRanges inside({"load", "multiply"}, warpsight::Each::Warp);
  kernel<<<0, 0>>>(nullptr, 0, inside.ranges());
}
)";

size_t compiled_size(const std::string& source, const char* architecture) {
  return cuda::compile_to_cubin(source, "kernel.cu",
                                {std::string("-arch=") + architecture, "--std=c++17", "-I" WARPSIGHT_SOURCE_DIR},
                                "the kernel does not compile")
      .size();
}

TEST(KernelRanges, CompileAtRunTime) {
  for (const char* architecture : {"sm_80", "sm_90"})
    EXPECT_GT(compiled_size(kKernel, architecture), compiled_size(kPlain, architecture) + 1000) << "stamps are code";
}

class Nvcc : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("nvcc-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // Returns what nvcc made; empty if it failed.
  std::string made(const std::string& source, const std::string& options) const {
    const std::filesystem::path from = folder_ / "program.cu", to = folder_ / "program";
    std::ofstream(from) << source;
    const std::string command =
        "'" CUDA_COMPILER "' -std=c++17 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I '" +
        std::string(WARPSIGHT_SOURCE_DIR) + "' " + options + " -o '" + to.string() + "' '" + from.string() + "'";
    if (std::system(command.c_str()) != 0) return "";
    std::ifstream file(to, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::filesystem::path folder_;
};

TEST_F(Nvcc, CompilesADeviceAndAHost) {
  for (const char* options : {"-arch=sm_80", "-arch=sm_90", "-arch=sm_90 -DWARPSIGHT_NO_RANGES"})
    EXPECT_NE(made(kKernel + kHost, std::string(options) + " -cudart shared -ldl"), "") << options;
}

TEST_F(Nvcc, LeavesNothingOfRangesThatAreSwitchedOff) {
  const std::string plain = made(kPlain, "-arch=sm_90 -ptx");
  EXPECT_NE(plain, "");
  EXPECT_EQ(made(kKernel, "-arch=sm_90 -ptx -DWARPSIGHT_NO_RANGES"), plain);
  EXPECT_NE(made(kKernel, "-arch=sm_90 -ptx"), plain);
}

}  // namespace
}  // namespace ws
