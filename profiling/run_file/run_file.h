// The run file (.wsrun): one SQLite database that is written while the run goes and that opens anywhere.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/trace_batch.h"
#include "profiling/trace/trace.h"

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

inline constexpr int kRunFileVersion = 2;  // 2: losses in blocks (metric_data)

// Calls may come from several threads. A program that is killed loses what came after the last flush().
class RunFileWriter {
 public:
  RunFileWriter(const std::string& path, const RunSummary& summary);  // replaces the file
  ~RunFileWriter();                                                   // finish(), without throwing

  void set_summary(const RunSummary& summary);
  void add(const Metric& metric);
  void add(const Evaluation& evaluation);
  void add(const ChangeMark& mark);
  void add(const StepWindow& window);
  void add(TraceBatch&& batch);  // kept until the next flush, then only in the file
  void add(const Trace& trace);  // a whole trace, instead of batches
  void flush();                  // one transaction; call it once a second
  void flush_if_due();           // when the last one is a second old
  void finish();                 // folds the log into one file; nothing may be added after it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Opens in a moment whatever the size: the spans of a block are read when they are asked for. What cannot be read is
// left out and named in problems().
class RunFileReader {
 public:
  explicit RunFileReader(const std::string& path);  // throws ws::Failure when it is no run file
  ~RunFileReader();

  const RunSummary& summary() const;
  std::vector<Metric> metrics();
  std::vector<Evaluation> evaluations();
  std::vector<ChangeMark> marks();
  std::vector<StepWindow> step_windows();
  std::vector<StepAllocations> allocations();  // calls to the driver's allocator, by step and op

  Trace trace();  // names, counters, memory events and the sums of every block, but no spans yet
  // Reads the missing blocks that touch the range, the first `most_blocks` of them; returns how many were read. Works
  // on any trace that was written into this file, also a live one that has evicted blocks.
  size_t fill(Trace& trace, TimeNs begin, TimeNs end, size_t most_blocks = std::numeric_limits<size_t>::max());
  size_t fill(Trace& trace);
  Trace outline();  // as trace(), without counters and memory events
  // Those of one block of what outline() gave, which stays out of memory; throws Failure where they cannot be read.
  std::vector<Span> spans(Trace& outline, TrackId track, size_t block);
  std::vector<std::string> problems() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

RunSummary read_run_summary(const std::string& path);
// Name, tags and notes can be changed at any time, also in a file that is being written.
void rename_run(const std::string& path, const std::string& name);
void tag_run(const std::string& path, const std::vector<std::string>& tags);
void annotate_run(const std::string& path, const std::string& notes);
void keep_with_run(const std::string& path, const std::string& key, const std::string& value);  // into extra

}  // namespace ws::prof
