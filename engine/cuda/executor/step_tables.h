// Tables between the host and the running steps: learning rates to the device, losses back, without waiting.
//
// Both are rings over the step number in device memory. A second stream copies the losses out, so a training step never
// waits for a reader. The host waits only if it is a whole ring ahead of the device.
#pragma once
#include <chrono>
#include <deque>
#include <span>
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/executor/executor.h"

namespace ws::cuda {

// Finds when drains ended, by the GPU's clock. The host may check much later, and check several drains at once.
class DrainClock {
 public:
  // Takes the event of the next drain, which has ended, and returns the previous event. `seen_s` is the host's time
  // now. Writes the host time at which the drain ended.
  Event ended(Event done, double seen_s, double& ended_s);

 private:
  Event before_;
  double ended_s_ = 0;
};

class StepTables {
 public:
  static constexpr int64_t kCapacity = 16384;  // steps

  void create(bool classes);
  StepAt at(int64_t offset) const { return {clock_.data(), offset, lr_.data(), metrics_.data(), kCapacity}; }

  // Call before steps [first, first + lrs.size()) are enqueued on the stream.
  void announce(cudaStream_t stream, int64_t first, std::span<const float> lrs);
  // Writes the device clock if it differs from what the next launch needs. known_clock_ is the host's copy of it.
  void set_clock(Queue queue, StepClock value);
  void clock_moved(int64_t steps, int64_t rows) { known_clock_.step += steps; known_clock_.row += rows; }
  StepClock known_clock() const { return known_clock_; }
  StepClock* clock() const { return clock_.data(); }

  void steps_enqueued(int64_t end) { enqueued_ = end; }
  void results(cudaStream_t stream, std::vector<StepResult>& out, bool wait);
  // Waits only for results of steps below `steps`. Copies of later results start meanwhile.
  void catch_up(cudaStream_t stream, std::vector<StepResult>& out, int64_t steps);
  void restart(int64_t step);  // sets the number of the next step; all results must be read
  int64_t bytes() const { return static_cast<int64_t>(metrics_.bytes() + lr_.bytes()); }

 private:
  struct Drain {
    int64_t first, end;
    Event done;
  };
  void upload(cudaStream_t stream, int64_t slot, int64_t count);
  void grow(cudaStream_t stream, int64_t end);
  void start_drain(cudaStream_t stream);
  void copy_out(int64_t first, int64_t count);
  bool finish_drain(bool wait);  // the oldest drain; returns false if it is not done
  bool drain_is_due() const;
  void hand_over(std::vector<StepResult>& out);
  Event take_event();

  DeviceBlock<StepClock> clock_;
  DeviceBlock<float> lr_, metrics_;
  PinnedBlock<float> lr_host_, metrics_host_;
  bool lr_filled_ = false;
  StepClock known_clock_{-1, -1};
  Stream reader_;
  Event mark_;
  std::deque<Drain> drains_;
  std::vector<Event> spare_;
  int64_t enqueued_ = 0, draining_ = 0, drained_ = 0;  // steps: launched, being copied, arrived
  std::vector<StepResult> arrived_;
  bool classes_ = true;
  std::chrono::steady_clock::time_point last_drain_{};
  DrainClock times_;
};

}  // namespace ws::cuda
