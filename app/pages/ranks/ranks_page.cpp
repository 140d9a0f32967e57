#include "app/pages/one_run_page.h"
#include "app/pages/ranks/ranks_panel.h"

namespace ws::app {
namespace {

void show_step(Workspace& workspace, const RankReader& ranks, size_t step, bool show) {
  if (ranks.run()->slot < 0) workspace.library()->setTicked(ranks.run(), true);
  workspace.cursor()->setFollow(false);
  const TimeRange time = ranks.timeOf(step);
  if (const auto span = ranks.spanOf(step))
    workspace.focus()->reveal(*span, *span);
  else
    workspace.cursor()->setRange(time.begin, time.end);
  if (show) workspace.showLive();
}

}  // namespace

Page ranks_page(Workspace& workspace) {
  auto* panel = new RanksPanel;
  QObject::connect(panel, &RanksPanel::said, &workspace, &Workspace::say);
  QObject::connect(panel, &RanksPanel::stepWanted, &workspace,
                   [&workspace, panel](int step, bool show) {
                     show_step(workspace, panel->reader(), static_cast<size_t>(step), show);
                   });
  Page page = one_run_page(workspace, QObject::tr("Ranks"), panel, [panel](Run* run) { panel->setRun(run); },
                           [](const Run& run) { return several_ranks(run.trace); });
  page.needs = QObject::tr("It needs a run of several ranks.");
  return page;
}

}  // namespace ws::app
