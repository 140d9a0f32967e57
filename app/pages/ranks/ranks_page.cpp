#include "app/pages/one_run_page.h"
#include "app/pages/ranks/ranks_panel.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {
namespace {

// The step as a row of the timeline shows it, and that row.
std::optional<SpanChoice> step_span(Run* run, int64_t step, prof::TimeRange range) {
  const auto& tracks = run->trace.tracks();
  for (size_t i = 0; i < tracks.size(); ++i) {
    if (tracks[i].kind != prof::TrackKind::Steps) continue;
    std::optional<SpanChoice> found;
    prof::for_each_span(tracks[i], range.begin, range.end, [&](const prof::Span& span) {
      if (int64_t{span.step} == step + 1) found = SpanChoice{run, i, span};
      return !found;
    });
    if (found) return found;
  }
  return std::nullopt;
}

void show_step(Workspace& workspace, Run* run, int64_t step, prof::TimeRange range, bool show) {
  if (run->slot < 0) workspace.library()->setTicked(run, true);
  workspace.cursor()->setFollow(false);
  if (const auto span = step_span(run, step, range))
    workspace.selection()->reveal(*span, *span);
  else
    workspace.cursor()->setRange(range.begin, range.end);
  if (show) workspace.showLive();
}

}  // namespace

Page ranks_page(Workspace& workspace) {
  auto* panel = new RanksPanel;
  QObject::connect(panel, &RanksPanel::said, &workspace, &Workspace::say);
  QObject::connect(panel, &RanksPanel::stepWanted, &workspace,
                   [&workspace](Run* run, int64_t step, prof::TimeRange range, bool show) {
                     show_step(workspace, run, step, range, show);
                   });
  Page page = one_run_page(workspace, QObject::tr("Ranks"), panel, [panel](Run* run) { panel->setRun(run); },
                           [](const Run& run) { return several_ranks(run.trace); });
  page.comes_forward = true;
  return page;
}

}  // namespace ws::app
