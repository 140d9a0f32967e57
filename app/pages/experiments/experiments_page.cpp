#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/page.h"

namespace ws::app {

Page experiments_page(Workspace& workspace) {
  auto* tab = new ExperimentsTab(workspace.session(), workspace.library()->folder() + "/experiments");
  tab->setBase([choices = workspace.choices()] { return choices->spec(); });
  QObject::connect(tab, &ExperimentsTab::said, &workspace, &Workspace::say);
  QObject::connect(tab, &ExperimentsTab::openWanted, &workspace, &Workspace::open);
  QObject::connect(&workspace, &Workspace::followWanted, tab, [&workspace, tab](const RemoteJobInfo& job) {
    if (job.kind == "experiment" && tab->follow(job)) workspace.bringToFront(tab);
  });
  Page page;
  page.title = QObject::tr("Combinations"), page.widget = tab;
  page.chores.push_back({[tab] {
                           const QString where = tab->place();
                           return !tab->running()    ? QString()
                                  : where.isEmpty() ? QObject::tr("An experiment is running.")
                                                    : QObject::tr("An experiment is running on %1.").arg(where);
                         },
                         QObject::tr("Finished runs are kept. Run it again to go on."), [tab] { tab->stop(); }, [tab] { return tab->place(); }, [tab] { tab->leave(); }});
  page.open = [&workspace, tab](const QString& path) {
    if (!path.endsWith(".json") || !tab->open(path)) return false;
    workspace.bringToFront(tab);
    return true;
  };
  return page;
}

}  // namespace ws::app
