// Runs of whole graphs, and which of their times cannot be true.
#include <algorithm>

#include "profiling/collectors/cupti_parse.h"

namespace ws::prof {

namespace {
constexpr int kRunRounds = 16;  // looks at the newest run of a graph before it is drawn without the next
}

void RecordParser::switched(const RunSwitch& at) {
  constexpr size_t kMost = 64;
  switches_.push_back(at);
  if (switches_.size() > kMost) switches_.pop_front();
}

// Without a switch on the way; what was before the first that is known is taken for recorded.
bool RecordParser::recorded_throughout(uint64_t from, uint64_t to) const {
  const auto before =
      std::ranges::find_if(switches_.rbegin(), switches_.rend(), [&](const RunSwitch& at) { return at.time <= to; });
  return before == switches_.rend() || (before->on && before->time <= from);
}

// A run that was on its way while such records were switched can be given a time of another one. It is taken for right
// as long as it is not several times longer than any run of the same graph that no switch touched; switching may make a
// short one wait.
bool RecordParser::badly_timed(const CUpti_ActivityGraphTrace2& g) {
  constexpr uint64_t kMuchLonger = 4, kSwitching = 500'000;
  uint64_t& longest = longest_run_[g.graphId];
  const uint64_t took = g.end - g.start;
  if (recorded_throughout(g.start, g.end)) {
    longest = std::max(longest, took);
    return false;
  }
  return longest != 0 && took > std::max(kMuchLonger * longest, kSwitching);
}

void RecordParser::graph_run(const CUpti_ActivityGraphTrace2& g) {
  Span span;
  if (!begin_work(span, g.start, g.end, SpanKind::GraphRun, Meaning::Launch)) return;
  if (badly_timed(g)) {
    ++context_.batch.losses().invalid_records;
    return;
  }
  span.correlation = g.correlationId;
  join(span, 0);
  follow({span, &context_.batch.name("graph " + std::to_string(g.graphId)),
          &stream_row(TrackKind::GraphLaunches, g.deviceId, g.streamId), g.contextId, 0});
}

// Runs of graphs on one stream follow each other. Of two that do not, the one that is much longer has a time of another
// run and is left out: its own is not known.
void RecordParser::follow(GraphRunSeen run) {
  const auto same_stream = [&](const GraphRunSeen& r) { return r.row == run.row && r.context == run.context; };
  const auto before = std::ranges::find_if(newest_, same_stream);
  if (before == newest_.end()) return newest_.push_back(run);
  const uint64_t one = before->span.duration, other = run.span.duration;
  const uint64_t shorter = std::min(one, other), longer = std::max(one, other);
  const TimeNs both = std::min(before->span.end(), run.span.end()) - std::max(before->span.start, run.span.start);
  const bool overlap = both > 0 && 2 * static_cast<uint64_t>(both) > shorter;
  if (!overlap || longer <= 2 * shorter) {
    put(*before);
    *before = run;
    return;
  }
  ++context_.batch.losses().invalid_records;
  if (run.span.duration == shorter) *before = run;
}

void RecordParser::put(GraphRunSeen& run) {
  run.span.name = context_.batch.id(*run.name);
  put(run.span, *run.row);
}

void RecordParser::put_runs(bool last) {
  std::erase_if(newest_, [&](GraphRunSeen& run) {
    if (!last && ++run.rounds < kRunRounds) return false;
    put(run);
    return true;
  });
}

}  // namespace ws::prof
