// The run file (.wsrun): one SQLite database that is written while the run goes and that opens anywhere.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/run_data.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

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
