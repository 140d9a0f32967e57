// The GPU side of a collector at level collectives: times each call of NCCL by two events on its stream, without CUPTI.
// A call costs two event records on the program's thread. The collector's thread reads the events when they are complete.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/op_join.h"
#include "profiling/recording/cuda_events.h"

namespace ws::prof {

class NcclTimer final : public GpuTracer {
 public:
  NcclTimer();
  explicit NcclTimer(const CudaEvents& cuda);  // instead of the loaded driver's
  ~NcclTimer() override;

  struct Gpu;
  // A call that has begun. Without a GPU nobody times it.
  struct Call {
    Gpu* gpu = nullptr;
    void *stream = nullptr, *begin = nullptr, *end = nullptr;
    int64_t made = 0;  // steady clock
  };
  // Both on the program's thread, right before the call and right after it. They wait for nothing.
  Call begin_call(void* stream) noexcept;
  void end_call(const Call& call, const NcclWork& work) noexcept;
  void forget_call(const Call& call) noexcept;  // it failed
  bool active() const { return active_.load(std::memory_order_acquire); }
  bool saw_captures() const { return captures_.load(std::memory_order_relaxed); }

  std::string open(bool inside_driver_start) override;
  void begin(TraceContext& context) override;
  void apply(const GpuKinds& kinds, bool may_wait) override;
  void drain(bool last) override;
  GpuTracer::Device device() const override;
  int device_number() const override;
  ClockOffset calibrate_clock() override;
  GpuCounts counts() const override { return {read_.load(std::memory_order_relaxed), 0, 0}; }
  void end() override { active_ = false; context_ = nullptr; }

 private:
  struct Timed {
    Call call;
    NcclWork work;
    OpAt at;
  };
  struct KnownStream {
    void* stream;
    Gpu* gpu;
  };
  Gpu* known_gpu(void* stream, Call& call);  // and takes its events if there are spare ones
  Gpu* gpu_of(void* stream);
  Gpu* gpu_of_context(void* context);  // with mutex_ held
  void take_spare(Gpu& gpu, Call& call);  // with mutex_ held
  void forget_stream(void* stream);
  bool take_events(Gpu& gpu, Call& call);
  void calibrate(Gpu& gpu);
  bool try_calibration(Gpu& gpu, void*& best, int64_t& middle, int64_t& width);
  void read(Gpu& gpu, bool last);
  std::optional<size_t> completed(const std::vector<const Timed*>& of_stream) const;
  int draw(Gpu& gpu, const Timed& timed);  // the driver's answer: 0, not ready, or an error of the GPU
  void stop_timing(Gpu& gpu);

  CudaEvents cuda_;
  bool found_ = false;
  TraceContext* context_ = nullptr;  // only the collector's thread uses this and the next two
  int64_t last_read_ = 0;
  double widths_ = 0;  // of the clocks where calls were placed; their mean is what is said of all calls
  std::atomic<bool> active_{false}, captures_{false}, paused_{false}, switched_{false};
  std::atomic<uint64_t> refused_{0}, read_{0};
  mutable std::mutex mutex_;  // guards the lists of GPUs and streams, and what each GPU says it guards
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<KnownStream> streams_;
};

}  // namespace ws::prof
