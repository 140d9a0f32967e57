#include "app/pages/kernels/kernels_panel.h"
#include "app/pages/one_run_page.h"

namespace ws::app {

Page kernels_page(Workspace& workspace) {
  auto* panel = new KernelsPanel(workspace.focus());
  Page page = one_run_page(workspace, QObject::tr("Kernel times"), panel, [panel](Run* run) { panel->setRun(run); });
  page.remembered.push_back({"kernel_columns", [panel] { return panel->columns(); },
                             [panel](const QByteArray& chosen) { panel->setColumns(chosen); }});
  return page;
}

}  // namespace ws::app
