// The ways of running an operation on the GPU, each timed by the host's clock and by events on the stream.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/cuda/lab/cold_call.h"
#include "engine/cuda/lab/operation.h"

namespace ws::lab {
namespace {

using cuda::DeviceBlock;
using cuda::PinnedBlock;
using Clock = std::chrono::steady_clock;
using GpuOperation = cuda::lab::Operation;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

cuda::Event timing_event() {
  cuda::Event event;
  CUDA_CHECK(cudaEventCreate(event.out()));
  return event;
}

double between(const cuda::Event& a, const cuda::Event& b) {
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, a, b));
  return static_cast<double>(ms) * 1e-3;
}

class GpuWorkload : public Workload {
 public:
  GpuWorkload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs)
      : inputs_(inputs), operation_(spec, way, size, inputs), stream_(cuda::make_stream()) {
    for (auto& event : marks_) event = timing_event();
  }

  CallTime call() override {
    const auto begin = Clock::now();
    CUDA_CHECK(cudaEventRecord(marks_[0], stream_));
    operation_.launch(stream_);
    CUDA_CHECK(cudaEventRecord(marks_[1], stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    CallTime time;
    time.host_s = seconds_since(begin);
    time.device_s = time.compute_s = between(marks_[0], marks_[1]);
    return time;
  }

  void cool() override {
    if (!cooling_) cooling_ = DeviceBlock<char>::device(kCoolBytes);
    CUDA_CHECK(cudaMemsetAsync(cooling_.data(), 0, cooling_.bytes(), stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
  }

  std::vector<float> output() override {
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    std::vector<float> out(static_cast<size_t>(operation_.output_elements()));
    CUDA_CHECK(cudaMemcpy(out.data(), operation_.output(), out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return out;
  }
  std::string note() const override { return operation_.note(); }

 protected:
  const Inputs& inputs_;
  GpuOperation operation_;
  cuda::Stream stream_;
  cuda::Event marks_[4];
  DeviceBlock<char> cooling_;
};

// The pitfall: the call returns when the work is queued, and that is what a careless clock reads.
class Unsynchronised final : public GpuWorkload {
 public:
  using GpuWorkload::GpuWorkload;
  CallTime call() override {
    const auto begin = Clock::now();
    operation_.launch(stream_);
    CallTime time;
    time.host_s = seconds_since(begin);
    if (++queued_ % 512 == 0) CUDA_CHECK(cudaStreamSynchronize(stream_));  // outside the clock: bounds what is queued
    return time;
  }

 private:
  int queued_ = 0;
};

// Copies in, compute, copies out, one after another.
class WithCopies final : public GpuWorkload {
 public:
  WithCopies(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs) : GpuWorkload(spec, way, size, inputs) {
    result_.resize(static_cast<size_t>(operation_.output_elements()));
    if (way != Way::GpuPinned) return;
    pinned_a_ = PinnedBlock<float>::pinned(inputs.a.size());
    pinned_b_ = PinnedBlock<float>::pinned(inputs.b.size());
    pinned_out_ = PinnedBlock<float>::pinned(result_.size());
    std::copy(inputs.a.begin(), inputs.a.end(), pinned_a_.data());
    std::copy(inputs.b.begin(), inputs.b.end(), pinned_b_.data());
  }

  CallTime call() override {
    const float* a = pinned_a_ ? pinned_a_.data() : inputs_.a.data();
    const float* b = pinned_a_ ? pinned_b_.data() : inputs_.b.data();
    float* out = pinned_a_ ? pinned_out_.data() : result_.data();
    const auto begin = Clock::now();
    CUDA_CHECK(cudaEventRecord(marks_[0], stream_));
    CUDA_CHECK(
        cudaMemcpyAsync(operation_.first(), a, inputs_.a.size() * sizeof(float), cudaMemcpyHostToDevice, stream_));
    if (operation_.has_second())
      CUDA_CHECK(
          cudaMemcpyAsync(operation_.second(), b, inputs_.b.size() * sizeof(float), cudaMemcpyHostToDevice, stream_));
    CUDA_CHECK(cudaEventRecord(marks_[1], stream_));
    operation_.launch(stream_);
    CUDA_CHECK(cudaEventRecord(marks_[2], stream_));
    CUDA_CHECK(
        cudaMemcpyAsync(out, operation_.output(), result_.size() * sizeof(float), cudaMemcpyDeviceToHost, stream_));
    CUDA_CHECK(cudaEventRecord(marks_[3], stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    CallTime time;
    time.host_s = seconds_since(begin);
    time.device_s = between(marks_[0], marks_[3]);
    time.compute_s = between(marks_[1], marks_[2]);
    time.copy_s = time.device_s - time.compute_s;
    return time;
  }

 private:
  std::vector<float> result_;
  PinnedBlock<float> pinned_a_, pinned_b_, pinned_out_;
};

// Chunks on three streams: while one computes, the next comes in and the last goes out.
class Overlapped final : public GpuWorkload {
 public:
  Overlapped(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs)
      : GpuWorkload(spec, way, size, inputs), size_(size) {
    a_ = PinnedBlock<float>::pinned(inputs.a.size());
    b_ = PinnedBlock<float>::pinned(inputs.b.size());
    out_ = PinnedBlock<float>::pinned(static_cast<size_t>(size));
    std::copy(inputs.a.begin(), inputs.a.end(), a_.data());
    std::copy(inputs.b.begin(), inputs.b.end(), b_.data());
    for (auto& stream : streams_) stream = cuda::make_stream();
    choose_chunks();
  }

  CallTime call() override {
    const auto begin = Clock::now();
    for (int64_t c = 0; c < chunks_; ++c) run_chunk(streams_[c % 3], c);
    for (const auto& stream : streams_) CUDA_CHECK(cudaStreamSynchronize(stream));
    CallTime time;
    time.host_s = time.device_s = seconds_since(begin);
    return time;
  }
  std::string note() const override { return "chunks: " + std::to_string(chunks_); }

 private:
  void run_chunk(cudaStream_t stream, int64_t c) {
    const int64_t step = (size_ / chunks_ + 3) / 4 * 4;  // chunks begin on 16 bytes
    const int64_t first = std::min(c * step, size_),
                  count = c + 1 == chunks_ ? size_ - first : std::min(step, size_ - first);
    if (count <= 0) return;
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    CUDA_CHECK(cudaMemcpyAsync(operation_.first() + first, a_.data() + first, bytes, cudaMemcpyHostToDevice, stream));
    if (operation_.has_second())
      CUDA_CHECK(
          cudaMemcpyAsync(operation_.second() + first, b_.data() + first, bytes, cudaMemcpyHostToDevice, stream));
    operation_.launch_chunk(stream, first, count);
    CUDA_CHECK(
        cudaMemcpyAsync(out_.data() + first, operation_.output() + first, bytes, cudaMemcpyDeviceToHost, stream));
  }

  void choose_chunks() {
    double best = 1e30;
    int64_t winner = 1;
    for (int64_t tried : {1, 2, 4, 8, 16, 32, 64}) {
      if (tried * 1024 > size_ && tried > 1) break;
      chunks_ = tried;
      call();
      const double seconds = std::min(call().host_s, call().host_s);
      if (seconds < best) best = seconds, winner = tried;
    }
    chunks_ = winner;
  }

  int64_t size_, chunks_ = 1;
  PinnedBlock<float> a_, b_, out_;
  cuda::Stream streams_[3];
};

class Captured final : public GpuWorkload {
 public:
  Captured(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs) : GpuWorkload(spec, way, size, inputs) {
    operation_.launch(stream_);  // what is made on first use must not be made during capture
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    cuda::Graph graph;
    CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    operation_.launch(stream_);
    CUDA_CHECK(cudaStreamEndCapture(stream_, graph.out()));
    CUDA_CHECK(cudaGraphInstantiate(graph_.out(), graph, 0));
  }

  CallTime call() override {
    const auto begin = Clock::now();
    CUDA_CHECK(cudaEventRecord(marks_[0], stream_));
    CUDA_CHECK(cudaGraphLaunch(graph_, stream_));
    CUDA_CHECK(cudaEventRecord(marks_[1], stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    CallTime time;
    time.host_s = seconds_since(begin);
    time.device_s = time.compute_s = between(marks_[0], marks_[1]);
    return time;
  }

 private:
  cuda::GraphExec graph_;
};

}  // namespace

std::unique_ptr<Workload> make_cuda_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs) {
  switch (way) {
    case Way::GpuPageable:
    case Way::GpuPinned:
      return std::make_unique<WithCopies>(spec, way, size, inputs);
    case Way::GpuUnsynced:
      return std::make_unique<Unsynchronised>(spec, way, size, inputs);
    case Way::GpuOverlap:
      return std::make_unique<Overlapped>(spec, way, size, inputs);
    case Way::GpuGraph:
      return std::make_unique<Captured>(spec, way, size, inputs);
    case Way::GpuCold:
      return make_cold_workload(spec, size);
    default:
      return std::make_unique<GpuWorkload>(spec, way, size, inputs);
  }
}

}  // namespace ws::lab
