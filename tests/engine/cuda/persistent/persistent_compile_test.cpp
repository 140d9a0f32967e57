// The kernels compile for GPUs with and without clusters. The run-time compiler needs no GPU.
#include <gmock/gmock.h>

#include <algorithm>

#if WARPSIGHT_HAVE_CUDA
#include "engine/cuda/persistent/compiled_kernel.h"
#include "engine/cuda/persistent/kernel_source.h"
#include "engine/cuda/runtime/nvrtc.h"
#include "profiling/base/line_table.h"
#endif

namespace ws::cuda::persistent {
namespace {

#if WARPSIGHT_HAVE_CUDA
// Lines name the files of the source, with the calls around each, and change no instruction.
void check_lines(const std::string& source, int compute) {
  const std::vector<char> with = compile_source(source, compute);
  const std::string target = "--gpu-architecture=sm_" + std::to_string(compute) + (compute == 90 ? "a" : "");
  const std::vector<char> without = compile_to_cubin(source, "persistent.cu", {target, "--std=c++17", "--disable-warnings"}, "it does not compile");
  const Elf with_lines(with), plain(without);
  ASSERT_TRUE(with_lines.section(".text.ws_train") && plain.section(".text.ws_train"));
  EXPECT_TRUE(std::ranges::equal(with_lines.content(*with_lines.section(".text.ws_train")), plain.content(*plain.section(".text.ws_train"))));
  size_t deepest = 0;
  bool named = false, in_role = false;
  for (const PlacedInstructions& one : line_table(with_lines, "ws_train")) {
    deepest = std::max(deepest, one.places.size());
    for (const CodePlace& place : one.places) named = named || place.file.find("persistent/") != std::string::npos;
    in_role = in_role || (one.places.size() > 1 && !one.places[one.places.size() - 2].function.empty());
  }
  EXPECT_GE(deepest, 3u);
  EXPECT_TRUE(named && in_role);
}

void expect_compiles(const Network& n, int compute, bool stamped = false) {
  Limits limits;
  limits.compute = compute;
  const Placement made = place(n, limits);
  ASSERT_NE(made.residency, Residency::None) << made.why_not;
  try {
    const size_t plain = compile_source(kernel_source(made), compute).size();
    EXPECT_GT(plain, 1000u);
    if (!stamped) return;
    EXPECT_GT(compile_source(kernel_source(made, true), compute).size(), plain) << "stamps are code";
    check_lines(kernel_source(made), compute);
  } catch (const Failure& problem) {
    ADD_FAILURE() << text(made) << problem.what();
  }
}

Network network(std::vector<int64_t> widths, int64_t batch, bool all_rows) {
  Network n;
  n.widths = std::move(widths), n.batch = batch, n.all_rows = all_rows;
  return n;
}

TEST(PersistentCompile, ClustersForHopper) {
  for (const Precision p : {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16}) {
    Network n = network({784, 128, 10}, 64, false);
    n.precision = p;
    n.optimizer = p == Precision::Bf16 ? Optimizer::Adam : Optimizer::Momentum;
    expect_compiles(n, 90, p == Precision::Tf32);
    n.widths = {60, 50, 4}, n.batch = 100, n.activation = Activation::Gelu, n.loss = LossKind::MeanSquared;
    n.bias = false, n.decays = true;
    expect_compiles(n, 90);
  }
}

TEST(PersistentCompile, ClustersThatShareABatch) {
  Network n = network({784, 128, 10}, 512, false);
  n.precision = Precision::Tf32;
  expect_compiles(n, 90, true);
  n.widths = {60, 50, 4}, n.batch = 200, n.precision = Precision::Bf16, n.optimizer = Optimizer::Adam;
  expect_compiles(n, 90);
}

TEST(PersistentCompile, CopiesForHopper) {
  Network n = network({784, 128, 128, 128, 10}, 32, false);
  n.precision = Precision::Fp16;
  expect_compiles(n, 90, true);
  n.widths = {60, 50, 100, 7}, n.batch = 50, n.precision = Precision::Bf16, n.optimizer = Optimizer::Adam;
  n.activation = Activation::Gelu, n.loss = LossKind::MeanSquared, n.bias = false, n.decays = true;
  expect_compiles(n, 90);
}

TEST(PersistentCompile, FlowsForHopper) {
  Network n = network({784, 128, 10}, 60'000, true);
  n.precision = Precision::Tf32, n.optimizer = Optimizer::Adam;
  expect_compiles(n, 90, true);
  n.widths = {60, 50, 16}, n.batch = 3000, n.precision = Precision::Bf16, n.loss = LossKind::MeanSquared;
  n.activation = Activation::Gelu, n.bias = false, n.decays = true;
  expect_compiles(n, 90);
}

TEST(PersistentCompile, GridsForHopper) {
  for (const Precision p : {Precision::Fp32, Precision::Fp16}) {
    Network n = network({60, 300, 50, 21}, 50, false);
    n.precision = p;
    n.optimizer = p == Precision::Fp16 ? Optimizer::Adam : Optimizer::Momentum;
    n.activation = p == Precision::Fp16 ? Activation::Relu : Activation::Gelu;
    expect_compiles(n, 90, p == Precision::Fp16);
  }
  Network wide = network({784, 784, 784, 784, 784, 10}, 64, false);  // moments in device memory
  wide.precision = Precision::Tf32, wide.optimizer = Optimizer::Momentum;
  expect_compiles(wide, 90);
  Network line = network({1, 1}, 5'000'000, true);
  line.loss = LossKind::MeanSquared;
  expect_compiles(line, 90);
}

TEST(PersistentCompile, BlocksAndRowsForEveryGpu) {
  for (const int compute : {80, 90})
    for (const bool all_rows : {false, true}) {
      Network block = network({20, 33, 7, 5}, 30, all_rows);
      block.optimizer = Optimizer::Adam;
      expect_compiles(block, compute, all_rows);
      expect_compiles(network({4, 5, 3}, 120, all_rows), compute, all_rows);
    }
  Network line = network({1, 1}, 50'000, true);
  line.loss = LossKind::MeanSquared;
  expect_compiles(line, 90);
}

TEST(PersistentCompile, TheCacheNamesSourceAndGpu) {
  EXPECT_EQ(kernel_cache_name("a", 90), kernel_cache_name("a", 90));
  EXPECT_NE(kernel_cache_name("a", 90), kernel_cache_name("b", 90));
  EXPECT_NE(kernel_cache_name("a", 90), kernel_cache_name("a", 80));
}

TEST(PersistentCompile, ReportsWhatTheCompilerPrinted) {
  try {
    compile_source("this is no kernel", 90);
    ADD_FAILURE() << "it compiled";
  } catch (const Failure& problem) {
    EXPECT_THAT(problem.what(), testing::HasSubstr("could not be compiled"));
    EXPECT_THAT(problem.what(), testing::HasSubstr("error"));
  }
}
#else
TEST(PersistentCompile, NeedsTheRunTimeCompiler) { GTEST_SKIP() << "This build has no CUDA toolkit, so no NVRTC."; }
#endif

}  // namespace
}  // namespace ws::cuda::persistent
