#include "app/pages/insights/insights_tab.h"
#include "app/pages/page.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

void show_in_timeline(Workspace& workspace, Run* run, const Insight& insight) {
  const auto seen = run ? evidence_of(*run, insight) : std::nullopt;
  if (!seen) return workspace.say(QObject::tr("None in the part of the trace that is in memory."), true);
  if (run->slot < 0) workspace.library()->setTicked(run, true);
  workspace.showLive();
  workspace.cursor()->setFollow(false);
  workspace.focus()->reveal(SpanChoice{run, seen->track, seen->span},
                                SpanChoice{run, seen->step_track, seen->step});
  if (seen->waited > 0)
    workspace.say(QObject::tr("Nothing ran for %1 before this one.")
                      .arg(time_axis_text(static_cast<double>(seen->waited) * 1e-3)),
                  false);
}

}  // namespace

Page insights_page(Workspace& workspace) {
  auto* tab = new InsightsTab(workspace.session());
  tab->setTrainer([&workspace, tab](const RunSpec& spec, const QString& title) {
    Run* base = tab->run();
    Run* attempt = workspace.train(spec, title);
    if (attempt && base) workspace.library()->selection().compare(base->handle, attempt->handle);
    return attempt;
  });
  QObject::connect(tab, &InsightsTab::counted, &workspace, [&workspace, tab](int count) {
    workspace.noteOnTab(tab, count > 0 ? QString::number(count) : QString());
  });
  QObject::connect(
      tab, &InsightsTab::showWanted, &workspace,
      [&workspace](Run* run, const Insight& insight) { show_in_timeline(workspace, run, insight); });
  const auto show_runs = [tab](const std::vector<Run*>& runs) { tab->setRuns(runs); };
  QObject::connect(workspace.library(), &RunLibrary::tickedChanged, tab,
                   [&workspace, show_runs] { show_runs(workspace.library()->ticked()); });
  Page page;
  page.title = QObject::tr("Suggestions"), page.widget = tab, page.show_runs = show_runs, page.notes = true;
  return page;
}

}  // namespace ws::app
