#include "app/window/tabs.h"

#include <QMenu>
#include <QPushButton>

#include "app/compare/compare_tab.h"
#include "app/compare/experiments_tab.h"
#include "app/insights/insights_tab.h"
#include "app/lab/lab_tab.h"
#include "app/library/library_tab.h"
#include "app/panels/analysis_tabs.h"
#include "app/report/range_export.h"
#include "app/timeline/timeline_pane.h"
#include "app/window/live_page.h"
#include "app/window/main_window.h"
#include "app/window/top_bar.h"

namespace ws::app {
namespace {

void add_timeline(MainWindow& window) {
  auto* timeline = new TimelinePane(window.cursor(), window.selection(), &window);
  window.livePage()->setTimeline(timeline, [timeline](const std::vector<Run*>& runs) { timeline->setRuns(runs); });
  window.menu(QObject::tr("Timeline"))->addActions(timeline->commands());
  QObject::connect(window.topBar(), &TopBar::findClicked, timeline, &TimelinePane::openFind);
  QObject::connect(timeline, &TimelinePane::said, &window,
                   [&window](const QString& sentence) { window.say(sentence, false); });
  window.remember(
      "lanes", [timeline] { return timeline->model()->saveLanes(); },
      [timeline](const QByteArray& state) { timeline->model()->restoreLanes(state); });
  QObject::connect(timeline, &TimelinePane::frozen, &window, [&window](Run* run) {
    window.library()->adopt(run);
    window.library()->setTicked(run, true);
  });
}

}  // namespace

void add_tabs(MainWindow& window) {
  add_timeline(window);
  add_analysis(window);
  add_library(window);
  add_compare(window);
  add_experiments(window);
  add_lab(window);
  add_insights(window);
  add_range_export(window);
}

}  // namespace ws::app
