// Asks a run's file on another thread, because searches and sums must include blocks that are out of memory. A
// new request replaces the old one.
#pragma once
#include <functional>
#include <memory>

#include "app/timeline/time_scale.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/run_file/stored_spans.h"

namespace ws::app {

// A span from a file, with its names as text: name ids in the file differ from those in memory.
struct StoredHit {
  prof::TrackKind kind{};
  std::string track, group, name;
  int depth = 0;
  prof::Detail detail;
  prof::Span span;
};
std::optional<StoredHit> hit_of(prof::StoredSpans& file, const std::optional<prof::StoredSpans::Found>& found);
std::optional<size_t> track_of(const prof::Trace& trace, const prof::Track& like);
std::optional<prof::FoundSpan> found_in(prof::Trace& trace, const StoredHit& hit);  // nullopt if there is no such row

// True if all blocks of the range are in memory, for every row that `wanted` accepts.
bool in_memory(const prof::Trace& trace, TimeRange range, const std::function<bool(const prof::Track&)>& wanted = {});

// Sum of the spans in a range, by row and name.
struct StoredSum {
  std::string name;
  prof::Meaning meaning{};
  uint64_t count = 0;
  prof::TimeNs total = 0;
};
struct StoredSums {
  struct Row {
    prof::TrackKind kind{};
    std::string name;
    std::vector<StoredSum> sums;  // largest first
  };
  std::vector<Row> rows;
  std::optional<prof::Activity> gpu;  // set if a file was read and has GPU work
};
StoredSums sums_in(prof::StoredSpans& file, TimeRange range);
StoredSums sums_in(const prof::Trace& trace, TimeRange range);  // only spans in memory

class StoredSearch {
 public:
  bool busy() const { return job_.running(); }
  void cancel() { job_.drop(); }

  // Returns false if the run has no file. `done` gets the answer, how many spans could not be read, and the
  // problem if there is no answer.
  template <class Answer>
  bool ask(const Run& run, std::function<Answer(prof::StoredSpans&)> work,
           std::function<void(const Answer&, size_t unread, const QString& problem)> done) {
    cancel();
    if (run.path.isEmpty()) return false;
    const auto answer = std::make_shared<Answer>();
    const auto unread = std::make_shared<size_t>(0);
    job_.start(
        [answer, unread, work = std::move(work), path = run.path.toStdString()](const Job::Side& side) {
          prof::StoredSpans file(path, side.cancelled());
          *answer = work(file);
          *unread = file.unread();
        },
        [answer, unread, done = std::move(done)](const QString& problem) { done(*answer, *unread, problem); });
    return true;
  }

 private:
  Job job_;
};

}  // namespace ws::app
