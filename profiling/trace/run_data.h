// A complete run in memory, read from a run file or imported from another tool's trace.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "profiling/base/statistics.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

// Time of one step: the median over the measured steps of a run, and the spread. Every view of a run shows this value.
struct StepTime {
  Interval us;                                                        // the median, with its 95 % interval
  double p5_us = std::numeric_limits<double>::quiet_NaN(), p95_us = p5_us;  // NaN: the spread is not known
  bool known() const { return us.value > 0; }
  bool has_spread() const { return p5_us == p5_us; }
};

// The values that a list of runs shows. They can be read without the trace.
struct RunSummary {
  std::string name, preset, device;
  std::string created;             // "2026-11-21T05:40:34Z"
  std::string status = "running";  // running finished stopped failed
  std::string origin = "run";      // run, or the importer's name
  std::string spec;                // JSON; not interpreted here
  std::string machine;             // JSON: device, driver, versions
  std::vector<std::string> tags;
  std::string notes;
  int64_t steps = 0;
  StepTime step_time;
  double wall_s = 0;
  double us_per_step = 0;  // the mean of the whole run
  double steps_per_epoch = 0;  // 0: not known
  double train_loss = std::numeric_limits<double>::quiet_NaN();      // from the last batch
  double test_loss = train_loss, final_accuracy = train_loss;        // from the last test
  uint64_t peak_bytes = 0;
  double allocator_calls_per_step = 0;
  Interval tracing_cost;  // share of an untraced step: 0.04 is 4 %; NaN: not measured
  std::map<std::string, std::string> extra;  // further keys; keys of newer versions are preserved

  std::string said(const std::string& key) const {  // in `extra`; empty if it is not there
    const auto at = extra.find(key);
    return at == extra.end() ? std::string() : at->second;
  }
};

inline constexpr const char* kCommandKey = "record_command";  // key of `extra`: the recorded command, a JSON list of words
inline constexpr const char* kPythonLevelKey = "record_level";  // key of `extra`: how closely a Python program was recorded

struct Metric {
  int64_t step;
  double wall_s, loss, accuracy;
};  // NaN: not measured
struct Evaluation {
  int64_t step;
  double epoch, wall_s, test_loss, test_accuracy;
};
// Files of earlier versions have it only in their evaluations. 0: not known.
double steps_per_epoch(const RunSummary& summary, const std::vector<Evaluation>& evaluations);
struct ChangeMark {
  int64_t step;
  double wall_s;
  std::string text;
};  // a setting that was changed during the run
struct StepWindow {
  int64_t first_step, steps;
  TimeNs begin, end;
  MeaningTimes times;  // sums to end - begin
  uint64_t allocations, frees;
};

struct RunData {
  RunSummary summary;  // origin says where it came from
  Trace trace;
  std::vector<Metric> metrics;
  std::vector<Evaluation> evaluations;
  std::vector<ChangeMark> marks;
  std::vector<StepWindow> step_windows;
  std::vector<StepAllocations> allocations;  // calls to the driver's allocator, by step and op
  std::vector<std::string> problems;         // sentences that say what was left out
};

}  // namespace ws::prof
