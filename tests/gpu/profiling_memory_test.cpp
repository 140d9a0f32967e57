// Allocator calls, copies and memsets: counts, bytes and the step they belong to, exactly.
#include <map>

#include "tests/gpu/profiling_support.h"

namespace ws::prof::testing {
namespace {

using MemoryGpuTest = GpuTest;

TEST_F(MemoryGpuTest, AllocatorCallsAreCountedExactlyByStep) {
  const OpTag first = ops("allocating", 2);
  const Gathered g = gather({.level = TraceLevel::Steps}, [&](Collector&) {
    for (int step = 0; step < 20; ++step) {
      const StepScope step_scope(step);
      std::vector<void*> direct(static_cast<size_t>(step)), async(3);
      {
        const OpScope scope(first);
        for (void*& p : direct) CUDA_OK(cudaMalloc(&p, 1 << 20));
        for (void*& p : async) CUDA_OK(cudaMallocAsync(&p, 1 << 16, stream_));
      }
      const OpScope scope(static_cast<OpTag>(first + 1));
      for (void* p : direct) CUDA_OK(cudaFree(p));
      for (void* p : async) CUDA_OK(cudaFreeAsync(p, stream_));
    }
    cudaStreamSynchronize(stream_);
  });
  std::map<std::pair<uint32_t, OpTag>, StepAllocations> by;
  for (const StepAllocations& a : g.allocations) {
    auto& sum = by[{a.step, a.op}];
    sum.allocations += a.allocations, sum.frees += a.frees, sum.bytes += a.bytes;
    sum.async_allocations += a.async_allocations, sum.async_frees += a.async_frees, sum.time_ns += a.time_ns;
  }
  for (uint32_t step = 0; step < 20; ++step) {
    const auto& made = by[{step + 1, first}];
    const auto& freed = by[{step + 1, static_cast<OpTag>(first + 1)}];
    EXPECT_EQ(made.allocations, step);
    EXPECT_EQ(made.async_allocations, 3u);
    EXPECT_EQ(made.bytes, (uint64_t{step} << 20) + 3 * (1 << 16));
    EXPECT_EQ(freed.frees, step);
    EXPECT_EQ(freed.async_frees, 3u);
    EXPECT_GT(made.time_ns, 0);
  }
}

TEST_F(MemoryGpuTest, FreesCarryTheBytesOfTheirAllocation) {
  const Gathered g = gather({.level = TraceLevel::Kernels}, [&](Collector&) {
    void* p = nullptr;
    CUDA_OK(cudaMalloc(&p, 12'345'678));
    CUDA_OK(cudaFree(p));
    note_memory({MemoryAction::Allocate, 0x1000, 256, kNoOp, "arena"});
  });
  int allocations = 0, frees = 0, notes = 0;
  for (const MemoryEvent& event : g.trace.memory()) {
    const std::string& source = g.trace.memory_sources[event.source];
    if (source == "cudaMalloc" && event.bytes == 12'345'678) ++allocations;
    if (source == "cudaFree" && event.bytes == 12'345'678) ++frees;
    if (source == "arena" && event.bytes == 256 && event.kind == MemoryEventKind::Allocate) ++notes;
  }
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(frees, 1);
  EXPECT_EQ(notes, 1);
}

TEST_F(MemoryGpuTest, CopiesAndMemsetsCarryBytesAndDirection) {
  float *device = nullptr, *pinned = nullptr;
  std::vector<float> pageable(1 << 20);
  CUDA_OK(cudaMalloc(reinterpret_cast<void**>(&device), 4 << 20));
  CUDA_OK(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4 << 20));
  const Gathered g = gather({.level = TraceLevel::Full}, [&](Collector&) {
    CUDA_OK(cudaMemcpyAsync(device, pinned, 4 << 20, cudaMemcpyHostToDevice, stream_));
    CUDA_OK(cudaMemcpyAsync(pageable.data(), device, 1 << 20, cudaMemcpyDeviceToHost, stream_));
    CUDA_OK(cudaMemsetAsync(device, 0, 2 << 20, stream_));
    CUDA_OK(cudaStreamSynchronize(stream_));
  });
  std::map<std::string, uint64_t> bytes;
  for (const Span& span : g.spans(TrackKind::Copies))
    bytes[g.trace.name(span.name)] += g.trace.detail(span.detail).bytes;
  EXPECT_EQ(bytes["copy pinned → device"], uint64_t{4} << 20);
  EXPECT_EQ(bytes["copy device → pageable"], uint64_t{1} << 20);
  EXPECT_EQ(bytes["memset"], uint64_t{2} << 20);
  EXPECT_EQ(g.named(TrackKind::Api, "cudaStreamSynchronize").size(), 1u);
  cudaFree(device);
  cudaFreeHost(pinned);
}

}  // namespace
}  // namespace ws::prof::testing
