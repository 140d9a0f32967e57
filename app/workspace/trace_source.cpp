#include "app/workspace/trace_source.h"

#include <QFileInfo>
#include <algorithm>

#include "profiling/analysis/trace_queries.h"
#include "profiling/run_file/stored_spans.h"

namespace ws::app {
namespace {

constexpr size_t kLiveSpans = 200'000;  // of a live run, copied for the other thread

// The newest part of a live trace. Its rows stay whole: an exposed transfer needs all computation beside it.
prof::TimeRange newest_part(const prof::Trace& trace) {
  prof::TimeNs begin = trace.first_time();
  const size_t each = kLiveSpans / std::max<size_t>(1, trace.tracks().size());
  for (const prof::Track& track : trace.tracks()) {
    size_t seen = 0;
    for (auto block = track.blocks.rbegin(); block != track.blocks.rend(); ++block)
      if ((seen += block->count) > each || !block->resident()) {
        begin = std::max(begin, block->resident() ? block->first : block->reach);
        break;
      }
  }
  return {begin, trace.last_time() + 1};
}

}  // namespace

TraceSource::TraceSource(const Run& run) {
  if (!run.live() && run.path.endsWith(".wsrun") && QFileInfo::exists(run.path)) {
    path_ = run.path.toStdString();
    return;
  }
  copy_ = std::make_shared<prof::Trace>();
  const prof::TimeRange range = newest_part(run.trace);
  part_ = range.begin > run.trace.first_time();
  prof::copy_trace(run.trace, range, *copy_);
}

prof::RankReport TraceSource::ranks(const Cancelled& cancelled) const {
  return copy_ ? prof::rank_report(*copy_) : prof::StoredSpans(path_, cancelled).ranks();
}

prof::MultiprocessorReport TraceSource::multiprocessors(const Cancelled& cancelled) const {
  if (!copy_) return prof::StoredSpans(path_, cancelled).multiprocessors();
  return prof::multiprocessor_report(*copy_, prof::blocks_in_memory(*copy_), part_);
}

}  // namespace ws::app
