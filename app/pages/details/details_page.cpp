#include "app/pages/details/details_panel.h"
#include "app/pages/page.h"

namespace ws::app {

Page details_page(Workspace& workspace) {
  auto* panel = new DetailsPanel(workspace.focus());
  Page page;
  page.title = QObject::tr("Details"), page.dock = "Details", page.widget = panel;
  page.open_at_first = true;
  page.show_runs = [panel, &workspace](const std::vector<Run*>&) { panel->setRun(workspace.shownRun()); };
  return page;
}

}  // namespace ws::app
