#include <QTimer>

#include "app/core/lab/recorded_lab.h"
#include "app/pages/lab/lab_tab.h"
#include "app/pages/page.h"

namespace ws::app {
namespace {

// A run that was just opened has a timeline only after its trace was read.
void look_at(TimeCursor* cursor, Run* run, const lab::Recorded& recorded) {
  const int64_t margin = std::max<int64_t>((recorded.end_ns - recorded.begin_ns) / 20, 1000);
  cursor->setFollow(false);
  cursor->setRange(recorded.begin_ns - margin, recorded.end_ns + margin);
  run->fetch(recorded.begin_ns - margin, recorded.end_ns + margin);
}

void open_point(Workspace& workspace, const QString& path, const lab::Recorded& recorded) {
  Run* run = workspace.library()->open(path);
  if (!run) return;
  workspace.showLive();
  workspace.library()->tickOnly({run});
  TimeCursor* cursor = workspace.cursor();
  if (run->loaded) return look_at(cursor, run, recorded);
  auto* once = new QObject(run);
  QObject::connect(run, &Run::changed, once, [cursor, run, recorded, once] {
    once->deleteLater();
    QTimer::singleShot(0, run, [cursor, run, recorded] { look_at(cursor, run, recorded); });
  });
}

}  // namespace

Page lab_page(Workspace& workspace) {
  auto* tab = new LabTab;
  tab->setFolder(workspace.library()->folder());
  TrainingSession* session = workspace.session();
  QObject::connect(
      tab, &LabTab::pointWanted, &workspace,
      [&workspace](const QString& path, const lab::Recorded& recorded) { open_point(workspace, path, recorded); });
  QObject::connect(tab, &LabTab::busyChanged, session, [tab, session](bool busy) {
    session->hold(tab, busy ? QObject::tr("Stop the sweep first (Lab › Stop).") : QString());
  });
  QObject::connect(session, &TrainingSession::stateChanged, tab, [tab, session] {
    tab->setBusyElsewhere(
        session->busy() ? QObject::tr("Stop the training first (Run › Stop): it would disturb the measurement.")
                        : QString());
  });
  QObject::connect(session, &TrainingSession::machineChanged, tab, [tab, session] {
    if (!tab->running()) tab->setMachine(session->machine());
  });
  QObject::connect(tab, &LabTab::busyChanged, session, [tab, session](bool busy) {
    if (!busy) tab->setMachine(session->machine());
  });
  QObject::connect(&workspace, &Workspace::followWanted, tab, [&workspace, tab](const RemoteJobInfo& job) {
    if (job.kind == "lab" && tab->follow(job)) workspace.bringToFront(tab);
  });
  Page page;
  page.title = QObject::tr("Lab"), page.widget = tab;
  page.show_runs = [tab](const std::vector<Run*>& runs) { tab->showRuns(runs); };
  page.chores.push_back({[tab] {
                           const QString where = tab->place();
                           return !tab->running()   ? QString()
                                  : where.isEmpty() ? QObject::tr("A sweep is running.")
                                                    : QObject::tr("A sweep is running on %1.").arg(where);
                         },
                         QObject::tr("A recorded sweep keeps its points."), [tab] { tab->stop(); },
                         [tab] { return tab->place(); }, [tab] { tab->leave(); }});
  page.open = [&workspace, tab](const QString& path) {
    if (!path.endsWith(".json") || !tab->openResult(path)) return false;
    workspace.bringToFront(tab);
    return true;
  };
  return page;
}

}  // namespace ws::app
