// A run in memory, wherever it came from: a run file, or another tool's trace.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "profiling/trace/meaning_times.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

// What a list of runs shows; read without touching the trace.
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
  double wall_s = 0, us_per_step = 0;
  double final_loss = std::numeric_limits<double>::quiet_NaN();
  double final_accuracy = std::numeric_limits<double>::quiet_NaN();
  uint64_t peak_bytes = 0;
  double allocator_calls_per_step = 0;
  double overhead_share = 0;  // what tracing cost: 0.04 is 4 %
  double overhead_spread = 0;
  std::map<std::string, std::string> extra;  // further keys; those of newer versions come back untouched
};

struct Metric {
  int64_t step;
  double wall_s, loss, accuracy;
};  // NaN: not measured
struct Evaluation {
  int64_t step;
  double epoch, wall_s, test_loss, test_accuracy;
};
double steps_per_epoch(const std::vector<Evaluation>& evaluations);  // 0: not known
struct ChangeMark {
  int64_t step;
  double wall_s;
  std::string text;
};  // what was changed in mid-run
struct StepWindow {
  int64_t first_step, steps;
  TimeNs begin, end;
  MeaningTimes times;  // parts that sum to end - begin
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
  std::vector<std::string> problems;         // what was left out, in sentences
};

}  // namespace ws::prof
