// Nothing moves under the pointer: a button, field or tab that stays in sight keeps its place, whatever a person does in the
// first minutes, on every page, at four sizes and in both themes.
#include <QAbstractButton>
#include <QAbstractScrollArea>
#include <QComboBox>
#include <QLineEdit>
#include <QTest>
#include <map>
#include <utility>

#include "app/pages/insights/insights_tab.h"
#include "app/pages/library/runs_panel.h"
#include "app/pages/live/live_page.h"
#include "app/pages/setup/setup_panel.h"
#include "app/window/notice_bar.h"
#include "app/window/start_page.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_inside_run.h"
#include "tests/app/support/made_ranks.h"

using namespace ws::app;

class PositionsTest : public QObject, FilledWindow {
  Q_OBJECT
 private:
  struct Place {
    QString name;
    QRect box;
  };
  using Places = std::map<quintptr, Place>;  // of each control by its address, of each tab by its number

  Run* adopt(std::unique_ptr<Run> made) {
    Run* run = made.release();
    run->slot = -1, run->created = QDateTime::currentDateTime(), run->loaded = true;
    window_->workspace()->library()->adopt(run);
    return run;
  }
  Run* adoptMade(const QString& title, ws::test::StepStyle style) { return adopt(ws::test::made(title, style, 0, 60)); }
  Places places(bool of_page) const;
  void compare(Places& before, const Places& now, const QString& state);
  void look(const QString& state);       // around the page, and the page in front
  void lookAtAll(const QString& state);  // every page
  void rest() const;

  std::unique_ptr<MainWindow> window_;
  Places around_;
  std::map<QString, Places> pages_;
  QStringList moved_;

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() {
    window_.reset();
    clear();
  }
  void nothingMoves_data();
  void nothingMoves();
};

// Controls that a run brings with it are no part of the frame: cards of insights, notices that lie over the window.
PositionsTest::Places PositionsTest::places(bool of_page) const {
  Places all;
  const QWidget* page = window_->findChild<LivePage*>()->parentWidget()->parentWidget();  // of all pages
  for (const QWidget* widget : window_->findChildren<QWidget*>()) {
    const bool control = qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QLineEdit*>(widget) || qobject_cast<const QComboBox*>(widget);
    if (!control || !widget->isVisibleTo(window_.get()) || widget->window() != window_.get()) continue;
    const bool picker = window_->tabStrip()->isAncestorOf(widget);  // a page has its own beside its name
    if ((page->isAncestorOf(widget) || picker) != of_page || window_->notice()->isAncestorOf(widget)) continue;
    if (window_->findChild<InsightsTab*>()->isAncestorOf(widget) || window_->startPage()->isAncestorOf(widget)) continue;
    if (widget->visibleRegion().isEmpty()) continue;
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    QString name = widget->accessibleName().isEmpty() && button ? button->toolTip().isEmpty() ? button->text() : button->toolTip() : widget->accessibleName();
    name = QString("%1 in %2").arg(name, widget->parentWidget()->metaObject()->className());
    all[quintptr(widget)] = {name, QRect(widget->mapTo(window_.get(), QPoint()), widget->size())};
  }
  const TabStrip& strip = *window_->tabStrip();
  const QTabBar* tabs = of_page ? strip.pages() : strip.groups();
  for (int tab = 0; tab < tabs->count(); ++tab)
    if (tabs->isVisible() && tabs->isTabVisible(tab)) all[static_cast<quintptr>(tab)] = {"tab " + tabs->tabText(tab), tabs->tabRect(tab).translated(tabs->mapTo(window_.get(), QPoint()))};
  return all;
}

// A control may grow to one side, as a field beside a splitter or a link at the right edge whose text is longer now.
void PositionsTest::compare(Places& before, const Places& now, const QString& state) {
  for (const auto& [control, place] : now) {
    const auto was = before.find(control);
    if (was == before.end()) continue;
    const QRect &old = was->second.box, &box = place.box;
    if (old.top() != box.top() || (old.left() != box.left() && old.right() != box.right()))
      moved_ << QString("%1: %2 from %3,%4 to %5,%6").arg(state, place.name).arg(old.x()).arg(old.y()).arg(box.x()).arg(box.y());
  }
  for (const auto& [control, place] : now) before[control] = place;
}

// The charts take what the timeline leaves after a moment.
void PositionsTest::rest() const {
  std::map<QWidget*, QRect> before;
  for (int turn = 0; turn < 40; ++turn) {
    for (int event = 0; event < 4; ++event) QTest::qWait(window_->tabs()->currentIndex() == 0 ? 25 : 5);
    if (const auto now = WindowHome::places(); std::exchange(before, now) == now) return;
  }
}

void PositionsTest::look(const QString& state) {
  rest();
  compare(around_, places(false), state);
  const TabStrip& strip = *window_->tabStrip();
  // The names of the pages keep their places in the whole tab.
  compare(pages_[strip.nameOf(strip.pages()->currentIndex())], places(true), state);
}

void PositionsTest::lookAtAll(const QString& state) {
  QTabBar* tabs = window_->tabs();
  for (int tab = 0; tab < tabs->count(); ++tab) {
    if (!tabs->isTabEnabled(tab)) continue;
    tabs->setCurrentIndex(tab);
    look(state + ", page " + tabs->tabText(tab));
  }
  tabs->setCurrentIndex(0);
  look(state + ", back on Overview");
}

void PositionsTest::nothingMoves_data() {
  QTest::addColumn<QSize>("size");
  QTest::addColumn<bool>("light");
  for (const QSize size : {QSize(1366, 768), QSize(1600, 972), QSize(1920, 1080), QSize(2560, 1440)})
    for (const bool light : {false, true})
      QTest::newRow(qPrintable(QString("%1×%2 %3").arg(size.width()).arg(size.height()).arg(light ? "light" : "dark"))) << size << light;
}

void PositionsTest::nothingMoves() {
  QFETCH(QSize, size);
  QFETCH(bool, light);
  ws::app::set_theme(*qApp, light ? ThemeName::Light : ThemeName::Dark);
  window_ = open();
  QTRY_VERIFY(window_->workspace()->device()->info());
  around_.clear(), pages_.clear(), moved_.clear();
  Workspace& workspace = *window_->workspace();
  RunLibrary& library = *workspace.library();
  window_->resize(size);
  iris(*window_, 30);
  look("nothing yet");
  Run *first = adoptMade("first", ws::test::StepStyle::EagerDirect), *second = adoptMade("second", ws::test::StepStyle::EagerDirect);
  workspace.pick(first);
  look("a run is opened");
  QVERIFY(around_.size() > 20);
  workspace.choices()->set("exec.allocator", "arena");
  look("a setting differs");
  workspace.choices()->set("train.epochs", "31");
  look("two settings differ");
  workspace.choices()->set("train.lr", "fast");
  look("a wrong number");
  workspace.choices()->set("train.lr", "0.05");
  look("the number is right");
  lookAtAll("one run");
  library.setTicked(second, true);
  lookAtAll("two runs");
  workspace.pick(second);
  lookAtAll("the other run");
  library.setTicked(first, false);
  lookAtAll("no longer compared");
  window_->notice()->showText("Something went wrong, at some length.");
  look("a notice");
  window_->notice()->dismiss();
  look("no notice");
  workspace.session()->setSpeed(TrainSpeed::Step);
  window_->train();
  look("a training begins");
  for (int step = 0; step < 3; ++step) workspace.session()->stepOnce();
  QTRY_VERIFY(workspace.session()->run()->steps.size() == 3);
  lookAtAll("in training");
  workspace.choices()->set("train.lr", "0.02");
  look("a change waits for Apply");
  workspace.session()->stop();
  QTRY_VERIFY(!workspace.session()->busy());
  lookAtAll("stopped");
  QVERIFY(library.remove(workspace.session()->run()));
  look("a run is deleted");
  QVERIFY(library.undoRemove());
  look("it is back");
  around_.clear();  // the panel of a recorded program has the place of Setup
  pages_.clear();
  workspace.pick(adopt(ws::test::made_rank_run(2)));
  lookAtAll("a program of two ranks");
  workspace.pick(adopt(ws::test::made_rank_run(4)));
  lookAtAll("a program of four ranks");
  for (const QString& line : moved_) qWarning("%s", qPrintable(line));
  QCOMPARE(moved_.size(), 0);
}

WARPSIGHT_QTEST(PositionsTest)
#include "positions_test.moc"
