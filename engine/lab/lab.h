// The operator laboratory: one operation over many sizes and ways of running it, each timed, checked and explained.
#pragma once
#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workloads/lab_spec.h"

namespace ws::lab {

// Where a point stands in the run file of its sweep.
struct Recorded {
  int64_t first_step = 0, steps = 0;  // 0 steps: not recorded
  int64_t begin_ns = 0, end_ns = 0;   // trace time
};

struct LabPoint {
  Way way{};
  int64_t size = 0;
  double median_s = 0, low_s = 0, high_s = 0;  // 5th and 95th percentile of the host clock
  double device_s = 0, copy_s = 0, compute_s = 0;
  double device_low_s = 0, device_high_s = 0;  // the same percentiles of device_s; 0: not known
  int repeats = 0;
  int64_t flops = 0, bytes = 0;  // of one call; bytes that the operation must move
  double bound_s = 0;            // least time that this machine's ceilings allow; 0: not known
  double error = 0;              // largest relative to float64 on the CPU
  std::string note;              // "chunks: 8", "first call 214 ms", or why there is no number
  bool ok = true;                // no: it could not be run, or its result is wrong
  Recorded recorded;
};

// The least time that the ceilings allow for the work alone, without copies to and from the host.
struct Bound {
  double bytes_s = 0, arithmetic_s = 0;  // 0: no ceiling is known
  double seconds() const { return bytes_s > arithmetic_s ? bytes_s : arithmetic_s; }
};
Bound bound_of(const LabSpec& spec, Way way, int64_t size, const Ceilings& ceilings);

struct LabResult {
  LabSpec spec;
  std::vector<LabPoint> points;
  Ceilings ceilings;
  std::string device, cpu, message;
  std::string source;  // of an overlay: "PyTorch 2.11"; empty: this program
  bool cancelled = false;
};

struct Crossover {
  Way slower_below, faster_above;
  double size = 0, seconds = 0;  // where the curves meet, by interpolation in logarithms
};
std::vector<Crossover> crossovers(const LabResult& result);

class LabSink {
 public:
  virtual ~LabSink() = default;
  virtual void point(const LabPoint&) {}
  virtual void progress(int /*done*/, int /*of*/, const std::string& /*what*/) {}
  virtual void ceilings(const Ceilings&) {}
  // Recording: after a point is measured a few more calls are made between record(true) and record(false), so that
  // tracing costs the figures nothing.
  virtual bool records() const { return false; }
  virtual void record(bool /*on*/) {}
  virtual int64_t trace_time() const { return 0; }
  // Handed on, as kChildTrace, to the process that makes a recorded first call; empty: what it does is not traced.
  virtual std::string child_trace() const { return {}; }
};

LabResult run_lab(const LabSpec& spec, const std::atomic<bool>& cancel, LabSink& sink);

nlohmann::json to_json(const LabResult& result);
LabResult lab_result_from_json(const nlohmann::json& json);  // also what the PyTorch script writes; throws Failure
std::string to_csv(const LabResult& result);

}  // namespace ws::lab
