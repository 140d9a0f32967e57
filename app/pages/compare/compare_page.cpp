#include "app/pages/compare/compare_tab.h"
#include "app/pages/page.h"

namespace ws::app {

Page compare_page(Workspace& workspace) {
  auto* tab = new CompareTab;
  QObject::connect(tab, &CompareTab::said, &workspace, &Workspace::say);
  Page page;
  page.title = QObject::tr("Compare"), page.widget = tab, page.picker = tab->picker();
  page.show_runs = [tab](const std::vector<Run*>& runs) { tab->setRuns(runs); };
  return page;
}

}  // namespace ws::app
