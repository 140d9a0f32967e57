// Kernels that are compiled at run time keep everything in registers. (Kernels of the build: the compiler's report, see
// warpsight_report_spills.)
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "engine/cuda/workloads/compiled_expression.h"
#include "tests/support/gpu.h"

namespace ws::test {
namespace {

size_t local_bytes(const lab::Expression& expression) {
  const cuda::lab::CompiledExpression compiled(expression);
  cudaFuncAttributes attributes{};
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, compiled.kernel()));
  EXPECT_GT(attributes.numRegs, 0);
  return attributes.localSizeBytes;
}

// A product of forty sums that all wait for the last: as many values at once as a person is likely to write.
std::string forty_deep() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "(x*" + std::to_string(i) + "+y)*(";
  return text + "x" + std::string(40, ')');
}

TEST(SpillsGpu, CompiledExpressionsKeepEverythingInRegisters) {
  NEEDS_GPU();
  for (const int depth : {1, 2, 8, 32, 64})
    EXPECT_EQ(local_bytes(lab::Expression::nested_sine(depth)), 0u) << depth << " sines";
  for (const std::string& text :
       {std::string("x*2+y"), std::string("pow(x,y)+tanh(x)*sigmoid(y)"), std::string("max(min(x,y),relu(x))"),
        std::string("exp(x)-log(abs(y))/sqrt(abs(x)+1)"), forty_deep()})
    EXPECT_EQ(local_bytes(lab::Expression::parse(text)), 0u) << text;
}

// The library's sine of an argument of any size keeps a table of 28 bytes for huge ones: that is no spill.
TEST(SpillsGpu, OnlyTheLibrarysSineKeepsItsTable) {
  NEEDS_GPU();
  for (const char* text : {"sin(x*100)*cos(y*x)", "sin(sin(x))*2+y", "cos(x)+sin(y)*cos(x-y)"})
    EXPECT_LE(local_bytes(lab::Expression::parse(text)), 32u) << text;
}

}  // namespace
}  // namespace ws::test
