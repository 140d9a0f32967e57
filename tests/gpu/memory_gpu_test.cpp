// Every allocator on a GPU against the one conformance suite, and what only a device shows.
#include <cuda_runtime_api.h>

#include "engine/cuda/memory/caching.h"
#include "engine/cuda/memory/counting.h"
#include "engine/cuda/memory/driver_memory.h"
#include "engine/cuda/memory/allocator_stack.h"
#include "tests/support/gpu.h"
#include "tests/support/planned_arena.h"

namespace ws::cuda {
namespace {

test::MemoryUnderTest on_gpu(MemoryResource& memory, cudaStream_t stream) {
  return {memory, stream,
          [stream](void* p, int64_t n, int v) { CUDA_CHECK(cudaMemsetAsync(p, v, static_cast<size_t>(n), stream)); },
          [stream](const void* p, int64_t n, int v) {
            std::vector<unsigned char> host(static_cast<size_t>(n));
            CUDA_CHECK(cudaMemcpyAsync(host.data(), p, host.size(), cudaMemcpyDeviceToHost, stream));
            CUDA_CHECK(cudaStreamSynchronize(stream));
            return std::all_of(host.begin(), host.end(), [v](unsigned char b) { return b == v; });
          }};
}

TEST(MemoryGpu, DirectConforms) {
  NEEDS_GPU();
  const Stream stream = make_stream();
  Direct direct;
  Counting counting(direct, "direct", Level::Blocks);
  test::MemoryUnderTest t = on_gpu(counting, stream);
  t.reserved = [&] { return counting.counts().live; };
  t.catches_double_free = true;
  test::expect_conformance(t);
}

TEST(MemoryGpu, StreamOrderedConforms) {
  NEEDS_GPU();
  const Stream stream = make_stream();
  StreamOrdered pool(-1);
  Counting counting(pool, "stream-ordered", Level::Blocks);
  test::MemoryUnderTest t = on_gpu(counting, stream);
  t.reserved = [&] {
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return pool.reserved();
  };
  t.keeps = true;
  t.trim = [&](int64_t keep) {
    CUDA_CHECK(cudaStreamSynchronize(stream));
    pool.trim(keep);
  };
  t.catches_double_free = true;
  test::expect_conformance(t);
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

TEST(MemoryGpu, CachingConforms) {
  NEEDS_GPU();
  const Stream stream = make_stream();
  for (const int64_t cap : {int64_t{0}, int64_t{96} << 20}) {
    Direct direct;
    Caching pool(direct, cap);
    Counting counting(pool, "caching", Level::Blocks);
    test::expect_caching_conformance(on_gpu(counting, stream), pool, cap);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  }
}

TEST(MemoryGpu, ArenaConforms) {
  NEEDS_GPU();
  const Stream stream = make_stream();
  Direct direct;
  test::PlannedArena arena(direct, stream, test::history_of_the_suite());
  test::MemoryUnderTest t = test::planned(on_gpu(arena, stream));
  t.reserved = [&] { return arena.reserved(); };
  t.keeps = true;
  test::expect_conformance(t);
  EXPECT_TRUE(arena.done());
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

void churn(MemoryResource& memory, cudaStream_t stream) {
  for (int i = 0; i < 10; ++i) {
    void* p = memory.allocate(stream, 40 << 20);
    memory.deallocate(stream, p, 40 << 20);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  }
}

TEST(MemoryGpu, TheReleaseThresholdDecidesWhatThePoolKeeps) {
  NEEDS_GPU();
  const Stream stream = make_stream();
  StreamOrdered keeps(-1), gives_back(0);
  churn(keeps, stream);
  churn(gives_back, stream);
  EXPECT_GE(keeps.reserved(), 40 << 20);
  EXPECT_EQ(gives_back.reserved(), 0);
  EXPECT_EQ(keeps.growths(), 1);
  keeps.trim(0);
  EXPECT_EQ(keeps.reserved(), 0);
}

TEST(MemoryGpu, NothingStaysBehind) {
  NEEDS_GPU();
  const Stream stream = make_stream();
  size_t before = 0, after = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&before, &total));
  for (const Allocator kind : {Allocator::Direct, Allocator::StreamOrdered, Allocator::Caching, Allocator::Arena}) {
    AllocatorStack memory(kind, ExecSpec{});
    if (kind == Allocator::Arena) {
      memory.reserve_arena(stream, 64 << 20);
      continue;
    }
    void* p = memory.allocate(stream, 64 << 20, prof::kNoOp);
    memory.deallocate(stream, p, 64 << 20, prof::kNoOp);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemGetInfo(&after, &total));
  EXPECT_LE(before - std::min(before, after), size_t{4} << 20);
}

}  // namespace
}  // namespace ws::cuda
