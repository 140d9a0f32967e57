#include "app/pages/flame/flame_panel.h"
#include "app/pages/one_run_page.h"
#include "app/workspace/run.h"
#include "profiling/analysis/program_tables.h"

namespace ws::app {

Page flame_page(Workspace& workspace) {
  auto* panel = new FlamePanel(workspace.focus());
  QObject::connect(panel, &FlamePanel::said, &workspace, &Workspace::say);
  Page page = one_run_page(workspace, QObject::tr("Flame graph"), panel, [panel](Run* run) { panel->setRun(run); },
                           [](const Run& run) { return !run.hasChoices() || has_samples(run.trace); });
  page.needs = QObject::tr("It needs a recorded program.");
  return page;
}

}  // namespace ws::app
