#include "app/pages/one_run_page.h"
#include "app/pages/roofline/roofline_panel.h"

namespace ws::app {

Page roofline_page(Workspace& workspace) {
  auto* panel = new RooflinePanel(workspace.focus());
  Page page = one_run_page(workspace, QObject::tr("Roofline"), panel, [panel](Run* run) { panel->setRun(run); },
                           [](const Run& run) { return run.hasChoices(); });
  page.needs = QObject::tr("It needs a training of Warpsight.");
  return page;
}

}  // namespace ws::app
