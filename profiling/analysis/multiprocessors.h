// Compares the multiprocessors that work inside the same kernel: how long each part takes on them, which one ends a
// part later than the rest, and what each did at what time of a step.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiling/analysis/collectives.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/base/table.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// A part of a kernel: an op of the plan, a wait, or a range that a program named. Times are per step, in µs.
struct InnerPhase {
  std::string name;
  Meaning meaning = Meaning::Other;
  size_t multiprocessors = 0;              // that have this part
  double least = 0, median = 0, most = 0;  // over the multiprocessors, each with its mean
  std::string slowest;                     // "multiprocessor 17"
};

struct LateMultiprocessor {
  std::string name;  // "multiprocessor 17"
  std::string phase;
  double late_us = 0;  // median over the steps in which it is late: it ends so much after the median
  double share = 0;    // of the steps in which it is late
  double cost_us = 0;  // mean of a step: it ends so much after the last of the other rows
  size_t step = 0;     // index into the steps: the step in which it is as late as usual
  size_t row = 0, part = 0;
};

struct InnerRow {
  std::string gpu, name;           // "GPU 0", "multiprocessor 17"
  std::vector<std::string> lanes;  // names of its rows in the trace: several if its warps have their own
};

// One part of one lane in one step.
struct InnerBar {
  uint32_t step = 0, row = 0, part = 0;
  uint32_t lane = 0;  // of the row
  TimeNs begin = 0, end = 0;
};

// The last multiprocessor that ends a part, if it ends it late.
struct LateEnd {
  size_t row = 0, part = 0;
  TimeNs usual = 0, end = 0;  // usual: the median end of this part in this step
};

struct InnerStep {
  int64_t number = -1;  // -1: the kernel has no steps inside, so this is one launch
  std::string kernel;   // empty: not recorded
  TimeNs begin = 0, end = 0;
  std::vector<LateEnd> late;  // in the order of the parts
  double us() const { return static_cast<double>(end - begin) * 1e-3; }
};

struct MultiprocessorReport {
  std::vector<InnerRow> rows;            // the multiprocessors
  std::vector<InnerStep> steps;          // compared: the newest ones, by begin
  double step_us = 0;                    // median, from the first begin to the last end
  std::vector<InnerPhase> phases;        // in the order of their begin
  std::vector<LateMultiprocessor> late;  // the most expensive first
  std::vector<InnerBar> bars;            // by step, row, lane and begin
  size_t typical = 0;                    // index of a step that shows the most expensive late one, or a median step
  bool any() const { return !steps.empty(); }
  std::span<const InnerBar> bars_of(size_t step) const;
};

bool shows_inside(const Trace& trace);  // True if a kernel of the trace has lanes inside
// Empty if no kernel of the trace has lanes inside.
MultiprocessorReport multiprocessor_report(const Trace& trace);
// The same for a trace whose spans are read block by block. For a run file, see StoredSpans::multiprocessors().
// `part`: the trace is the newest part of a longer one, so the oldest step may lack its begin.
MultiprocessorReport multiprocessor_report(const Trace& trace, const ReadBlock& read, bool part = false);

// The span of a bar in the same run, if it is in memory.
std::optional<FoundSpan> span_of(const Trace& trace, const MultiprocessorReport& report, const InnerBar& bar);

// The bar that a late one ends, in its step.
InnerBar bar_of(const MultiprocessorReport& report, const LateMultiprocessor& late);

std::string row_name(const MultiprocessorReport& report, size_t row);  // with its GPU if there are several
// "multiprocessor 17 ends forward 0.40 µs later than the median in 90 % of the steps: costs 0.31 µs per step"
std::string late_text(const LateMultiprocessor& late);
std::string late_text(const MultiprocessorReport& report, const LateEnd& late);  // the same about one step
double waits_us(const MultiprocessorReport& report);  // of a step: the sum of the median waits
std::string late_headline(const MultiprocessorReport& report);                   // also if none is late
// "132 multiprocessors · 60 steps · 3.46 µs per step inside the kernel, without launches"
std::string caption(const MultiprocessorReport& report);
// "step 4 321 of persistent_cluster · 3.46 µs"
std::string step_caption(const MultiprocessorReport& report, size_t step);
// "multiprocessor 17: forward takes 2.40 µs, from 0.01 to 2.41 µs of the step"
std::string bar_text(const MultiprocessorReport& report, const InnerBar& bar);
Table part_table(const MultiprocessorReport& report);
std::string to_text(const MultiprocessorReport& report);  // for `stats --by multiprocessor`
std::string to_json(const MultiprocessorReport& report);

}  // namespace ws::prof
