#include <QFileDialog>
#include <QFileInfo>

#include "app/pages/compare/compare_tab.h"
#include "app/text/units.h"
#include "app/pages/page.h"
#include "app/report/report_pages.h"
#include "app/report/share_export.h"

namespace ws::app {
namespace {

void export_report(Workspace& workspace, QWidget* page) {
  const std::vector<Run*> runs = workspace.library()->ticked();
  if (runs.empty()) return workspace.say(QObject::tr("Tick the runs of the report first."), true);
  const QString path = QFileDialog::getSaveFileName(page->window(), QObject::tr("Export a report"), "report.html",
                                                    QObject::tr("Reports (*.html *.pdf)"));
  if (path.isEmpty()) return;
  try {
    write_report({runs.begin(), runs.end()}, path);
    workspace.wrote(path);
  } catch (const std::exception& problem) {
    workspace.say(QString::fromUtf8(problem.what()), true);
  }
}

}  // namespace

Page compare_page(Workspace& workspace) {
  auto* tab = new CompareTab;
  QObject::connect(tab, &CompareTab::said, &workspace, &Workspace::say);
  QObject::connect(tab, &CompareTab::wrote, &workspace, &Workspace::wrote);
  QObject::connect(&workspace, &Workspace::compareWanted, tab, [&workspace, tab] { workspace.bringToFront(tab); });
  QObject::connect(tab, &CompareTab::pairChosen, &workspace, [&workspace](const Run* baseline, const Run* current) {
    Selection& selection = workspace.library()->selection();
    if (current) selection.select(current->handle);
    if (baseline) selection.setBaseline(baseline->handle);
  });
  const auto show_pinned = [&workspace, tab] { tab->setPinned(workspace.pinnedBaseline()); };
  QObject::connect(tab, &CompareTab::pinWanted, &workspace, &Workspace::pinBaseline);
  QObject::connect(&workspace, &Workspace::pinnedChanged, tab, show_pinned);
  Page page;
  page.title = QObject::tr("Compare"), page.widget = tab, page.picker = tab->picker();
  page.show_runs = [tab, show_pinned](const std::vector<Run*>& runs) {
    tab->setRuns(runs);
    show_pinned();
  };
  auto* sharing = new Job(tab);
  page.menus.push_back({MenuName::File,
                        {page_action(tab, QObject::tr("Export a report…"), {}, [&workspace, tab] { export_report(workspace, tab); }),
                         page_action(tab, QObject::tr("Export a page to share…"), {}, [&workspace, tab, sharing] {
                           const std::vector<Run*> runs = workspace.library()->ticked();
                           ask_and_share_runs(tab->window(), {runs.begin(), runs.end()}, *sharing,
                                              [&workspace](const QString& path, const QString& problem) {
                                                problem.isEmpty() ? workspace.wrote(path) : workspace.say(problem, true);
                                              });
                         })}});
  return page;
}

}  // namespace ws::app
