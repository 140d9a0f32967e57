// A collector around a piece of GPU work, and what it gathered.
#pragma once
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "profiling/collectors/collector.h"
#include "profiling/cupti/gpu_source.h"
#include "tests/gpu/profiling_kernels.h"

#define CUDA_OK(call) ASSERT_EQ(call, cudaSuccess) << #call

namespace ws::prof::testing {

struct Gathered {
  Trace trace;
  std::vector<StepAllocations> allocations;
  CollectorStatus status;

  std::vector<Span> spans(TrackKind kind) const {
    std::vector<Span> found;
    for (const Track& track : trace.tracks()) {
      if (track.kind != kind) continue;
      for (const SpanBlock& block : track.blocks) found.insert(found.end(), block.spans.begin(), block.spans.end());
    }
    return found;
  }
  std::vector<Span> named(TrackKind kind, const std::string& part) const {
    std::vector<Span> found = spans(kind);
    std::erase_if(found, [&](const Span& s) { return trace.name(s.name).find(part) == std::string::npos; });
    return found;
  }
};

inline void take_all(Collector& collector, Gathered& gathered) {
  for (TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) {
    gathered.allocations.insert(gathered.allocations.end(), batch.allocations.begin(), batch.allocations.end());
    append(gathered.trace, std::move(batch));
  }
}

inline Gathered gather(CollectorOptions options, const std::function<void(Collector&)>& work) {
  options.gpu = cupti_gpu_source();
  Collector collector;
  Gathered gathered;
  collector.start(options);
  work(collector);
  collector.stop();
  gathered.status = collector.status();
  take_all(collector, gathered);
  return gathered;
}

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    CUDA_OK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_) cudaStreamDestroy(stream_);
  }
  cudaStream_t stream_ = nullptr;
};

inline OpTag ops(const std::string& prefix, int count) {
  std::vector<OpInfo> list;
  for (int i = 0; i < count; ++i)
    list.push_back({prefix + std::to_string(i), "", "fc1", "forward", Meaning::Pointwise});
  return register_ops(std::move(list));
}

}  // namespace ws::prof::testing
