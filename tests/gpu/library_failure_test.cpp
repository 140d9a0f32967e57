// What a small training never reaches: cuBLASLt and its trials, the line that stays on the multiprocessors, kernels
// compiled at run time, and the question whether a copy has arrived.
#include <gmock/gmock.h>

#include "engine/cuda/kernels/blas.h"
#include "engine/cuda/executor/own_kernel.h"
#include "engine/workloads/lab_kernels.h"
#include "tests/gpu/failure_support.h"

namespace ws::test {
namespace {

using cuda::DeviceBlock;
using testing::Contains;
using testing::IsSupersetOf;

// More rows than the own kernels take; everything else small.
Training library_training(Fusion fusion) {
  Training t = tiny_training();
  t.spec.exec.fusion = fusion;
  t.spec.exec.precision = Precision::Tf32;
  t.batch = 5000;
  t.data = random_data(10300, 8, 4, true);
  return t;
}

TEST(LibraryFailureGpu, EveryCallFailsOnceInATrainingThroughCublas) {
  NEEDS_GPU();
  for (const Fusion fusion : {Fusion::Off, Fusion::Epilogue})
    EXPECT_THAT(sweep(library_training(fusion), cudaErrorUnknown),
                IsSupersetOf({"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmul"}));
}

// The choice is made once for a shape and kept, so here it is forgotten each time.
TEST(LibraryFailureGpu, EveryCallFailsOnceWhileTheLibrarysOfferIsTried) {
  NEEDS_GPU();
  constexpr int64_t kSide = 256;
  const auto side = [] { return DeviceBlock<char>::filled(kSide * kSide * 4); };
  const DeviceBlock<char> a = side(), b = side(), c = side(), scratch = DeviceBlock<char>::filled(cuda::kScratchBytes);
  const auto tensor = [](const DeviceBlock<char>& block) {
    return cuda::Tensor{block.data(), DType::F32, kSide, kSide};
  };
  cuda::Product product;
  product.a = tensor(a), product.b = tensor(b), product.c = tensor(c);
  const auto work = [&] {
    cuda::blas_forget();
    cuda::Blas blas;
    const cuda::Stream stream = cuda::make_stream();
    cuda::blas_product({stream.get()}, blas, {scratch.data()}, product);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  for (const cudaError_t error : {cudaErrorUnknown, cudaErrorMemoryAllocation})
    EXPECT_THAT(fail_each_call(work, error),
                IsSupersetOf({"cublasLtMatmulPreferenceCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
                              "cudaEventElapsedTime"}));
}

TEST(LibraryFailureGpu, EveryCallFailsOnceOnALineThatStaysOnTheMultiprocessors) {
  NEEDS_GPU();
  constexpr int64_t kPoints = 200'000;  // more than a cluster takes
  if (!cuda::keeps_points({nullptr, DType::F32, kPoints, 1})) GTEST_SKIP() << "this GPU does not hold so many points";
  EXPECT_THAT(sweep(tiny_line(Launch::Graph, kPoints), cudaErrorUnknown), Contains("cudaLaunchKernelEx"));
}

TEST(LibraryFailureGpu, EveryCallFailsOnceWhileAKernelOfAPersonIsCompiled) {
  NEEDS_GPU();
  lab::LabSpec spec;
  spec.operation = lab::Operation::Sine;
  const own::KernelContract contract = lab::kernel_contract(spec, 1000);
  const OwnKernelSource source{"my.cu", own::first_version(contract)};
  const DeviceBlock<float> x = DeviceBlock<float>::filled(1000), out = DeviceBlock<float>::filled(1000);
  const auto work = [&] {
    const cuda::OwnKernel compiled(contract, source);
    const cuda::Stream stream = cuda::make_stream();
    compiled.launch(stream, std::vector<void*>{x.data(), out.data()}, {});
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  EXPECT_THAT(fail_each_call(work, cudaErrorUnknown),
              IsSupersetOf({"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBINSize", "nvrtcGetCUBIN",
                            "cudaLibraryLoadData", "cudaLibraryGetKernel", "cudaLaunchKernelExC"}));
}

TEST(LibraryFailureGpu, AskingWhetherACopyHasArrivedCanFail) {
  NEEDS_GPU();
  const Training t = tiny_training();
  {
    const Ready ready(t);
    const auto& executor = ready.executor;
    executor->run(0, 0, std::vector<float>{0.01f, 0.01f});
    std::vector<StepResult> results;
    executor->results(results, false);  // begins to copy
    cuda::faults::fail_at(1);
    EXPECT_THROW(executor->results(results, false), CallFailure);
    EXPECT_THAT(cuda::faults::last_hit(), testing::StartsWith("cudaEventQuery"));
    cuda::faults::fail_at(0);
    executor->results(results, true);
    EXPECT_EQ(results.size(), 2u) << "the copy itself was not harmed";
  }
  EXPECT_NO_THROW(live(t));
}

}  // namespace
}  // namespace ws::test
