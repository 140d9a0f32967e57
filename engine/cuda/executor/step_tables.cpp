#include "engine/cuda/executor/step_tables.h"

#include <algorithm>

#include "engine/cuda/runtime/check.h"
#include "profiling/annotate/annotate.h"
#include "profiling/base/clock.h"

namespace ws::cuda {
namespace {

// A copy to the host costs it about 5 µs, and nobody can see more than some hundred updates per second.
constexpr auto kDrainPause = std::chrono::milliseconds(2);

}  // namespace

// The host sees the end of a drain late, never early. So the earliest observation so far gives the offset between the
// clocks. They drift apart by a few millionths at most.
Event DrainClock::ended(Event done, double seen_s, double& ended_s) {
  constexpr double kDrift = 2e-5;
  if (!before_) {
    ended_s = seen_s;
  } else {
    float apart_ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&apart_ms, before_, done));
    ended_s = std::min(seen_s, ended_s_ + (1 + kDrift) * 1e-3 * static_cast<double>(apart_ms));
  }
  ended_s_ = ended_s;
  std::swap(before_, done);
  return done;
}

void StepTables::create(bool classes) {
  classes_ = classes;
  clock_ = DeviceBlock<StepClock>::device(1);
  lr_ = DeviceBlock<float>::device(kCapacity);
  metrics_ = DeviceBlock<float>::filled(3 * kCapacity);
  lr_host_ = PinnedBlock<float>::pinned(kCapacity);
  metrics_host_ = PinnedBlock<float>::pinned(3 * kCapacity);
  reader_ = make_stream();
  mark_ = make_event();
}

void StepTables::restart(int64_t step) {
  enqueued_ = draining_ = drained_ = step;
  known_clock_ = {-1, -1};
}

void StepTables::set_clock(Queue queue, StepClock value) {
  if (value.step == known_clock_.step && value.row == known_clock_.row) return;
  static const prof::OpTag tag = prof::register_ops(
      {{"step number", "sends the step number and its first row to the GPU", "", "input", prof::Meaning::Other}});
  const prof::OpScope scope(tag);
  cuda::set_clock(queue, clock_.data(), value);
  known_clock_ = value;
}

void StepTables::announce(cudaStream_t stream, int64_t first, std::span<const float> lrs) {
  const auto count = static_cast<int64_t>(lrs.size());
  grow(stream, first + count);
  if (!lr_filled_) {  // most runs keep one rate, so this is their only upload
    std::fill_n(lr_host_.data(), kCapacity, lrs[0]);
    upload(stream, 0, kCapacity);
    lr_filled_ = true;
  }
  int64_t changed = -1;  // slots [changed, i) differ from the device
  for (int64_t i = 0; i <= count; ++i) {
    const int64_t slot = (first + i) % kCapacity;
    const bool differs = i < count && lr_host_[static_cast<size_t>(slot)] != lrs[static_cast<size_t>(i)];
    if (changed >= 0 && (!differs || slot == 0)) {
      upload(stream, (first + changed) % kCapacity, i - changed);
      changed = -1;
    }
    if (!differs) continue;
    if (changed < 0) changed = i;
    lr_host_[static_cast<size_t>(slot)] = lrs[static_cast<size_t>(i)];
  }
}

void StepTables::upload(cudaStream_t stream, int64_t slot, int64_t count) {
  CUDA_CHECK(cudaMemcpyAsync(lr_.data() + slot, lr_host_.data() + slot, static_cast<size_t>(count) * sizeof(float),
                             cudaMemcpyHostToDevice, stream));
}

// A row of the ring may be overwritten only after its old value has arrived on the host.
void StepTables::grow(cudaStream_t stream, int64_t end) {
  while (end - drained_ > kCapacity) {
    if (drains_.empty()) start_drain(stream);
    finish_drain(true);
  }
}

Event StepTables::take_event() {
  if (spare_.empty()) return make_timed_event();
  Event event = std::move(spare_.back());
  spare_.pop_back();
  return event;
}

void StepTables::start_drain(cudaStream_t stream) {
  if (draining_ == enqueued_) return;
  CUDA_CHECK(cudaEventRecord(mark_, stream));
  CUDA_CHECK(cudaStreamWaitEvent(reader_, mark_, 0));
  const int64_t first = draining_, count = enqueued_ - draining_;
  const int64_t until_wrap = std::min(count, kCapacity - first % kCapacity);
  copy_out(first, until_wrap);
  if (count > until_wrap) copy_out(first + until_wrap, count - until_wrap);
  Drain drain{first, enqueued_, take_event()};
  CUDA_CHECK(cudaEventRecord(drain.done, reader_));
  drains_.push_back(std::move(drain));
  draining_ = enqueued_;
  last_drain_ = std::chrono::steady_clock::now();
}

void StepTables::copy_out(int64_t first, int64_t count) {
  const int64_t slot = 3 * (first % kCapacity);
  CUDA_CHECK(cudaMemcpyAsync(metrics_host_.data() + slot, metrics_.data() + slot,
                             static_cast<size_t>(3 * count) * sizeof(float), cudaMemcpyDeviceToHost, reader_));
}

bool StepTables::finish_drain(bool wait) {
  Drain& drain = drains_.front();
  if (wait) {
    CUDA_CHECK(cudaEventSynchronize(drain.done));
  } else {
    const cudaError_t state = CUDA_ATTEMPT(cudaEventQuery(drain.done));
    if (state == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(state, "cudaEventQuery");
  }
  double ended = 0;
  Event spare = times_.ended(std::move(drain.done), prof::steady_seconds(), ended);
  if (spare) spare_.push_back(std::move(spare));
  for (int64_t s = drain.first; s < drain.end; ++s) {
    const float* sums = metrics_host_.data() + 3 * (s % kCapacity);
    arrived_.push_back({s, sums[0] / sums[2], classes_ ? sums[1] / sums[2] : std::nanf(""), ended});
  }
  drained_ = drain.end;
  drains_.pop_front();
  return true;
}

void StepTables::results(cudaStream_t stream, std::vector<StepResult>& out, bool wait) {
  while (!drains_.empty() && finish_drain(wait)) {
  }
  if (wait || drain_is_due()) start_drain(stream);
  while (wait && !drains_.empty()) finish_drain(true);
  hand_over(out);
}

// Starts copies early enough that one of them ends about when the next call wants to wait. If the only running copy
// went up to the newest step, waiting for it would leave the device without work. It does not start one on each call,
// because short epochs make many calls.
void StepTables::catch_up(cudaStream_t stream, std::vector<StepResult>& out, int64_t steps) {
  const bool far = 2 * (enqueued_ - draining_) >= enqueued_ - steps;
  if (far || drain_is_due()) start_drain(stream);
  while (!drains_.empty() && finish_drain(drained_ < steps)) {
  }
  hand_over(out);
}

bool StepTables::drain_is_due() const {
  return drains_.empty() && std::chrono::steady_clock::now() - last_drain_ > kDrainPause;
}

void StepTables::hand_over(std::vector<StepResult>& out) {
  out.insert(out.end(), arrived_.begin(), arrived_.end());
  arrived_.clear();
}

}  // namespace ws::cuda
