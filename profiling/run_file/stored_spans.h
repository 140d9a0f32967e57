// Answers questions that need all spans of a run file, block by block, for files of any size. Meant for its own thread;
// no spans stay in memory.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/ranks.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/lod.h"

namespace ws::prof {

class StoredSpans {
 public:
  // `cancelled`: another thread sets it to end a running query early.
  explicit StoredSpans(const std::string& path, std::shared_ptr<const std::atomic<bool>> cancelled = nullptr);

  Trace& trace() { return trace_; }  // names, tracks and the sums of blocks
  size_t unread() const;             // spans that were needed but could not be read
  bool cancelled() const { return cancelled_ && cancelled_->load(std::memory_order_relaxed); }

  using Visit = std::function<bool(const Span&)>;
  // Visits the spans that touch [begin, end) in order of start, until `visit` returns false.
  void each(size_t track, TimeNs begin, TimeNs end, const Visit& visit);

  struct Found {
    size_t track;
    Span span;
  };
  // next(): the first span after `from` that `wanted` accepts and that starts before `until`.
  // previous(): the last span before `from` that `wanted` accepts and that starts after `until`.
  std::optional<Found> next(size_t track, TimeNs from, TimeNs until, const Visit& wanted);
  std::optional<Found> previous(size_t track, TimeNs from, TimeNs until, const Visit& wanted);
  std::optional<Found> slowest_step();
  std::optional<Span> slowest_step_on_gpu();  // if the kernels' step numbers say which step they belong to
  struct Gap {
    TimeNs begin, end;
  };
  std::optional<Gap> longest_gap();  // between two spans of a stream; unreadable blocks do not count as gaps
  // Same as for a trace in memory. A stretch with unreadable GPU spans counts as untraced.
  Activity activity(TimeNs begin, TimeNs end);
  std::vector<RangeSum> sum_by_name(size_t track, TimeNs begin, TimeNs end);
  RankReport ranks();
  MultiprocessorReport multiprocessors();

 private:
  ReadBlock reading();  // of every block of the file
  bool take(size_t track, size_t block, std::vector<Span>& into);
  std::vector<TimeNs> windows(TimeNs begin, TimeNs end) const;
  void copy(size_t track, TimeNs begin, TimeNs end, Trace& to);
  void add_unread(Trace& to, TimeNs begin, TimeNs end) const;

  RunFileReader reader_;
  Trace trace_;
  std::shared_ptr<const std::atomic<bool>> cancelled_;
  std::set<std::pair<size_t, size_t>> unread_;  // track and block
};

}  // namespace ws::prof
