#include "engine/lab/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/devices/device_workloads.h"
#include "engine/devices/devices.h"
#include "profiling/base/budget.h"
#include "profiling/base/clock.h"
#include "profiling/base/statistics.h"

namespace ws::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSplits = 10;  // number of calls timed by events

// True if the half-width of the 95 % confidence interval of the mean is below 1 %.
bool steady(const std::vector<double>& seconds) {
  if (seconds.size() < 10) return false;
  double sum = 0, squares = 0;
  for (double s : seconds) sum += s, squares += s * s;
  const auto n = static_cast<double>(seconds.size());
  const double mean = sum / n, variance = std::max(0.0, squares / n - mean * mean);
  return 1.96 * std::sqrt(variance / n) < 0.01 * mean;
}

class Timing {
 public:
  Timing(const LabSpec& spec, Workload& work, const std::atomic<bool>& cancel)
      : spec_(spec), work_(work), cancel_(cancel) {}

  std::vector<double> host() {
    for (int i = 0; i < spec_.warm_up && !cancel_ && spent() < spec_.seconds_per_point; ++i) work_.call();
    std::vector<double> seconds;
    while (static_cast<int>(seconds.size()) < spec_.repeats && !cancel_) {
      if (spec_.cold_cache) work_.cool();
      const double s = work_.call();
      if (cancel_) break;  // the call may have been cut short
      seconds.push_back(s);
      if (seconds.size() >= 3 && (spent() > spec_.seconds_per_point || steady(seconds))) break;
      if (spent() > 4 * spec_.longest_call_s) break;
    }
    return seconds;
  }

  void split(LabPoint& point) {
    std::vector<double> device, copy, compute;
    while (device.size() < kSplits && !cancel_) {
      if (spec_.cold_cache) work_.cool();
      const CallSplit s = work_.split();
      if (s.device_s <= 0) return;
      device.push_back(s.device_s), copy.push_back(s.copy_s), compute.push_back(s.compute_s);
      if (device.size() >= 3 && spent() > 2 * spec_.seconds_per_point) break;
    }
    if (device.empty()) return;
    point.device_s = median(device);
    point.device_low_s = percentile(device, 0.05);
    point.device_high_s = percentile(device, 0.95);
    point.copy_s = median(copy), point.compute_s = median(compute);
  }

 private:
  double spent() const { return prof::seconds_since(begin_); }

  const LabSpec& spec_;
  Workload& work_;
  const std::atomic<bool>& cancel_;
  const Clock::time_point begin_ = Clock::now();
};

template <class Needs>
void check_memory(int64_t size, int64_t memory_left, const char* where, int64_t most, const Needs& needs) {
  if (needs(size) <= memory_left) return;
  int64_t low = 0, high = most;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (needs(middle) <= memory_left)
      low = middle;
    else
      high = middle - 1;
  }
  throw Failure("size " + std::to_string(size) + " needs " + std::to_string(needs(size) >> 20) + " MiB of " + where +
                " memory; the largest that fits is " + std::to_string(low));
}

}  // namespace

void time_point(const LabSpec& spec, Workload& work, LabPoint& point, const std::atomic<bool>& cancel) {
  Timing timing(spec, work, cancel);
  std::vector<double> host = timing.host();
  if (host.empty()) return;
  point.repeats = static_cast<int>(host.size());
  point.median_s = median(host);
  point.low_s = percentile(host, 0.05);
  point.high_s = percentile(host, 0.95);
  if (info(point.way).gpu)
    timing.split(point);
  else
    point.compute_s = point.median_s;
}

void must_fit(const LabSpec& spec, Way way, int64_t size) {
  const int64_t most = spec.operation == Operation::MatMul ? int64_t{1} << 20 : int64_t{1} << 40;
  check_memory(size, free_memory().value_or(int64_t{1} << 32) / 10 * 9, "the computer's", most,
             [&](int64_t n) { return host_memory_of(spec, way, n); });
  if (info(way).gpu && device_info().cuda)
    check_memory(size, free_device_bytes() / 20 * 19, "the GPU's", most, [&](int64_t n) { return memory_of(spec, n); });
}

}  // namespace ws::lab
