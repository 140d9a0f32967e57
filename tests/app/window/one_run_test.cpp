// There is one current run: every view is about it, whatever was done before.
#include <QComboBox>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <random>

#include "app/pages/compare/compare_tab.h"
#include "app/pages/details/details_panel.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/library/runs_panel.h"
#include "app/charts/curve_pane.h"
#include "app/charts/plot.h"
#include "app/pages/live/live_page.h"
#include "app/pages/setup/setup_panel.h"
#include "app/text/units.h"
#include "app/timeline/timeline_pane.h"
#include "app/widgets/section.h"
#include "app/window/notice_bar.h"
#include "app/window/status_line.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/one_answer.h"

using namespace ws::app;

class OneRunTest : public QObject, FilledWindow {
  Q_OBJECT
 private:
  static Run* adopt(MainWindow& window, const QString& title, ws::test::StepStyle style) {
    Run* run = ws::test::made(title, style, 0, 60).release();
    run->slot = -1, run->created = QDateTime::currentDateTime();
    run->split.parts = {{ws::prof::Meaning::Matrix, {}, 50}}, run->split.wall_us = 50, run->split.steps = 60;
    window.workspace()->library()->adopt(run);
    return run;
  }
  static QString disagreement(MainWindow& window) { return ws::test::OneAnswer(window).wrong(); }
  static void act(MainWindow& window, int action, Run* run, Run* other);

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void everyViewIsAboutTheCurrentRun();
  void detailsAreHighEnoughToRead();
  void aSentenceOfTheStatusLineEnds();
  void theQuestionMarkOpensItsSection();
  void aTrainingShowsItselfAndTheRunBefore();
  void aClickOnTheBoxComparesAndOneBesideItSelects();
  void whatWasSelectedIsForgotten();
  void aZoomEndsWithItsRun();
  void aSlowTrainingHasTheSameLosses();
  void keysGoToTheViewUnderThePointer();
  void valuesLeaveWithThePointer();
  void aRunThatLeftCanBeSelectedAgain();
  void theDeleteKeyRemovesTheCurrentRun();
  void aRemovedRunChangesNoLetter();
  void aDeletedRunIsNotTheOneThatTrainedLast();
};

void OneRunTest::act(MainWindow& window, int action, Run* run, Run* other) {
  RunLibrary* library = window.workspace()->library();
  Selection& selection = library->selection();
  switch (action) {
    case 0:
      return window.workspace()->pick(run);
    case 1:
      return library->setTicked(run, true);
    case 2:
      return library->setTicked(run, false);
    case 3:
      return selection.compareWith(run->handle);
    case 4:
      return selection.swap();
    case 5:
      return library->tickOnly({run, other});
    case 6:
      return selection.setBaseline(other->handle);
    default:
      return selection.started(run->handle, true);
  }
}

void OneRunTest::everyViewIsAboutTheCurrentRun() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  std::vector<Run*> runs;
  for (int i = 0; i < 5; ++i)
    runs.push_back(adopt(*window, QString("run number %1").arg(i), i % 2 ? ws::test::StepStyle::GraphArena : ws::test::StepStyle::EagerDirect));
  std::mt19937 dice(7);
  for (int i = 0; i < 40; ++i) {
    const int action = static_cast<int>(dice() % 8);
    const size_t run = dice() % runs.size(), other = dice() % runs.size();
    act(*window, action, runs[run], runs[other]);
    QCoreApplication::processEvents();
    const QString wrong = disagreement(*window);
    QVERIFY2(wrong.isEmpty(), qPrintable(QString("%1 after action %2 (%3) of run %4").arg(wrong).arg(i).arg(action).arg(run)));
  }
}

// Details and Log share what the list of runs does not need.
void OneRunTest::detailsAreHighEnoughToRead() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  window->workspace()->pick(adopt(*window, "first", ws::test::StepStyle::EagerDirect));
  settle(30);
  const auto* details = window->findChild<DetailsPanel*>();
  QVERIFY(details->isVisible());
  QVERIFY2(details->height() >= 320, qPrintable(QString::number(details->height())));
  for (int i = 0; i < 30; ++i) adopt(*window, QString("run %1").arg(i), ws::test::StepStyle::GraphArena);
  settle(30);
  QVERIFY2(details->height() >= 320, qPrintable(QString::number(details->height())));
}

void OneRunTest::aSentenceOfTheStatusLineEnds() {
  auto window = open();
  auto* status = window->findChild<StatusLine*>();
  status->say("No span is named x.", true);
  QVERIFY(status->text().contains("No span"));
  auto* end = status->findChild<QTimer*>("end of the note");
  QVERIFY(end && end->isActive() && end->interval() >= 10'000);
  end->start(0);
  QTRY_VERIFY(!status->text().contains("No span"));
}

void OneRunTest::theQuestionMarkOpensItsSection() {
  auto window = open();
  for (Section* section : window->findChild<SetupPanel*>()->findChildren<Section*>()) {
    auto* help = section->findChild<QToolButton*>("help");
    if (!help) continue;
    section->setOpen(false);
    help->setChecked(true);
    QVERIFY(section->isOpen());
    help->setChecked(false);
  }
}

void OneRunTest::aTrainingShowsItselfAndTheRunBefore() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  RunLibrary* library = window->workspace()->library();
  std::vector<Run*> trained;
  for (const char* allocator : {"direct", "arena", "caching"}) {
    train(*window, allocator);
    trained.push_back(window->workspace()->session()->run());
  }
  QCOMPARE(library->ticked(), (std::vector{trained[1], trained[2]}));
  // Data of another kind cannot be compared: the training stands alone.
  QVERIFY(window->workspace()->choices()->usePreset("spirals"));
  window->workspace()->choices()->set("train.epochs", "1");
  window->workspace()->choices()->set("exec.device", "cpu");
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  window->train();
  QTRY_COMPARE(ended.count(), 1);
  QCOMPARE(library->ticked(), std::vector{window->workspace()->session()->run()});
  // "Compare with" compares exactly two.
  for (Run* run : trained) library->setTicked(run, true);
  window->workspace()->compareRuns(trained[0], trained[1]);
  QCOMPARE(library->ticked(), (std::vector{trained[0], trained[1]}));
  QVERIFY2(disagreement(*window).isEmpty(), qPrintable(disagreement(*window)));
}

void OneRunTest::aClickOnTheBoxComparesAndOneBesideItSelects() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run *first = adopt(*window, "first", ws::test::StepStyle::EagerDirect), *second = adopt(*window, "second", ws::test::StepStyle::GraphArena);
  RunLibrary* library = window->workspace()->library();
  library->tickOnly({first});
  QListView* list = window->findChild<RunsPanel*>()->view();
  const auto click = [&](const Run* run, int x) {
    const QRect row = list->visualRect(window->findChild<RunsPanel*>()->model()->indexOf(run));
    QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, QPoint(row.left() + x, row.center().y()));
  };
  click(second, 16);
  QCOMPARE(library->ticked(), (std::vector{second, first}));
  QCOMPARE(library->current(), first);
  click(second, 120);
  QCOMPARE(library->ticked(), (std::vector{first, second}));
  QCOMPARE(library->current(), second);
  click(first, 16);
  QCOMPARE(library->ticked(), std::vector{second});
  QVERIFY2(disagreement(*window).isEmpty(), qPrintable(disagreement(*window)));
}

void OneRunTest::whatWasSelectedIsForgotten() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run *first = adopt(*window, "first", ws::test::StepStyle::EagerDirect), *second = adopt(*window, "second", ws::test::StepStyle::GraphArena);
  window->workspace()->library()->tickOnly({first});
  const QString nothing = window->findChild<DetailsPanel*>()->html();
  window->workspace()->focus()->choose(OpChoice{first, 1});
  QTRY_VERIFY(window->findChild<DetailsPanel*>()->html() != nothing);
  const QString op = window->findChild<DetailsPanel*>()->html();
  window->workspace()->library()->setTicked(second, true);
  QCOMPARE(window->findChild<DetailsPanel*>()->html(), op);  // the same run is current
  window->workspace()->pick(second);
  QVERIFY(std::holds_alternative<std::monostate>(window->workspace()->focus()->choice()));
}

void OneRunTest::aZoomEndsWithItsRun() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run *first = adopt(*window, "first", ws::test::StepStyle::EagerDirect), *second = adopt(*window, "second", ws::test::StepStyle::GraphArena);
  window->workspace()->pick(first);
  CurvePane* loss = window->findChild<LivePage*>()->loss();
  settle(30);
  const QCPRange whole = loss->plot()->xAxis->range();
  loss->plot()->setFocus();
  for (int i = 0; i < 5; ++i) QTest::keyClick(loss->plot(), Qt::Key_D);
  QVERIFY(loss->plot()->zoomed());
  window->workspace()->pick(second);
  settle(30);
  QVERIFY(!loss->plot()->zoomed());
  QCOMPARE(loss->plot()->xAxis->range().lower, whole.lower);
  QCOMPARE(loss->plot()->xAxis->range().upper, whole.upper);
}

void OneRunTest::aSlowTrainingHasTheSameLosses() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  TrainingSession* session = window->workspace()->session();
  const auto losses = [&] {
    std::vector<float> all;
    for (const StepPoint& step : session->run()->steps) all.push_back(step.loss);
    return all;
  };
  iris(*window, 2);
  QSignalSpy ended(session, &TrainingSession::ended);
  window->train();
  QTRY_COMPARE(ended.count(), 1);
  const std::vector<float> full = losses();
  QVERIFY(full.size() > 10);
  session->setSpeed(TrainSpeed::Slow);
  QCOMPARE(window->topBar()->speed()->text(), QString("Slow"));
  window->train();
  QVERIFY(session->busy() && !session->paused());
  QTRY_VERIFY(session->run()->steps.size() > 2);
  QVERIFY2(session->busy(), "a step every 50 ms: there are more to come");
  QVERIFY2(!session->run()->progress || !session->run()->progress->paused, "it is not called paused");
  session->pause();
  QVERIFY(session->paused());
  session->resume();
  QTRY_COMPARE(ended.count(), 2);
  QCOMPARE(losses(), full);
  session->setSpeed(TrainSpeed::Step);
  window->train();
  QVERIFY(session->paused());
  QVERIFY(window->topBar()->follow()->isEnabled() && window->topBar()->follow()->isChecked());
  QCOMPARE(session->run()->steps.size(), size_t{0});
  session->stepOnce();
  QTRY_COMPARE(session->run()->steps.size(), size_t{1});
  session->setSpeed(TrainSpeed::Full);
  QTRY_COMPARE(ended.count(), 3);
  QCOMPARE(losses(), full);
  QVERIFY2(!window->topBar()->follow()->isEnabled() && !window->topBar()->follow()->isChecked(), "a finished run has no newer step");
}

void OneRunTest::keysGoToTheViewUnderThePointer() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  window->workspace()->pick(adopt(*window, "first", ws::test::StepStyle::EagerDirect));
  settle(30);
  TimelinePane* timeline = window->findChild<TimelinePane*>();
  const auto before = timeline->model()->range();
  window->topBar()->train()->setFocus();
  QTest::mouseMove(timeline->view(), timeline->view()->rect().center());
  QTRY_VERIFY(timeline->view()->underMouse());
  QTest::keyClick(window->topBar()->train(), Qt::Key_W);
  QVERIFY(timeline->model()->range().length() < before.length());
}

// The values of many runs lie over the chart, only while the pointer is there. The cursor itself stays for the menus.
void OneRunTest::valuesLeaveWithThePointer() {
  auto window = open();
  window->resize(1366, 768);
  QTRY_VERIFY(window->workspace()->device()->info());
  for (int i = 0; i < 6; ++i) window->workspace()->library()->setTicked(adopt(*window, QString("run %1").arg(i), ws::test::StepStyle::EagerDirect), true);
  settle(30);
  Plot* plot = window->findChild<LivePage*>()->loss()->plot();
  QTest::mouseMove(plot, plot->rect().center() - QPoint(3, 0));
  QTest::mouseMove(plot, plot->rect().center());
  QTRY_COMPARE(plot->values().size(), size_t{6});
  QEvent leave(QEvent::Leave);
  QCoreApplication::sendEvent(plot, &leave);
  QVERIFY(plot->values().empty());
  QVERIFY(window->workspace()->cursor()->cursor());
}

void OneRunTest::aRunThatLeftCanBeSelectedAgain() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run* run = adopt(*window, "first", ws::test::StepStyle::EagerDirect);
  RunLibrary* library = window->workspace()->library();
  library->tickOnly({run});
  auto* runs = window->findChild<RunsPanel*>();
  QCOMPARE(runs->current(), run);
  library->setTicked(run, false);
  QVERIFY(!runs->current() && !library->current());
  runs->view()->setCurrentIndex(runs->model()->indexOf(run));
  QCOMPARE(library->current(), run);
}

void OneRunTest::theDeleteKeyRemovesTheCurrentRun() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run *first = adopt(*window, "first", ws::test::StepStyle::EagerDirect), *second = adopt(*window, "second", ws::test::StepStyle::GraphArena);
  RunLibrary* library = window->workspace()->library();
  library->tickOnly({first, second});
  for (QAction* action : window->findChild<RunsPanel*>()->view()->actions())
    if (action->shortcut() == QKeySequence(QKeySequence::Delete)) action->trigger();
  QCOMPARE(library->runs(), std::vector{first});
  QCOMPARE(library->current(), first);
  QVERIFY2(disagreement(*window).isEmpty(), qPrintable(disagreement(*window)));
}

// A letter stands for one run as long as the window is open: in pictures, notes and reports too.
void OneRunTest::aRemovedRunChangesNoLetter() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  RunLibrary* library = window->workspace()->library();
  Run *first = adopt(*window, "first", ws::test::StepStyle::EagerDirect), *second = adopt(*window, "second", ws::test::StepStyle::GraphArena);
  library->tickOnly({first, second});
  const int gone = first->letter, kept = second->letter;
  QVERIFY(gone >= 0 && kept >= 0 && gone != kept);
  QVERIFY(library->remove(first));
  QCOMPARE(second->letter, kept);
  Run* third = adopt(*window, "third", ws::test::StepStyle::EagerDirect);
  library->setTicked(third, true);
  QVERIFY2(third->letter != gone && third->letter != kept, "the letter of the removed run stays free for its return");
  QCOMPARE(second->letter, kept);
}

void OneRunTest::aDeletedRunIsNotTheOneThatTrainedLast() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  const TrainingSession* session = window->workspace()->session();
  iris(*window, 1);
  window->train();
  QTRY_VERIFY(session->run() && !session->busy());
  QVERIFY(window->workspace()->library()->remove(session->run()));
  QTRY_VERIFY(!session->run());
}

WARPSIGHT_QTEST(OneRunTest)
#include "one_run_test.moc"
