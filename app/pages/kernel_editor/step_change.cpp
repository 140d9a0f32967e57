#include "app/pages/kernel_editor/step_change.h"

#include <algorithm>
#include <cmath>

#include "app/text/qt_text.h"
#include "app/workspace/run.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

constexpr size_t kMostBars = 200, kMostRows = 4;
constexpr int64_t kSettled = 3;  // steps after a change: the first ones also load kernels

QString name_of(const prof::Trace& trace, const prof::Span& span) {
  const bool op = span.op != prof::kNoOp && span.op < trace.ops.size() && !trace.ops[span.op].name.empty();
  return text(op ? trace.ops[span.op].name : prof::plain_kernel_name(trace.name(span.name)));
}

PathPicture picture_of(const Run& run, const QString& title, int64_t step) {
  const prof::TimeNs begin = run.timeOfStep(static_cast<double>(step)), end = run.timeOfStep(static_cast<double>(step + 1));
  PathPicture picture{.title = title, .length_us = static_cast<double>(end - begin) / 1000, .rows = {}};
  for (const prof::Track& track : prof::tracks_of_steps(run.trace)) {
    if (!prof::on_gpu(track) && track.kind != prof::TrackKind::Api) continue;
    PathPicture::Row row{text(track.name), {}};
    prof::each_span(track, begin, end, [&](const prof::Span& span) {
      if (row.bars.size() >= kMostBars || span.start < begin) return;
      const double from = static_cast<double>(span.start - begin) / 1000;
      row.bars.push_back({from, std::min(from + static_cast<double>(span.duration) / 1000, picture.length_us), span.span_meaning(), name_of(run.trace, span), 0, true});
    });
    if (!row.bars.empty() && picture.rows.size() < kMostRows) picture.rows.push_back(std::move(row));
  }
  return picture;
}

}  // namespace

std::optional<int64_t> kernel_change(const Run& run) {
  const auto last = std::ranges::find(run.changes.rbegin(), run.changes.rend(), std::string("exec.kernels"), &Change::key);
  if (last == run.changes.rend()) return {};
  return last->step;
}

std::vector<PathPicture> pictures_around(const Run& run, int64_t step) {
  const int64_t before = step - 2, after = step + kSettled;
  if (before < 0 || run.stepsMade() < after + 2 || run.trace.span_count() == 0) return {};
  std::vector<PathPicture> pictures{picture_of(run, QObject::tr("before: step %1").arg(before + 1), before), picture_of(run, QObject::tr("after: step %1").arg(after + 1), after)};
  const bool both = std::ranges::all_of(pictures, [](const PathPicture& p) { return !p.rows.empty() && p.length_us > 0; });
  return both ? pictures : std::vector<PathPicture>{};
}

}  // namespace ws::app
