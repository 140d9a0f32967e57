// The ways to run an operation on the GPU, each timed by the host clock and by events on the stream.
#include <algorithm>
#include <array>
#include <chrono>

#include "engine/cuda/workloads/cuda_workloads.h"
#include "engine/cuda/workloads/device_operation.h"
#include "profiling/base/clock.h"

namespace ws::lab {
namespace {

using cuda::DeviceBlock;
using cuda::PinnedBlock;
using Clock = std::chrono::steady_clock;
using GpuOperation = cuda::lab::Operation;

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

// Returns one of three streams that all points share, so a recorded sweep has three lanes. The streams are never
// destroyed, because the driver may be unloaded at exit.
cudaStream_t lab_stream(size_t which) {
  static const auto* streams = new std::array<cuda::Stream, 3>{cuda::make_stream(), cuda::make_stream(),
                                                               cuda::make_stream()};
  return (*streams)[which];
}

// The host clock and events never time the same call, because recording an event takes about as long as a launch.
class GpuWorkload : public Workload {
 public:
  GpuWorkload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs)
      : inputs_(inputs), operation_(spec, way, size, inputs), stream_(lab_stream(0)) {
    for (auto& event : marks_) event = timing_event();
  }

  double call() override {
    const auto begin = Clock::now();
    launch();
    settle();
    return prof::seconds_since(begin);
  }

  CallSplit split() override {
    mark(0);
    launch();
    mark(1);
    settle();
    const double seconds = between(marks_[0], marks_[1]);
    return {seconds, 0, seconds};
  }

  void settle() override { CUDA_CHECK(cudaStreamSynchronize(stream_)); }

  void cool() override {
    if (!cooling_) cooling_ = DeviceBlock<char>::device(kCoolBytes);
    CUDA_CHECK(cudaMemsetAsync(cooling_.data(), 0, cooling_.bytes(), stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
  }

  double output_at(int64_t index) override {
    settle();
    return operation_.output_at(index);
  }
  std::string note() const override { return operation_.note(); }

 protected:
  virtual void launch() { operation_.launch(stream_); }
  void mark(int i) { CUDA_CHECK(cudaEventRecord(marks_[i], stream_)); }

  const Inputs& inputs_;
  GpuOperation operation_;
  cudaStream_t stream_;
  cuda::Event marks_[4];
  DeviceBlock<char> cooling_;
};

// The pitfall: the call returns when the work is queued, so a clock without synchronisation measures only the launch.
class Unsynchronised final : public GpuWorkload {
 public:
  using GpuWorkload::GpuWorkload;
  double call() override {
    const auto begin = Clock::now();
    launch();
    const double seconds = prof::seconds_since(begin);
    if (++queued_ % 512 == 0) settle();  // outside the measured time: limits the queued work
    return seconds;
  }

 private:
  int queued_ = 0;
};

// Copies in, computes, copies out, one after another. Page-locked inputs lie in one block and need one copy.
class WithCopies final : public GpuWorkload {
 public:
  WithCopies(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs) : GpuWorkload(spec, way, size, inputs) {
    const auto outputs = static_cast<size_t>(operation_.output_elements());
    if (way != Way::GpuPinned) {
      result_.resize(outputs);
      out_ = result_.data();
      return;
    }
    pinned_ = PinnedBlock<float>::pinned(static_cast<size_t>(operation_.input_elements()));
    pinned_out_ = PinnedBlock<float>::pinned(outputs);
    std::copy(inputs.a.begin(), inputs.a.end(), pinned_.data());
    std::copy(inputs.b.begin(), inputs.b.end(), pinned_.data() + operation_.second_begin());
    out_ = pinned_out_.data();
  }

  CallSplit split() override {
    mark(0);
    copy_in();
    mark(1);
    operation_.launch(stream_);
    mark(2);
    copy_out();
    mark(3);
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    const double all = between(marks_[0], marks_[3]), compute = between(marks_[1], marks_[2]);
    return {all, all - compute, compute};
  }
  // Reads the value that was copied back, not the value on the GPU.
  double output_at(int64_t index) override {
    settle();
    return static_cast<double>(out_[index]);
  }

 private:
  void launch() override {
    copy_in();
    operation_.launch(stream_);
    copy_out();
  }
  void copy_in() {
    if (pinned_) return copy_to(operation_.first(), pinned_.data(), pinned_.size());
    copy_to(operation_.first(), inputs_.a.data(), inputs_.a.size());
    if (operation_.has_second()) copy_to(operation_.second(), inputs_.b.data(), inputs_.b.size());
  }
  void copy_to(float* device, const float* host, size_t count) {
    CUDA_CHECK(cudaMemcpyAsync(device, host, count * sizeof(float), cudaMemcpyHostToDevice, stream_));
  }
  void copy_out() {
    CUDA_CHECK(cudaMemcpyAsync(out_, operation_.output(),
                               static_cast<size_t>(operation_.output_elements()) * sizeof(float),
                               cudaMemcpyDeviceToHost, stream_));
  }

  float* out_ = nullptr;
  std::vector<float> result_;
  PinnedBlock<float> pinned_, pinned_out_;
};

// Runs chunks on three streams: while one chunk computes, the next is copied in and the previous is copied out.
class Overlapped final : public GpuWorkload {
 public:
  Overlapped(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs)
      : GpuWorkload(spec, way, size, inputs), size_(size) {
    a_ = PinnedBlock<float>::pinned(inputs.a.size());
    b_ = PinnedBlock<float>::pinned(inputs.b.size());
    out_ = PinnedBlock<float>::pinned(static_cast<size_t>(size));
    std::copy(inputs.a.begin(), inputs.a.end(), a_.data());
    std::copy(inputs.b.begin(), inputs.b.end(), b_.data());
    for (size_t i = 0; i < 3; ++i) streams_[i] = lab_stream(i);
    for (auto& event : joined_) event = cuda::make_event();
    choose_chunks();
  }

  // Measures from the common start of the three streams to the end of the last. Copy time is the part that compute,
  // timed alone, does not hide.
  CallSplit split() override {
    mark(0);
    for (cudaStream_t side : {streams_[1], streams_[2]}) CUDA_CHECK(cudaStreamWaitEvent(side, marks_[0], 0));
    launch();
    for (size_t i = 1; i < 3; ++i) {
      CUDA_CHECK(cudaEventRecord(joined_[i - 1], streams_[i]));
      CUDA_CHECK(cudaStreamWaitEvent(stream_, joined_[i - 1], 0));
    }
    mark(1);
    settle();
    mark(2);
    operation_.launch(stream_);
    mark(3);
    settle();
    const double all = between(marks_[0], marks_[1]), compute = std::min(all, between(marks_[2], marks_[3]));
    return {all, all - compute, compute};
  }
  double output_at(int64_t index) override {
    settle();
    return static_cast<double>(out_.data()[index]);
  }
  void settle() override {
    for (cudaStream_t stream : streams_) CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  std::string note() const override { return "chunks: " + std::to_string(chunks_); }

 private:
  void launch() override {
    for (int64_t c = 0; c < chunks_; ++c) run_chunk(streams_[c % 3], c);
  }

  void run_chunk(cudaStream_t stream, int64_t c) {
    const int64_t step = (size_ / chunks_ + 3) / 4 * 4;  // chunks begin at 16-byte boundaries
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
      const double seconds = std::min(call(), call());
      if (seconds < best) best = seconds, winner = tried;
    }
    chunks_ = winner;
  }

  int64_t size_, chunks_ = 1;
  PinnedBlock<float> a_, b_, out_;
  cudaStream_t streams_[3] = {};  // streams_[0] is stream_
  cuda::Event joined_[2];
};

class Captured final : public GpuWorkload {
 public:
  Captured(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs) : GpuWorkload(spec, way, size, inputs) {
    operation_.launch(stream_);  // first-use initialisation must not happen during the capture
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    const cuda::Stream own = cuda::make_stream();  // a failed capture must not invalidate the shared stream
    cuda::Graph graph;
    CUDA_CHECK(cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal));
    operation_.launch(own);
    CUDA_CHECK(cudaStreamEndCapture(own, graph.out()));
    CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes_));
    CUDA_CHECK(cudaGraphInstantiate(graph_.out(), graph, 0));
  }
  // Reports the number of kernels if one launch runs several.
  std::string note() const override {
    return nodes_ > 1 ? std::to_string(nodes_) + " kernels in one launch" : GpuWorkload::note();
  }

 private:
  void launch() override { CUDA_CHECK(cudaGraphLaunch(graph_, stream_)); }
  cuda::GraphExec graph_;
  size_t nodes_ = 0;
};

}  // namespace

int64_t free_cuda_bytes() {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

void release_cuda_memory() { cuda::lab::FastestProduct::release_shared(); }

std::unique_ptr<Workload> make_first_call(const LabSpec& spec, int64_t size, const Inputs& inputs) {
  return std::make_unique<GpuWorkload>(spec, Way::GpuCold, size, inputs);
}

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
    case Way::GpuGraphOps:
      return std::make_unique<Captured>(spec, way, size, inputs);
    case Way::GpuCold:
      return make_cold_workload(spec, size);
    default:
      return std::make_unique<GpuWorkload>(spec, way, size, inputs);
  }
}

}  // namespace ws::lab
