#include "app/window/tabs.h"

#include <QMenu>
#include <QPushButton>
#include <QTabBar>

#include "app/pages/compare/compare_tab.h"
#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/lab/lab_tab.h"
#include "app/pages/library/library_tab.h"
#include "app/window/analysis_tabs.h"
#include "app/window/range_export.h"
#include "app/workspace/last_seconds.h"
#include "app/timeline/timeline_pane.h"
#include "app/pages/live/live_page.h"
#include "app/window/main_window.h"
#include "app/window/top_bar.h"

namespace ws::app {
namespace {

void add_timeline(MainWindow& window) {
  auto* timeline = new TimelinePane(window.cursor(), window.selection(), &window);
  window.livePage()->setTimeline(
      timeline, [timeline](const std::vector<Run*>& runs) { timeline->setRuns(runs); },
      [timeline] { return timeline->mostHeight(); });
  QObject::connect(timeline->model(), &TimelineModel::lanesChanged, window.livePage(), &LivePage::balanceSoon);
  window.livePage()->addZoom(
      {timeline, [timeline] { return timeline->view()->canUndoZoom(); }, [timeline] { timeline->view()->undoZoom(); }});
  window.menu(QObject::tr("Timeline"))->addActions(timeline->commands());
  QObject::connect(window.topBar(), &TopBar::findClicked, timeline, &TimelinePane::openFind);
  QObject::connect(timeline, &TimelinePane::said, &window,
                   [&window](const QString& sentence) { window.say(sentence, false); });
  window.remember(
      "lanes", [timeline] { return timeline->model()->saveLanes(); },
      [timeline](const QByteArray& state) { timeline->model()->restoreLanes(state); });
  QObject::connect(timeline, &TimelinePane::findWanted, &window, [&window] { window.tabs()->setCurrentIndex(0); });
  QObject::connect(timeline, &TimelinePane::keepWanted, &window, [&window](Run* run, double seconds) {
    auto kept = std::make_shared<KeptSeconds>(last_seconds(*run, seconds));
    window.library()->addMade(run->id + "-last", [kept] { return with_spans(std::move(*kept)); });
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
