#include "app/pages/multiprocessors/multiprocessors_panel.h"
#include "app/pages/one_run_page.h"

namespace ws::app {
namespace {

void show_span(Workspace& workspace, const SpanChoice& span, const SpanChoice& step, bool show) {
  if (span.run->slot < 0) workspace.library()->setTicked(span.run, true);
  workspace.cursor()->setFollow(false);
  workspace.focus()->reveal(span, step);
  if (show) workspace.showLive();
}

}  // namespace

Page multiprocessors_page(Workspace& workspace) {
  auto* panel = new MultiprocessorsPanel;
  QObject::connect(panel, &MultiprocessorsPanel::said, &workspace, &Workspace::say);
  QObject::connect(panel, &MultiprocessorsPanel::spanWanted, &workspace,
                   [&workspace](const SpanChoice& span, const SpanChoice& step, bool show) {
                     show_span(workspace, span, step, show);
                   });
  QObject::connect(workspace.focus(), &Focus::changed, panel, [&workspace, panel] {
    if (const auto* span = workspace.focus()->get<SpanChoice>()) panel->showSpan(*span);
  });
  Page page = one_run_page(workspace, QObject::tr("Multiprocessors"), panel, [panel](Run* run) { panel->setRun(run); },
                           [](const Run& run) { return prof::shows_inside(run.trace); });
  page.needs = QObject::tr("It needs a run that writes time stamps inside its kernels, as launch persistent does.");
  return page;
}

}  // namespace ws::app
