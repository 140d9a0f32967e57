#include "app/pages/one_run_page.h"
#include "app/pages/memory/memory_map_panel.h"

namespace ws::app {

Page memory_page(Workspace& workspace) {
  auto* panel = new MemoryMapPanel(workspace.focus());
  Page page = one_run_page(workspace, QObject::tr("Memory"), panel, [panel](Run* run) { panel->setRun(run); });
  return page;
}

}  // namespace ws::app
