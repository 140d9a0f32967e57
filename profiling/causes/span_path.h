// The critical path of a stretch of a run, span by span: what a timeline shows bright, and how much longer the rest could take.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/causes/cause_graph.h"

namespace ws::prof {

inline constexpr int64_t kNoSlack = -1;
struct PathOfSpan {
  int64_t path_ns = 0;   // of its time, on the path
  int64_t lasts_ns = 0;
  int64_t slack_ns = 0;  // how much later it could end without a longer run; kNoSlack: not known
  bool on_path() const { return path_ns > 0; }
};
std::string path_text(const PathOfSpan& span);  // "12.3 µs of 45.6 µs", "not on it, could take 30.0 µs longer"

class SpanPath {
 public:
  SpanPath(const CauseGraph& graph, const Trace& trace);
  const TimeRange& window() const { return window_; }
  // nullopt: it begins outside of the window, or its row shows no work of a graph, as a row of steps. A range of the program beside
  // recorded calls has the time for which the path is on the host of its rank.
  std::optional<PathOfSpan> of(size_t track, const Span& span) const;
  // The time of the row in the range that is on the path; nullopt as above.
  std::optional<int64_t> on_path(size_t track, TimeRange range) const;

 private:
  struct Piece {
    TimeNs begin, end;
    int64_t path_ns, slack_ns;
    int64_t path_before;  // of the row
  };
  const std::vector<Piece>* row(size_t track) const;
  const std::vector<Piece>* host(size_t track) const { return track < ranges_.size() && ranges_[track] ? &host_.at(*ranges_[track]) : nullptr; }
  static int64_t path_until(const std::vector<Piece>& row, TimeNs time);

  TimeRange window_;
  std::vector<std::vector<Piece>> rows_;   // by track; in order of their begin
  std::map<int, std::vector<Piece>> host_;  // of the path on the host of a rank
  std::vector<std::optional<int>> ranges_;  // by track: the rank of a row of ranges beside recorded calls
};

// True if spans of the row can be part of a graph of causes.
bool may_have_causes(const Track& track);
bool may_have_causes(const Trace& trace);

// Whole steps around a view, all in memory.
struct StepsAround {
  TimeRange window;  // empty: the view is not in memory
  StepRange which;   // of no number: the trace has no steps there
};
// The window grows up to so many spans. A view with more spans has a part around its middle. `marks`: where the steps are.
StepsAround steps_around(const Trace& trace, const Trace& marks, TimeRange view, size_t most_spans);

}  // namespace ws::prof
