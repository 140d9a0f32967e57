#include "app/core/report/step_picture.h"

#include <algorithm>

#include "profiling/analysis/step_lanes.h"
#include "profiling/analysis/memory_curves.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/trace/lod.h"

namespace ws::app {
namespace {

constexpr int kColumns = 1200;  // finer detail is not visible on paper
constexpr size_t kMostLanes = 5;

std::string block_name(const prof::StepLane& lane, const prof::Trace& trace, const prof::Span& span) {
  if (span.op != prof::kNoOp && span.op < trace.ops.size() && !trace.ops[span.op].name.empty() &&
      lane.track->kind != prof::TrackKind::Api)
    return trace.ops[span.op].name;
  const std::string& name = lane.trace->name(span.name);
  return span.span_kind() == prof::SpanKind::Kernel ? prof::short_kernel_name(name) : name;
}

StepPicture::Lane drawn(const prof::StepLane& lane, const prof::Trace& trace, prof::StepWindowNs step) {
  StepPicture::Lane out{lane.name, prof::broad_kind(lane.track->kind), {}};
  const double ns_a_column = static_cast<double>(step.end - step.begin) / kColumns;
  for (const prof::LodRect& rect : prof::lod(*lane.track, step.begin, step.end, kColumns)) {
    const bool one = rect.count == 1;
    const auto at = [&](float x) { return static_cast<prof::TimeNs>(static_cast<double>(x) * ns_a_column); };
    const prof::TimeNs begin = one ? rect.span.start - step.begin : at(rect.x0),
                       end = one ? rect.span.end() - step.begin : at(rect.x1);
    out.blocks.push_back({std::clamp<prof::TimeNs>(begin, 0, step.end - step.begin),
                          std::clamp<prof::TimeNs>(end, 0, step.end - step.begin), rect.meaning,
                          one ? block_name(lane, trace, rect.span) : std::string()});
  }
  return out;
}

std::vector<StepPicture::Level> memory_of(const prof::Trace& trace, prof::StepWindowNs step) {
  prof::MemoryCurves curves;
  curves.update(trace);
  const auto& points = curves.used().points;
  std::vector<StepPicture::Level> levels;
  auto at = std::upper_bound(points.begin(), points.end(), step.begin,
                             [](prof::TimeNs t, const prof::CounterPoint& p) { return t < p.time; });
  if (at != points.begin()) levels.push_back({0, (at - 1)->value});
  for (; at != points.end() && at->time < step.end; ++at) levels.push_back({at->time - step.begin, at->value});
  return levels;
}

}  // namespace

StepPicture step_picture(const prof::Trace& marks, const prof::Trace& trace, const prof::StepSample& sample) {
  StepPicture picture;
  const prof::StepWindowNs step = sample.median_step;
  if (step.end <= step.begin) return picture;
  picture.length = step.end - step.begin;
  picture.steps = sample.stride;
  for (const prof::StepLane& lane : step_lanes(marks, trace, step, kMostLanes))
    picture.lanes.push_back(drawn(lane, trace, step));
  picture.memory = memory_of(trace, step);
  return picture;
}

}  // namespace ws::app
