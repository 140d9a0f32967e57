// The runs that ship with the program: recorded on a GPU, so that a machine without one shows the real thing.
#include <QFile>
#include <QLabel>
#include <QListView>
#include <QMenu>
#include <QMenuBar>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QTest>

#include "app/pages/compare/compare_headline.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/library/library_model.h"
#include "app/pages/library/runs_panel.h"
#include "app/pages/multiprocessors/multiprocessors_panel.h"
#include "app/pages/setup/setup_panel.h"
#include "app/timeline/meaning_legend.h"
#include "app/timeline/timeline_painter.h"
#include "app/timeline/timeline_pane.h"
#include "app/window/notice_bar.h"
#include "app/window/start_page.h"
#include "app/window/top_bar.h"
#include "app/workspace/job.h"
#include "app/workspace/lessons.h"
#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/run_insights.h"
#include "app/core/runs/newest_trace.h"
#include "app/workspace/shipped_runs.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

namespace {

std::map<QString, QByteArray> contents() {
  std::map<QString, QByteArray> all;
  QStringList paths = shipped_runs();
  for (const RecordedProgram& program : recorded_programs()) paths << program.path;
  for (const QString& path : paths) {
    QFile file(path);
    if (file.open(QIODevice::ReadOnly)) all[path] = file.readAll();
  }
  return all;
}

}  // namespace

class ShippedRunsTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  std::map<QString, QByteArray> before_;

 private slots:
  void initTestCase() {
    qputenv("WARPSIGHT_RESOURCES", WARPSIGHT_SOURCE_DIR "/resources");
    moveIn();
    before_ = contents();
  }
  void cleanup() {
    clear();
    QVERIFY(contents() == before_);  // nobody wrote into them
    QCOMPARE(QDir(WARPSIGHT_SOURCE_DIR "/resources/recorded").entryList(QDir::Files).size(), int(before_.size()));
  }
  void theyAreSmallAndShowOneSubject();
  void theWindowAndTheCommandLineGiveTheSameInsights();
  void theTimelineNamesItsColours();
  void eachProgramShowsItsFault();
  void oneShowsTheInsideOfAKernel();
  void theHeaderNamesWhatItsTimeIsOf();
  void aLessonOpensThem();
  void openedAfterOwnRunsTheyAreInSight();
  void everyViewReportsWhereTheyWereRecorded();
  void nothingOfThemIsChanged();
};

void ShippedRunsTest::theyAreSmallAndShowOneSubject() {
  QCOMPARE(before_.size(), size_t(4 + 3));
  for (const auto& [path, content] : before_) QVERIFY2(content.size() < 1 << 20, qPrintable(path));
  RunLibrary library(runs());
  std::map<QString, Run*> of;
  for (const char* name : {"mnist-direct", "mnist-arena", "mnist-graph"}) {
    Run* run = of[name] = library.open(shipped_run(name));
    QVERIFY(run && run->shipped);
    QVERIFY2(run->device.contains("H200"), qPrintable(run->device));
    QVERIFY(run->summary->status == ws::RunStatus::Finished && run->summary->test_accuracy > 0.8);
  }
  QVERIFY(of["mnist-direct"]->driverCalls() > 20 && of["mnist-arena"]->driverCalls() < 1);
  QVERIFY(of["mnist-direct"]->stepUs() > 1.2 * of["mnist-arena"]->stepUs());
  QVERIFY(of["mnist-arena"]->stepUs() > 4 * of["mnist-graph"]->stepUs());
}

// The time is of the whole program or training, and 16 steps of 12 ms are less.
void ShippedRunsTest::theHeaderNamesWhatItsTimeIsOf() {
  auto window = open();
  for (const auto& [name, said] : {std::pair{"pytorch-gpt-2-ranks", "16 steps recorded · program ran 9.0 s"},
                                   {"mnist-arena", "50 steps · training took 0.013 s"}}) {
    window->openFile(shipped_run(name));
    QTRY_VERIFY2(window->topBar()->findChild<ProgressCell*>()->accessibleDescription().contains(said), said);
  }
}

// Every multiprocessor of one kernel that runs many steps: each part and each wait.
void ShippedRunsTest::oneShowsTheInsideOfAKernel() {
  auto window = open();
  window->resize(1600, 972);
  RunLibrary* library = window->workspace()->library();
  Run* run = library->open(shipped_run("mnist-persistent"));
  QVERIFY(run && run->shipped && run->device.contains("H100"));
  library->tickOnly({run});
  QTRY_VERIFY(!library->loading());
  QVERIFY(show_tab(*window, "Multiprocessors"));
  auto* panel = window->findChild<MultiprocessorsPanel*>();
  QTRY_VERIFY(panel->reader()->report() && panel->reader()->report()->any());
  const ws::prof::MultiprocessorReport& report = *panel->reader()->report();
  QVERIFY(report.steps.size() >= 16);
  QStringList parts;
  for (const auto& phase : report.phases) parts << QString::fromStdString(phase.name);
  for (const char* part : {"fc1 forward", "fc3 backward", "wait for hidden units"})
    QVERIFY2(parts.contains(part), qPrintable(parts.join(", ")));
  if (const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES"); !folder.isEmpty())
    QVERIFY(window->grab().save(folder + "/shipped-multiprocessors.png"));
}

// One function composes the insights. Only the savings differ: the window replays fewer spans.
void ShippedRunsTest::theWindowAndTheCommandLineGiveTheSameInsights() {
  auto window = open();
  auto* tab = window->findChild<InsightsTab*>();
  QStringList paths = shipped_runs();
  for (const RecordedProgram& program : recorded_programs()) paths << program.path;
  for (const QString& path : paths) {
    window->openFile(path);
    QTRY_VERIFY(tab->run() && tab->run()->path == path && tab->run()->loaded);
    QTRY_VERIFY(!Job::anyRunning());
    tab->refresh();
    QStringList shown, said;
    for (const InsightCard* card : tab->cards()) shown << QString::fromStdString(card->insight().headline);
    const RunInsights all = run_insights(newest_data(path.toStdString()));
    for (const Insight& insight : all.found) {
      said << QString::fromStdString(insight.headline);
      const bool torch = tab->run()->hasChoices() && QString::fromStdString(whole_why(insight)).contains("torch");
      QVERIFY2(!torch, qPrintable(path + ": " + said.back() + " is advice for PyTorch"));
    }
    QVERIFY2(shown == said, qPrintable(path + "\nwindow:\n" + shown.join('\n') + "\ncommand line:\n" + said.join('\n')));
  }
}

// Every colour has a name below the timeline at each size, and only what the runs have is named.
void ShippedRunsTest::theTimelineNamesItsColours() {
  auto window = open();
  window->resize(1366, 768);
  auto* legend = window->findChild<TimelinePane*>()->findChild<MeaningLegend*>();
  const auto open_program = [&](const char* program) {
    for (const RecordedProgram& one : recorded_programs())
      if (QFileInfo(one.path).baseName() == program) {
        window->openFile(one.path);
        const Run* run = nullptr;
        (void)QTest::qWaitFor([&] { return (run = window->workspace()->shownRun()) && run->path == one.path && run->loaded && !Job::anyRunning(); }, 20'000);
      }
  };
  open_program("pytorch-gpt-2-ranks");
  QVERIFY(legend->isVisible() && legend->height() > 0);
  for (const char* name : {"communication", "waits for a rank", "matrix product"}) QVERIFY2(legend->names().contains(name), name);
  QVERIFY2(!legend->names().contains("waits for data"), "it has none");
  open_program("pytorch-slow-loader");
  QVERIFY(legend->names().contains("waits for data") && !legend->names().contains("communication"));
}

// From the menu: the fault that the menu speaks of is among the insights, with its line or its rank, and the pages that need
// such a run can show it.
void ShippedRunsTest::eachProgramShowsItsFault() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  const std::map<QString, std::pair<QString, QString>> faults{{"pytorch-cnn", {"cnn.py:42", "Flame graph"}},
                                                              {"pytorch-gpt-2-ranks", {"for rank 1, which computes", "Ranks"}},
                                                              {"pytorch-slow-loader", {"slow_loader.py:", "Flame graph"}}};
  for (const RecordedProgram& program : recorded_programs()) {
    const auto& [fault, page] = faults.at(QFileInfo(program.path).baseName());
    QString said;
    for (const Insight& insight : run_insights(newest_data(program.path.toStdString())).found)
      said += QString::fromStdString(insight.headline + " " + whole_why(insight) + "\n");
    QVERIFY2(said.contains(fault), qPrintable(said));
    for (QAction* menu : window->menuBar()->actions())
      for (QAction* entry : menu->menu()->actions())
        if (entry->text() == "Open the recorded runs")
          for (QAction* each : entry->menu()->actions())
            if (each->text() == program.title) each->trigger();
    QTRY_VERIFY(window->workspace()->shownRun() && window->workspace()->shownRun()->path == program.path && window->workspace()->shownRun()->loaded);
    QCOMPARE(window->notice()->text(), program.find);
    int offered = 0;
    for (int tab = 0; tab < window->tabs()->count(); ++tab) offered += window->tabs()->tabText(tab) == page && window->tabs()->isTabEnabled(tab);
    QVERIFY2(offered == 1, qPrintable(page));
  }
}

// From the first page to the conclusion with one click, where there is no GPU.
void ShippedRunsTest::aLessonOpensThem() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  if (window->workspace()->device()->info()->cuda) QSKIP("with a GPU the lessons train");
  const auto offered = lessons(false);
  int opened = 0;
  for (size_t i = 0; i < offered.size(); ++i) {
    const QStringList paths = shipped_runs_of(*offered[i], false);
    QCOMPARE(offered[i]->needs_gpu && paths.isEmpty(), false);
    if (paths.isEmpty()) continue;
    window->workspace()->library()->tickOnly({});
    window->notice()->dismiss();
    QPushButton* button = window->startPage()->cards()[i]->button();
    QCOMPARE(button->text(), QString("Open"));
    QTRY_VERIFY(button->isVisible());
    QTest::mouseClick(button, Qt::LeftButton);
    QTRY_VERIFY(!window->notice()->text().isEmpty());
    QVERIFY(!window->workspace()->session()->busy());
    QCOMPARE(window->workspace()->library()->ticked().size(), size_t(paths.size()));
    const QString said = window->notice()->text();  // the answer to the question
    QVERIFY2(said.contains(QRegularExpression("A step takes [0-9.]+× as long with the allocations\\.|A step is [0-9.]+× faster with all of it\\.")), qPrintable(said));
    QVERIFY(!window->findChild<SetupPanel*>()->isVisible());  // the result needs the width
    QCOMPARE(window->notice()->actions().size(), size_t(1));
    ++opened;
  }
  QVERIFY(opened >= 2);
  for (Run* run : window->workspace()->library()->runs())
    QVERIFY(!ws::why_invalid(the_same_here(*run).spec, false));
}

// The view stands where the runs have their steps, and Fit shows the steps and not the start of the program.
void ShippedRunsTest::openedAfterOwnRunsTheyAreInSight() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  iris(*window, 3);
  for (int run = 0; run < 2; ++run) {
    QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
    window->train();
    QTRY_COMPARE(ended.count(), 1);
  }
  show_tab(*window, "Compare");
  window->openFiles(shipped_runs());
  RunLibrary* library = window->workspace()->library();
  QTRY_VERIFY(library->ticked().size() == static_cast<size_t>(shipped_runs().size()) && !library->loading());
  settle(60);
  auto* view = window->findChild<TimelinePane*>()->view();
  const TimelineModel& model = *window->findChild<TimelinePane*>()->model();
  const auto seen = [&](int run) {  // from the first to the last kernel in sight, as a share of the width
    int first = view->width(), last = 0;
    for (const Lane& lane : model.lanes()) {
      if (lane.run != run || lane.kind != LaneKind::Spans || lane.track_kind != ws::prof::TrackKind::Stream) continue;
      view->viewport()->setScroll(lane.y);
      const int y = view->timelineGeometry().laneY(lane) + lane.height / 2;
      for (int x = view->timelineGeometry().gutter; x < view->width(); x += 2)
        if (view->hitAt({x, y})) first = std::min(first, x), last = std::max(last, x);
    }
    return static_cast<double>(last - first) / (view->width() - view->timelineGeometry().gutter);
  };
  for (size_t run = 0; run < model.runCount(); ++run) {
    const int index = static_cast<int>(run);
    QTRY_VERIFY(seen(index) > 0);
  }
  view->fit();
  settle(60);
  double widest = 0;
  for (size_t run = 0; run < model.runCount(); ++run) widest = std::max(widest, seen(static_cast<int>(run)));
  QVERIFY2(widest > 0.7, qPrintable(QString::number(widest)));
}

void ShippedRunsTest::everyViewReportsWhereTheyWereRecorded() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  QAction* entry = nullptr;
  for (QAction* menu : window->menuBar()->actions())
    for (QAction* action : menu->menu()->actions())
      if (action->text() == "Open the recorded runs") entry = action;
  QVERIFY(entry && entry->menu());
  entry->menu()->actions().front()->trigger();
  RunLibrary* library = window->workspace()->library();
  QTRY_COMPARE(library->ticked().size(), size_t(4));
  QTRY_VERIFY(!library->loading());
  const QString where = QString::fromUtf8("recorded on an NVIDIA H");
  for (const Run* run : library->ticked()) QVERIFY(lane_numbers(*run).startsWith("recorded on an " + run->device));
  LibraryModel table(library);
  for (int row = 0; row < table.rowCount(); ++row) {
    QCOMPARE(table.index(row, LibraryModel::Status).data().toString(), QString("recorded"));
    QVERIFY(table.index(row, LibraryModel::Device).data().toString().startsWith("NVIDIA H"));
  }
  QStringList painted;
  for (const PaintedText& text : painted_texts(*window->findChild<RunsPanel*>()->view()->viewport())) painted << text.text;
  QVERIFY2(painted.join('\n').contains(where, Qt::CaseInsensitive), qPrintable(painted.join('\n')));
  QVERIFY(show_tab(*window, "Compare"));
  auto* compare = window->findChild<CompareTab*>();
  QTRY_VERIFY(compare->ready());
  QString said;
  for (const QLabel* label : compare->headline()->findChildren<QLabel*>()) said += label->text() + '\n';
  QVERIFY2(said.contains(where), qPrintable(said));
}

void ShippedRunsTest::nothingOfThemIsChanged() {
  RunLibrary library(runs());
  QSignalSpy failed(&library, &RunLibrary::failed);
  Run* run = library.open(shipped_run("mnist-arena"));
  library.setTicked(run, true);
  QVERIFY(!library.rename(run, "mine") && !library.setTags(run, {"mine"}) && !library.setNote(run, "mine"));
  QCOMPARE(failed.count(), 3);
  QVERIFY(failed.first().first().toString().contains("Save a copy"));
  run->setTimeMarks({{1000, "here"}});
  QVERIFY(library.remove(run));  // from the list
  QVERIFY(library.trash().empty() && library.runs().empty());
}

WARPSIGHT_QTEST(ShippedRunsTest)
#include "shipped_runs_test.moc"
