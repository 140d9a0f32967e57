#include "app/pages/page.h"
#include "app/pages/query/query_panel.h"

namespace ws::app {

Page query_page(Workspace& workspace) {
  auto* panel = new QueryPanel;
  QObject::connect(panel, &QueryPanel::said, &workspace, &Workspace::say);
  Page page;
  page.title = QObject::tr("Query"), page.widget = panel;
  page.show_runs = [panel](const std::vector<Run*>& runs) { panel->setRuns(runs); };
  page.remembered = {{"query", [panel] { return panel->query().toUtf8(); }, [panel](const QByteArray& kept) { panel->setQuery(QString::fromUtf8(kept)); }}};
  return page;
}

}  // namespace ws::app
