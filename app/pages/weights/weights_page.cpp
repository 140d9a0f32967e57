#include <QFileInfo>

#include "app/pages/one_run_page.h"
#include "app/pages/weights/weights_panel.h"

namespace ws::app {
Page weights_page(Workspace& workspace) {
  auto* panel = new WeightsPanel(trainer_of(workspace.session()));
  Page page = one_run_page(workspace, QObject::tr("Weights"), panel, [panel](Run* run) { panel->setRun(run); },
                           [](const Run& run) { return !run.shipped || QFileInfo::exists(weights_path(run.path)); });
  page.of_training = true, page.needs = QObject::tr("It needs a training of Warpsight.");
  return page;
}

}  // namespace ws::app
