// The run file (.wsrun): one SQLite database that stores a whole run. It is written during the run and can be opened on
// any machine.
#pragma once
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiling/base/failure.h"
#include "profiling/base/file_identity.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

inline constexpr int kRunFileVersion = 6;  // 2: losses in blocks (metric_data); 3: stacks of ops apart; 4: and of samples; 5: kinds of rows and counters; 6: reductions

// The file that a writer made has another name now, or none: the name may belong to another file.
class RunFileMoved : public Failure {
 public:
  using Failure::Failure;
};

// Calls may come from several threads. If the program is killed, only the data since the last flush() is lost.
class RunFileWriter {
 public:
  // Replaces the file; with `found`, only the one that check_run_file() found. `owner`: the process that others read in messages,
  // see Ownership; empty: this one.
  RunFileWriter(const std::string& path, const RunSummary& summary, const std::string& owner = "", const std::optional<FoundFile>& found = {});
  ~RunFileWriter();  // calls finish(), does not throw

  void set_summary(const RunSummary& summary);
  void add(const Metric& metric);
  void add(const Evaluation& evaluation);
  void add(const ChangeMark& mark);
  void add(const StepWindow& window);
  void add(TraceBatch&& batch);  // kept in memory until the next flush
  void add(const Trace& trace);  // a whole trace, instead of batches
  void flush();                  // writes one transaction; call it once a second
  void flush_if_due();           // flushes if the last flush is old enough
  void finish();                 // moves the log into the file; nothing may be added after it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Opens in a moment, whatever the size: the spans of a block are read on demand. Parts that cannot be read are left out
// and named in problems().
class RunFileReader {
 public:
  explicit RunFileReader(const std::string& path);  // throws Failure if it is not a run file
  ~RunFileReader();

  const RunSummary& summary() const;
  std::vector<Metric> metrics();
  std::vector<Evaluation> evaluations();
  std::vector<ChangeMark> marks();
  std::vector<StepWindow> step_windows();
  std::vector<StepAllocations> allocations();  // calls to the driver's allocator, by step and op

  Trace trace();  // names, counters, memory events and the sums of every block, but no spans yet
  // Reads the missing blocks that touch the range, at most `most_blocks` of them. Returns how many were read. Works for
  // any trace that was written into this file, also for a live one with evicted blocks.
  size_t fill(Trace& trace, TimeNs begin, TimeNs end, size_t most_blocks = std::numeric_limits<size_t>::max());
  size_t fill(Trace& trace);
  Trace newest_trace();  // trace() with its newest spans, about a million
  Trace outline();  // like trace(), but without counters and memory events
  // Returns the spans of one block of an outline(), which stays without spans. Throws Failure if they cannot be read.
  std::vector<Span> spans(Trace& outline, TrackId track, size_t block);
  std::vector<std::string> problems() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Throws Failure if the file cannot be written, or if it holds something else than a run: such a file is never replaced.
// Writers check this themselves; call it before the work whose run goes there. Returns the file that may be replaced.
FoundFile check_run_file(const std::string& path);

RunSummary read_run_summary(const std::string& path);
// Name, tags and notes can be changed at any time, even while the file is being written.
void rename_run(const std::string& path, const std::string& name);
void tag_run(const std::string& path, const std::vector<std::string>& tags);
void annotate_run(const std::string& path, const std::string& notes);
// Stored in RunSummary::extra.
void keep_with_run(const std::string& path, const std::string& key, const std::string& value);

}  // namespace ws::prof
