// Line info of machine code that NVRTC made, and of damaged bytes.
#include "profiling/base/line_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cuda/runtime/nvrtc.h"

namespace ws {
namespace {

constexpr const char* kSource =
    "#line 1 \"a.cu\"\n"
    "__device__ __forceinline__ float wait(const float* z, int i) {\n"
    "  while (*(volatile const int*)z == 0) {}\n"
    "  return z[i];\n"
    "}\n"
    "__device__ __forceinline__ void forward(const float* z, float* h, int i) {\n"
    "  h[i] = wait(z, i) * 2;\n"
    "}\n"
    "extern \"C\" __global__ void other(float* h) { h[0] = 1; }\n"
    "extern \"C\" __global__ void kernel(const float* z, float* h) {\n"
    "  forward(z, h, threadIdx.x);\n"
    "  __syncthreads();\n"
    "  h[threadIdx.x] += wait(z + 100, 3);\n"
    "}\n";

std::vector<char> code(int compute) {
  return cuda::compile_to_cubin(kSource, "x.cu", {"--gpu-architecture=sm_" + std::to_string(compute), "--generate-line-info"}, "it does not compile");
}

std::vector<int> lines_of(const PlacedInstructions& one) {
  std::vector<int> lines;
  for (const CodePlace& place : one.places) lines.push_back(place.line);
  return lines;
}

TEST(LineTable, ALineHasTheCallsAroundIt) {
  for (const int compute : {80, 90}) {
    const std::vector<char> cubin = code(compute);
    const Elf elf(cubin);
    std::vector<std::vector<int>> seen;
    for (const PlacedInstructions& one : line_table(elf, "kernel")) {
      seen.push_back(lines_of(one));
      for (const CodePlace& place : one.places) EXPECT_THAT(place.file, testing::EndsWith("a.cu"));
      if (lines_of(one) != std::vector<int>{2, 6, 10}) continue;
      EXPECT_THAT(one.places[0].function, testing::HasSubstr("wait")) << "the function that the line is in";
      EXPECT_THAT(one.places[1].function, testing::HasSubstr("forward"));
      EXPECT_EQ(one.places[2].function, "");
    }
    EXPECT_THAT(seen, testing::Contains(std::vector<int>{2, 6, 10}));
    EXPECT_THAT(seen, testing::Contains(std::vector<int>{2, 12})) << "the same line, called from elsewhere";
    EXPECT_THAT(seen, testing::Contains(std::vector<int>{13}));
    for (const PlacedInstructions& one : line_table(elf, "other")) EXPECT_EQ(lines_of(one), std::vector<int>{8});
    EXPECT_FALSE(line_table(elf, "other").empty());
    EXPECT_TRUE(line_table(elf, "absent").empty());
  }
}

TEST(LineTable, DamagedLineInfoEndsTheTable) {
  std::vector<char> cubin = code(90);
  const Elf::Section info = *Elf(cubin).section(".debug_line");
  for (uint64_t at = 0; at < info.size; ++at)
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::vector<char> damaged = cubin;
      damaged[info.offset + at] = value;
      EXPECT_LE(line_table(Elf(damaged), "kernel").size(), info.size);
    }
}

}  // namespace
}  // namespace ws
