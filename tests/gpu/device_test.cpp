// A machine without a GPU gets a sentence.
#include <gtest/gtest.h>

#include "engine/compile.h"
#include "engine/cuda/advice.h"
#include "engine/cuda/cuda_executor.h"
#include "engine/cuda/kernels/kernels.h"

namespace ws {
namespace {

TEST(Device, SaysWhatItIsOrWhyThereIsNone) {
  const DeviceInfo info = cuda::query_device();
  if (info.cuda) {
    EXPECT_FALSE(info.name.empty());
    EXPECT_GT(info.multiprocessors, 0);
    EXPECT_GT(info.memory_bytes, 0);
    EXPECT_TRUE(info.why_not.empty());
    EXPECT_EQ(cuda::ask_for_code(), cudaSuccess);
    return;
  }
  EXPECT_GT(info.why_not.size(), 10u);
  EXPECT_EQ(info.why_not.back(), '.');
  EXPECT_THROW(cuda::make_cuda_executor(RunSpec{}), Failure);
  RunSpec spec;
  spec.exec.device = Device::Cuda;
  EXPECT_THROW(make_executor(spec), Failure);
}

TEST(Device, AGpuOfAnotherGenerationIsNotTakenForOneThatTheBuildHasCodeFor) {
  EXPECT_FALSE(cuda::made_for(3, 5));
  EXPECT_FALSE(cuda::made_for(99, 0));
  if (!cuda::query_device().cuda) {
    EXPECT_NE(cuda::ask_for_code(), cudaSuccess);
  }
}

TEST(Advice, NamesTheBiggestBuffersAndABatchThatFits) {
  RunSpec spec;
  spec.model.hidden = {4096};
  const Plan plan = compile(spec, make_model(spec.model, 784, 10), 65536).plan;
  const std::string biggest = cuda::biggest_buffers(plan);
  EXPECT_NE(biggest.find("1.0 GiB"), std::string::npos) << biggest;
  const int64_t fits = cuda::batch_that_fits(plan, int64_t{1} << 29);
  EXPECT_GT(fits, 1000);
  EXPECT_LT(fits, 65536);
  const Plan smaller = compile(spec, make_model(spec.model, 784, 10), fits).plan;
  EXPECT_LE(smaller.arena_bytes, int64_t{1} << 29);
  EXPECT_EQ(cuda::batch_that_fits(plan, 1 << 20), 0);
}

}  // namespace
}  // namespace ws
