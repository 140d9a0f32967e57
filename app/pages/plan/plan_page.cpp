#include "app/pages/one_run_page.h"
#include "app/pages/plan/plan_panel.h"

namespace ws::app {

Page plan_page(Workspace& workspace) {
  auto* panel = new PlanPanel(workspace.selection());
  Page page = one_run_page(workspace, QObject::tr("Plan"), panel, [panel](Run* run) { panel->setRun(run); });
  page.of_training = true;
  return page;
}

}  // namespace ws::app
