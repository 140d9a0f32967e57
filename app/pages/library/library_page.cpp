#include "app/pages/library/library_page.h"

#include <QFile>

#include "app/pages/library/library_tab.h"
#include "app/pages/library/runs_panel.h"
#include "app/pages/library/torch_job.h"

namespace ws::app {
namespace {

// Detects a trace by its first bytes: choices, experiments and lab sheets are JSON too.
bool is_trace(const QString& path) {
  for (const char* ending : {".json.gz", ".sqlite", ".db", ".pickle", ".pkl"})
    if (path.endsWith(ending)) return true;
  QFile file(path);
  if (!(path.endsWith(".json") || path.endsWith(".csv")) || !file.open(QIODevice::ReadOnly)) return false;
  const QByteArray head = file.read(path.endsWith(".csv") ? 64 : 65536);
  return path.endsWith(".csv") ? head.startsWith("Wall time,Step,Value") : head.contains("\"traceEvents\"");
}

// Imports the trace of another tool into the library.
bool import_trace(Workspace& workspace, const QString& path) {
  if (!is_trace(path)) return false;
  workspace.jobs()->import(path, [library = workspace.library()](Run* run) { library->setTicked(run, true); });
  return true;
}

QList<QAction*> torch_actions(Workspace& workspace, QWidget* page, TorchJob* job) {
  QAction* same = page_action(page, QObject::tr("Run the same in PyTorch"), {}, [&workspace, job] {
    const Run* shown = workspace.shownRun();
    job->start(shown ? shown->spec : workspace.choices()->spec());
  });
  QAction* stop = page_action(page, QObject::tr("Stop PyTorch"), {}, [job] { job->stop(); });
  const auto refresh = [same, stop, job] {
    same->setEnabled(!job->running());
    stop->setEnabled(job->running());
  };
  QObject::connect(job, &TorchJob::runningChanged, page, refresh);
  refresh();
  return {same, stop};
}

Page runs_page(Workspace& workspace, RunsPanel* panel) {
  panel->setMinimumWidth(214);
  QObject::connect(panel, &RunsPanel::openFile, &workspace, &Workspace::chooseFile);
  QObject::connect(panel, &RunsPanel::picked, &workspace, &Workspace::pick);
  QObject::connect(panel, &RunsPanel::useChoices, &workspace,
                   [&workspace](Run* run) { workspace.choices()->setSpec(run->spec); });
  QObject::connect(workspace.session(), &TrainingSession::started, panel, [panel](Run* run) {
    QObject::connect(run, &Run::changed, panel->model(), &RunsModel::repaintLive);
  });
  Page page;
  page.title = QObject::tr("Runs"), page.dock = "Runs", page.widget = panel;
  page.open_at_first = true;
  return page;
}

Page library_page(Workspace& workspace, LibraryTab* tab, TorchJob* torch) {
  QObject::connect(tab, &LibraryTab::said, &workspace, &Workspace::say);
  QObject::connect(tab, &LibraryTab::opened, &workspace, &Workspace::openRun);
  Page page;
  page.title = QObject::tr("All runs"), page.widget = tab;
  page.menus.push_back({MenuName::Run, QList<QAction*>{page_separator(tab)} + torch_actions(workspace, tab, torch)});
  page.chores.push_back({[torch] {
                           const QString where = torch->place();
                           return !torch->running() ? QString()
                                  : where.isEmpty() ? QObject::tr("PyTorch is training.")
                                                    : QObject::tr("PyTorch is training on %1.").arg(where);
                         },
                         QObject::tr("A run of PyTorch that is stopped is not kept."), [torch] { torch->stop(); },
                         [torch] { return torch->place(); }, [torch] { torch->leave(); }});
  page.open = [&workspace](const QString& path) { return import_trace(workspace, path); };
  return page;
}

}  // namespace

LibraryPages library_pages(Workspace& workspace) {
  auto* runs = new RunsPanel(workspace.library(), workspace.jobs());
  auto* tab = new LibraryTab(workspace.library(), workspace.jobs());
  auto* torch = new TorchJob(workspace, tab);
  QObject::connect(&workspace, &Workspace::followWanted, torch, [torch](const RemoteJobInfo& job) {
    if (job.kind == "torch") torch->follow(job);
  });
  const auto train = [&workspace](const RunSpec& spec, const QString& title) {
    if (workspace.train(spec, title)) workspace.showLive();
  };
  QObject::connect(tab, &LibraryTab::trainWanted, &workspace, train);
  QObject::connect(runs, &RunsPanel::trainWanted, &workspace, train);
  QObject::connect(tab, &LibraryTab::torchWanted, torch, &TorchJob::start);
  QObject::connect(runs, &RunsPanel::torchWanted, torch, &TorchJob::start);
  return {runs_page(workspace, runs), library_page(workspace, tab, torch)};
}

}  // namespace ws::app
