// Allocator calls, copies and memsets: counts, bytes and the step they belong to, exactly.
#include <array>
#include <chrono>
#include <map>
#include <thread>

#include "profiling/base/clock.h"
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
    if (source == "arena" && event.bytes == 256 && event.kind == MemoryAction::Allocate) ++notes;
  }
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(frees, 1);
  EXPECT_EQ(notes, 1);
}

// Blocks of two pools, the program's own and the device's, are held while others come and go.
TEST_F(MemoryGpuTest, PoolsHoldWhatIsHeldOfThem) {
  constexpr size_t kBlock = 4 << 20, kShared = 2 << 20, kSmall = 1 << 16;
  constexpr double kHeld = 8 * kBlock + kShared;
  for (const TraceLevel level : {TraceLevel::Steps, TraceLevel::Kernels, TraceLevel::Full}) {
    SCOPED_TRACE(to_string(level));
    cudaMemPool_t pool = nullptr;
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned, props.location.type = cudaMemLocationTypeDevice;
    CUDA_OK(cudaMemPoolCreate(&pool, &props));
    std::array<void*, 8> blocks{};
    void* shared = nullptr;
    TimeNs held_from = 0, held_until = 0;
    const auto pause = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
    const Gathered g = gather({.level = level}, [&](Collector& collector) {
      const auto now = [&] { return steady_ns() - collector.status().origin_ns; };
      for (void*& block : blocks) CUDA_OK(cudaMallocFromPoolAsync(&block, kBlock, pool, stream_));
      CUDA_OK(cudaMallocAsync(&shared, kShared, stream_));
      CUDA_OK(cudaStreamSynchronize(stream_));
      pause(2);
      held_from = now();
      for (const auto begin = steady_ns(); steady_ns() - begin < 1'300'000'000;) {
        void* small = nullptr;
        CUDA_OK(cudaMallocFromPoolAsync(&small, kSmall, pool, stream_));
        launch_empty(stream_);
        CUDA_OK(cudaFreeAsync(small, stream_));
        CUDA_OK(cudaStreamSynchronize(stream_));
      }
      pause(900);
      held_until = now();
      for (size_t i = 0; i < 4; ++i) CUDA_OK(cudaFreeAsync(blocks[i], stream_));
      CUDA_OK(cudaStreamSynchronize(stream_));
      pause(900);  // records end, and the driver is asked twice
    });
    std::map<std::string, double> last;
    size_t points = 0;
    for (const CounterTrack& counter : g.trace.counters()) {
      if (!counter.name.starts_with("pool ")) continue;
      last[counter.name] = counter.points.back().value;
      for (const CounterPoint& point : counter.points) {
        if (point.time < held_from || point.time > held_until) continue;
        ++points;
        ASSERT_GE(point.value, kHeld) << counter.name << " at " << point.time;
        ASSERT_LE(point.value, counter.name == "pool used" ? kHeld + kSmall : 8 * kHeld) << counter.name;
      }
    }
    EXPECT_GE(points, level == TraceLevel::Full ? 200u : 8u);
    EXPECT_EQ(last["pool used"], 4.0 * kBlock + kShared);
    EXPECT_GE(last["pool reserved"], last["pool used"]);
    std::printf("%s: %zu points, ends with %.1f of %.1f MiB\n", to_string(level), points, last["pool used"] / (1 << 20),
                last["pool reserved"] / (1 << 20));
    for (size_t i = 4; i < 8; ++i) CUDA_OK(cudaFreeAsync(blocks[i], stream_));
    CUDA_OK(cudaFreeAsync(shared, stream_));
    CUDA_OK(cudaStreamSynchronize(stream_));
    CUDA_OK(cudaMemPoolDestroy(pool));
  }
}

// A pool that is gone holds nothing any more, and the driver is not asked about it.
TEST_F(MemoryGpuTest, PoolsComeAndGo) {
  for (const TraceLevel level : {TraceLevel::Kernels, TraceLevel::Full}) {
    SCOPED_TRACE(to_string(level));
    const Gathered g = gather({.level = level}, [&](Collector&) {
      for (const auto begin = steady_ns(); steady_ns() - begin < 1'500'000'000;) {
        cudaMemPool_t pool = nullptr;
        cudaMemPoolProps props{};
        props.allocType = cudaMemAllocationTypePinned, props.location.type = cudaMemLocationTypeDevice;
        CUDA_OK(cudaMemPoolCreate(&pool, &props));
        void* block = nullptr;
        CUDA_OK(cudaMallocFromPoolAsync(&block, 1 << 20, pool, stream_));
        CUDA_OK(cudaFreeAsync(block, stream_));
        CUDA_OK(cudaStreamSynchronize(stream_));
        CUDA_OK(cudaMemPoolDestroy(pool));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
    });
    for (const CounterTrack& counter : g.trace.counters()) {
      if (counter.name != "pool used") continue;
      EXPECT_EQ(counter.points.back().value, 0);
      for (const CounterPoint& point : counter.points) ASSERT_LE(point.value, 1 << 20);
    }
  }
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
