#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/page.h"

namespace ws::app {

Page experiments_page(Workspace& workspace) {
  auto* tab = new ExperimentsTab(workspace.session(), workspace.library()->folder() + "/experiments");
  tab->setBase([choices = workspace.choices()] { return choices->spec(); });
  QObject::connect(tab, &ExperimentsTab::said, &workspace, &Workspace::say);
  QObject::connect(tab, &ExperimentsTab::openWanted, &workspace, &Workspace::open);
  Page page;
  page.title = QObject::tr("Experiments"), page.widget = tab;
  page.menus.push_back({MenuName::Compare, {page_action(tab, QObject::tr("Experiments"), {}, [&workspace, tab] {
                          workspace.bringToFront(tab);
                        })}});
  page.chores.push_back({[tab] { return tab->running() ? QObject::tr("An experiment is running.") : QString(); },
                         QObject::tr("Finished runs are kept. Run it again to go on."), [tab] { tab->stop(); }});
  page.open = [&workspace, tab](const QString& path) {
    if (!path.endsWith(".json") || !tab->open(path)) return false;
    workspace.bringToFront(tab);
    return true;
  };
  return page;
}

}  // namespace ws::app
