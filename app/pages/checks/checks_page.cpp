#include "app/pages/checks/checks_panel.h"
#include "app/pages/page.h"

namespace ws::app {

Page checks_page(Workspace&) {
  Page page;
  page.title = QObject::tr("Checks"), page.widget = new ChecksPanel;
  return page;
}

}  // namespace ws::app
