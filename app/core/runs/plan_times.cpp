#include "app/core/runs/plan_times.h"

#include <algorithm>

namespace ws::app {
namespace {

bool runs_from(const Plan& plan, const std::vector<prof::OpInfo>& ops, size_t base) {
  if (base + plan.ops.size() > ops.size()) return false;
  for (size_t i = 0; i < plan.ops.size(); ++i)
    if (ops[base + i].name != plan.ops[i].name) return false;
  return true;
}

// Where the work itself is recorded, best first.
std::vector<const prof::Track*> work_tracks(const prof::Trace& trace) {
  for (prof::TrackKind kind : {prof::TrackKind::Inner, prof::TrackKind::Stream, prof::TrackKind::CpuThread}) {
    std::vector<const prof::Track*> tracks;
    for (const auto& track : trace.tracks())
      if (track.kind == kind && track.spans > 0) tracks.push_back(&track);
    if (!tracks.empty()) return tracks;
  }
  return {};
}

}  // namespace

std::vector<prof::OpTag> op_tags(const Plan& plan, const prof::Trace& trace) {
  std::vector<prof::OpTag> tags(plan.ops.size(), prof::kNoOp);
  // An executor registers a plan's ops in order; the newest registration is the one that runs, or ran when work was
  // recorded last.
  constexpr size_t kNewest = 20'000;
  const auto times = op_times(trace, kNewest);
  size_t newest = 0;
  for (size_t base = trace.ops.size(); base-- > 1;) {
    if (!runs_from(plan, trace.ops, base)) continue;
    if (newest == 0) newest = base;
    const auto recorded = times.lower_bound(static_cast<prof::OpTag>(base));
    if (recorded == times.end() || recorded->first >= base + tags.size()) continue;
    newest = base;
    break;
  }
  for (size_t i = 0; newest > 0 && i < tags.size(); ++i) tags[i] = static_cast<prof::OpTag>(newest + i);
  if (newest > 0) return tags;
  for (size_t i = 0; i < plan.ops.size(); ++i)
    for (size_t tag = 1; tag < trace.ops.size(); ++tag)
      if (trace.ops[tag].name == plan.ops[i].name && trace.ops[tag].phase == to_string(plan.ops[i].phase))
        tags[i] = static_cast<prof::OpTag>(tag);
  return tags;
}

std::map<prof::OpTag, OpTime> op_times(const prof::Trace& trace, size_t newest_spans) {
  std::map<prof::OpTag, OpTime> times;
  for (const prof::Track* track : work_tracks(trace)) {
    size_t seen = 0;
    for (auto block = track->blocks.rbegin(); block != track->blocks.rend() && seen < newest_spans; ++block)
      for (const prof::Span& span : block->spans) {
        ++seen;
        if (span.op == prof::kNoOp) continue;
        OpTime& time = times[span.op];
        ++time.count, time.total_ns += static_cast<int64_t>(span.duration);
      }
  }
  return times;
}

}  // namespace ws::app
