// The operator laboratory: times, checks and explains one operation over many sizes and ways of running it.
#pragma once
#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workloads/lab_kernels.h"

namespace ws::lab {

// The steps and the time range of a point in the run file of its sweep.
struct Recorded {
  int64_t first_step = 0, steps = 0;  // 0 steps: not recorded
  int64_t begin_ns = 0, end_ns = 0;   // trace time
};

struct LabPoint {
  Way way{};
  int64_t size = 0;
  double median_s = 0, low_s = 0, high_s = 0;  // 5th and 95th percentile of the host clock
  double device_s = 0, copy_s = 0, compute_s = 0;
  double device_low_s = 0, device_high_s = 0;  // the same percentiles of device_s; 0: unknown
  int repeats = 0;
  int64_t flops = 0, bytes = 0;  // for one call; `bytes` is what the operation must move
  double bound_s = 0;            // lower bound of the time by this machine's ceilings; 0: unknown
  double error = 0;              // largest error relative to float64 on the CPU
  std::string note;              // "chunks: 8", "first call 214 ms", or why there is no number
  bool ok = true;                // false if the point could not run or its result is wrong
  Recorded recorded;
};

// Lower bound of the time by the ceilings, for the work alone: copies to and from the host do not count.
struct Bound {
  double bytes_s = 0, arithmetic_s = 0;  // 0: no ceiling known
  double seconds() const { return bytes_s > arithmetic_s ? bytes_s : arithmetic_s; }
};
Bound bound_of(const LabSpec& spec, Way way, int64_t size, const Ceilings& ceilings);

struct LabResult {
  LabSpec spec;
  std::vector<LabPoint> points;
  Ceilings ceilings;
  std::string device, cpu, message;
  std::string unsaved;  // why its run file is incomplete
  std::string source;  // origin of an overlay: "PyTorch 2.11"; empty: this program
  bool cancelled = false;
};

struct Crossover {
  Way slower_below, faster_above;
  double size = 0, seconds = 0;  // intersection of the curves, interpolated in logarithms
};
std::vector<Crossover> crossovers(const LabResult& result);

class LabSink {
 public:
  virtual ~LabSink() = default;
  virtual void point(const LabPoint&) {}
  virtual void progress(int /*done*/, int /*of*/, const std::string& /*what*/) {}
  virtual void ceilings(const Ceilings&) {}
  // For recording: after a point is measured, a few more calls run between record(true) and record(false). So tracing
  // does not change the measured times.
  virtual bool records() const { return false; }
  virtual void record(bool /*on*/) {}
  virtual int64_t trace_time() const { return 0; }
  // Passed as kChildTrace to the process that makes a recorded first call. Empty: that process is not traced.
  virtual std::string child_trace() const { return {}; }
};

// `left`: points of an earlier sweep that are not measured again. A person's kernel is measured only at sizes that `checks` has.
LabResult run_lab(const LabSpec& spec, const std::atomic<bool>& cancel, LabSink& sink, std::vector<LabPoint> left = {}, KernelChecks checks = {});

nlohmann::json to_json(const LabResult& result);
// Also reads what the PyTorch script writes; throws Failure.
LabResult lab_result_from_json(const nlohmann::json& json);
std::string to_csv(const LabResult& result);

}  // namespace ws::lab
