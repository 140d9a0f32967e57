// The real window, driven as a person would: a first start, training, steering in mid-run, closing, coming back.
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QDesktopServices>
#include <QTest>
#include <QUrl>
#include <nlohmann/json.hpp>

#include "app/charts/curve_pane.h"
#include "app/charts/plot.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/setup/field_row.h"
#include "app/text/units.h"
#include "app/pages/library/library_model.h"
#include "app/pages/library/runs_panel.h"
#include "app/widgets/segmented_row.h"
#include "app/pages/setup/setup_panel.h"
#include "app/pages/setup/spec_json_dialog.h"
#include "app/pages/weights/weights_panel.h"
#include "app/text/units.h"
#include "app/pages/live/live_page.h"
#include "app/window/lesson_runner.h"
#include "app/window/side_rail.h"
#include "app/window/start_page.h"
#include "app/window/notice_bar.h"
#include "app/window/status_line.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "app/window/window_layout.h"
#include "app/workspace/shipped_runs.h"
#include "engine/devices/devices.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class WindowTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  static void click(QAbstractButton* button) { QTest::mouseClick(button, Qt::LeftButton); }
  QUrl opened_;

 public slots:
  void takeUrl(const QUrl& url) { opened_ = url; }  // instead of the desktop

 private slots:
  void initTestCase();
  void cleanup();
  void firstStartOffersLessons();
  void theTraceBoxHoldsWindowsAndCounters();
  void everyChoiceCanBeToggled();
  void jsonRoundTrips();
  void trainsIrisToTheEnd();
  void setupLeavesItsWidthToPagesOfResults();
  void setupIsOpenWhereAPersonTrains();
  void greyTabsSayWhatTheyNeed();
  void aPictureWaitsForTheAnswer();
  void aLessonDrawsItsConclusion();
  void aLessonAsksWhileItTrains();
  void noticesMoveNothing();
  void noticesCoverNoControls();
  void openedFilesComeUpAlone();
  void allProblemsOfAnOpenStandInOneList();
  void theNetworkIsShownAtWork();
  void windowsFitTheirScreens();
  void pauseStepResumeStop();
  void changesInMidRunAreMarked();
  void theTipOfARunListsItsChanges();
  void theRunJustTrainedIsShown();
  void docksHaveTheirWidths();
  void aBusyMachineIsSaid();
  void whatIsFixedBeginsANewRun();
  void cursorIsShared();
  void closeInMidRunAsksAndKeepsTheRun();
  void aWrittenFileCanBeOpened();
  void weightsOutliveTheRun();
  void unreadableFilesAreSaid();
  void layoutComesBack();
  void bothThemes();
  void theFirstPageNeedsNoScrolling();
  void oneBlueButton();
};

void WindowTest::initTestCase() { moveIn(); }

void WindowTest::cleanup() { clear(); }

void WindowTest::firstStartOffersLessons() {
  auto window = open();
  QVERIFY(window->startPage()->isVisible());
  QTRY_VERIFY(window->workspace()->device()->info());
  const bool cuda = window->workspace()->device()->info()->cuda;
  QCOMPARE(window->startPage()->cards().size(), lessons(cuda).size());
  QVERIFY(lessons(cuda).size() >= 3);
  QCOMPARE(window->topBar()->train()->text(), QString("Train"));
  QVERIFY(!window->topBar()->stop()->isEnabled());
}

// Each value of each segmented choice: a click either chooses it, or leaves the choice and the reason is there to read.
void WindowTest::everyChoiceCanBeToggled() {
  auto window = open();
  QTRY_VERIFY(window->statusLine()->text().startsWith("Ready"));
  int chosen = 0, blocked = 0;
  for (const ws::Field& field : ws::fields()) {
    SegmentedRow* row = window->findChild<SetupPanel*>()->row(field.key)->findChild<SegmentedRow*>();
    if (!row) continue;
    for (Segment* segment : row->segments()) {
      segment->click();
      const QString now = QString::fromStdString(ws::field_text(window->workspace()->choices()->spec(), field.key));
      if (segment->blocked()) {
        QVERIFY2(segment->accessibleDescription() != segment->explanation(), qPrintable(segment->accessibleName()));
        QVERIFY(now != segment->value());
        ++blocked;
      } else {
        QCOMPARE(now, segment->value());
        QVERIFY(!ws::why_invalid(window->workspace()->choices()->spec(), ws::device_info().cuda));
        ++chosen;
      }
    }
    window->workspace()->choices()->setSpec(ws::RunSpec{});
  }
  QVERIFY2(chosen > 30, qPrintable(QString::number(chosen)));
  QVERIFY(blocked > 0);
}

void WindowTest::jsonRoundTrips() {
  ws::RunSpec spec;
  spec.model.hidden = {64, 32};
  spec.train.lr = 0.125;
  SpecJsonDialog dialog(spec);
  QVERIFY(dialog.spec() == spec);
  dialog.editor()->setPlainText(dialog.editor()->toPlainText().replace("0.125", "0.5"));
  QCOMPARE(dialog.spec().train.lr, 0.5);
  dialog.editor()->setPlainText("{\"train\": {\"lr\": \"no\"}}");
  QCOMPARE(dialog.spec().train.lr, 0.5);  // what can be read stays
}

void WindowTest::trainsIrisToTheEnd() {
  auto window = open();
  iris(*window, 30);
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  QElapsedTimer clock;
  clock.start();
  click(window->topBar()->train());
  Run* run = window->workspace()->session()->run();
  QVERIFY(run);
  QTRY_VERIFY(!run->steps.empty());
  qInfo("first step shown after %lld ms", clock.elapsed());
  QTRY_COMPARE(ended.count(), 1);
  QVERIFY(run->summary->status == ws::RunStatus::Finished);
  QCOMPARE(int64_t(run->steps.size()), run->summary->steps);
  QVERIFY(run->steps.back().loss < run->steps.front().loss);
  QVERIFY(!run->evals.empty());
  QCOMPARE(run->slot, 0);
  QVERIFY(window->findChild<LivePage*>()->isVisible());
  QVERIFY(run->trace.span_count() > 0);
  QVERIFY(run->split.wall_us > 0);
  double parts = 0;
  for (const SplitPart& part : run->split.parts) parts += part.us;
  QVERIFY(std::abs(parts - run->split.wall_us) < 1e-6 * run->split.wall_us + 1e-9);
  QTRY_VERIFY(!window->findChild<LivePage*>()->loss()->dirty());
  QVERIFY(window->findChild<LivePage*>()->loss()->plot()->graphCount() >= 2);
}

// Setup has no use beside Compare or Kernels: they get its width, until a person opens it there.
void WindowTest::setupLeavesItsWidthToPagesOfResults() {
  auto window = open();
  window->resize(1600, 972);
  const auto buttons = window->findChildren<RailButton*>();
  RailButton* setup = *std::ranges::find(buttons, QString("Setup"), &RailButton::text);
  const auto show = [&window](const QString& name) { window->tabs()->setCurrentIndex(window->tabStrip()->pageNamed(name)); };
  QVERIFY2(!setup->isChecked(), "the start page stands alone");
  setup->click();
  for (const char* name : {"Compare", "Kernel times", "Memory", "All runs"}) {
    show(name);
    QVERIFY2(!setup->isChecked(), name);
  }
  show("Overview");
  QVERIFY(setup->isChecked());
  show("Compare");
  setup->click();
  show("Overview"), show("Compare");
  QVERIFY2(setup->isChecked(), "as the person left it there");
}

// Beside the start page and opened recordings Setup begins closed. A training opens it; a person's own choice wins.
void WindowTest::setupIsOpenWhereAPersonTrains() {
  auto window = open();
  const auto setup = [&window] {
    const auto buttons = window->findChildren<RailButton*>();
    return *std::ranges::find_if(buttons, [](const RailButton* button) { return button->text() == "Setup" || button->text() == "Program"; });
  };
  QVERIFY(!setup()->isChecked());
  window->openFile(shipped_runs().front());
  QVERIFY(!setup()->isChecked());
  window->workspace()->library()->tickOnly({});
  QVERIFY(!setup()->isChecked());
  iris(*window, 2);
  window->train();
  QVERIFY(setup()->isChecked());
  QTRY_VERIFY(!window->workspace()->session()->busy());
  setup()->click();
  window->workspace()->library()->tickOnly({});
  QVERIFY2(!setup()->isChecked(), "as the person left it");
  window->windowLayout()->setKeep(true);
  QVERIFY(window->close());
  window = open();
  window->windowLayout()->restore();
  QVERIFY(!setup()->isChecked());
  setup()->click();
  window->openFile(shipped_runs().front());
  QVERIFY(setup()->isChecked());
  QSettings().clear();
}

void WindowTest::greyTabsSayWhatTheyNeed() {
  auto window = open();
  window->openFile(shipped_runs().front());
  const QTabBar* groups = window->tabStrip()->groups();
  for (int tab = 0; tab < groups->count(); ++tab) {
    if (groups->tabText(tab) != "Ranks") continue;
    QVERIFY(!groups->isTabEnabled(tab));
    QVERIFY2(groups->tabToolTip(tab).endsWith("It needs a run of several ranks."), qPrintable(groups->tabToolTip(tab)));
    QVERIFY(groups->accessibleTabName(tab).endsWith("It needs a run of several ranks."));
  }
}

// A picture does not show the answer before a person has chosen one.
void WindowTest::aPictureWaitsForTheAnswer() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  const auto offered = lessons(window->workspace()->device()->info()->cuda);
  StartCard* card = window->startPage()->cards()[size_t(std::ranges::find(offered, QString("weights"), &Lesson::name) - offered.begin())];
  const auto names_curves = [card] { return std::ranges::count(painted_texts(*card), QString("zeros"), &PaintedText::text) > 0; };
  QVERIFY(!names_curves());
  card->answers()[0]->setChecked(true);
  QVERIFY(names_curves());
}

// It ends on its chart with one sentence and one thing to try next.
void WindowTest::aLessonDrawsItsConclusion() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  const auto offered = lessons(window->workspace()->device()->info()->cuda);
  int hidden = 0;
  while (hidden < int(offered.size()) && offered[size_t(hidden)]->name != "hidden") ++hidden;
  QVERIFY(hidden < int(offered.size()));
  StartCard* card = window->startPage()->cards()[size_t(hidden)];
  QTRY_VERIFY(card->button()->isVisible());
  QCOMPARE(card->expected(), -1);
  QCOMPARE(card->answers().size(), size_t(offered[size_t(hidden)]->answers.size()));
  click(card->answers()[2]);  // what do you expect?
  QCOMPARE(card->expected(), 2);
  TrainingSession* session = window->workspace()->session();
  click(card->button());
  QTRY_COMPARE(window->notice()->text(), QString("You expect: more than 90 %."));
  // It can be watched, and the person may choose another speed. The lesson keeps it.
  QCOMPARE(session->speed(), TrainSpeed::Slow);
  QVERIFY2(session->slowRate() > 100, "some seconds a run");
  QTRY_VERIFY(session->run()->steps.size() > 20);
  QVERIFY(session->busy());
  session->setSpeed(TrainSpeed::Full);
  QTRY_VERIFY2(window->notice()->text().contains("Without a hidden layer"), qPrintable(window->notice()->text()));
  QVERIFY2(window->notice()->text().startsWith("You guessed more than 90 %. It is under 65 %."), qPrintable(window->notice()->text()));
  QVERIFY2(window->notice()->geometry().bottom() < window->statusLine()->geometry().top(), "the status line stays in view");
  QCOMPARE(window->tabs()->currentIndex(), 0);
  QVERIFY(window->findChild<LivePage*>()->isVisible());
  // The boundaries of both runs, with their names.
  const NetworkPane* network = window->findChild<LivePage*>()->network();
  QTRY_VERIFY(network->baselinePlane()->isVisible() && network->baselinePlane()->hasContent());
  QVERIFY(network->views()[0]->isVisible());
  QVERIFY2(network->views()[0]->accessibleName().endsWith("two hidden layers"), qPrintable(network->views()[0]->accessibleName()));
  QVERIFY(network->baselinePlane()->accessibleName().endsWith("no hidden layer"));
  const auto runs = window->workspace()->library()->ticked();
  QCOMPARE(runs.size(), size_t(2));
  QVERIFY(runs[1]->summary->test_accuracy > runs[0]->summary->test_accuracy + 0.2);  // the last one is current
  const QString said = window->notice()->text();
  for (const Run* run : runs)
    QVERIFY2(said.contains(fixed_text(run->summary->test_accuracy * 100, 1) + " %"), qPrintable(said));
  QCOMPARE(window->notice()->actions().size(), size_t(1));
  QVERIFY(window->notice()->actions()[0]->text().startsWith("Try next"));
  click(window->notice()->actions()[0]);
  QVERIFY(window->notice()->text().isEmpty());
  QTRY_VERIFY(window->workspace()->session()->busy());
  QCOMPARE(window->workspace()->library()->ticked(), (std::vector{runs[1], window->workspace()->session()->run()}));
  QCOMPARE(session->speed(), TrainSpeed::Full);  // as the person chose it in this lesson
  session->stop();
  QTRY_VERIFY(!session->busy());
  session->setSpeed(TrainSpeed::Slow);
  window->notice()->dismiss();
  window->lessons()->start(hidden);
  QCOMPARE(session->speed(), TrainSpeed::Full);
  // What was chosen outside of the lesson, also if the stop comes when a run has just ended.
  const auto ended = [session] {
    session->stop();
    return session->speed() == TrainSpeed::Slow;
  };
  QTRY_VERIFY_WITH_TIMEOUT(ended(), 20'000);
  QTRY_VERIFY(!session->busy());
  session->setSpeed(TrainSpeed::Full);
}

// The one of four initial weights asks while it trains.
void WindowTest::aLessonAsksWhileItTrains() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  const auto offered = lessons(window->workspace()->device()->info()->cuda);
  int weights = 0;
  while (offered[size_t(weights)]->name != "weights") ++weights;
  window->workspace()->session()->setSpeed(TrainSpeed::Full);
  window->lessons()->start(weights);
  QTRY_VERIFY2(window->notice()->text().contains(offered[size_t(weights)]->question), qPrintable(window->notice()->text()));
  QCOMPARE(window->notice()->actions().size(), size_t(offered[size_t(weights)]->answers.size()));
  QTRY_VERIFY(window->notice()->text().contains("learn best") || window->notice()->text().contains("within noise"));
  QCOMPARE(window->notice()->actions().size(), size_t(1));
}

void WindowTest::pauseStepResumeStop() {
  auto window = open();
  iris(*window, 1'000'000);
  TopBar* bar = window->topBar();
  click(bar->train());
  Run* run = window->workspace()->session()->run();
  QTRY_VERIFY(run->progress && run->progress->step > 10);
  click(bar->train());
  QVERIFY(window->workspace()->session()->paused());
  QCOMPARE(bar->train()->text(), QString("Resume"));
  QTRY_VERIFY(run->progress->paused);  // what was under way has arrived
  const size_t held = run->steps.size();
  QTest::qWait(200);
  QCOMPARE(run->steps.size(), held);
  click(bar->step());
  QTRY_COMPARE(run->steps.size(), held + 1);
  click(bar->train());
  QTRY_VERIFY(run->steps.size() > held + 10);
  click(bar->stop());
  QTRY_VERIFY(!window->workspace()->session()->busy());
  QVERIFY(run->summary->status == ws::RunStatus::Stopped);
  QCOMPARE(bar->train()->text(), QString("Train"));
}

void WindowTest::changesInMidRunAreMarked() {
  auto window = open();
  iris(*window, 1'000'000);
  click(window->topBar()->train());
  Run* run = window->workspace()->session()->run();
  QTRY_VERIFY(run->progress && run->progress->step > 10);
  window->workspace()->choices()->set("train.lr", "0.01");
  auto* apply = window->findChild<SetupPanel*>()->findChildren<QPushButton*>().last();
  for (QPushButton* button : window->findChild<SetupPanel*>()->findChildren<QPushButton*>())
    if (button->text() == "Apply") apply = button;
  QVERIFY(apply->isEnabled());
  QCOMPARE(window->findChild<SetupPanel*>()->message(), QString("Changes apply at the next step"));
  click(apply);
  QTRY_COMPARE(run->changes.size(), size_t(1));
  QCOMPARE(run->changes[0].key, std::string("train.lr"));
  QTRY_COMPARE(window->findChild<SetupPanel*>()->message(), QString("Same as the training run"));
  window->workspace()->choices()->set("exec.allocator", "direct");
  click(apply);
  QTRY_COMPARE(run->changes.size(), size_t(2));
  QVERIFY2(run->title.contains(QString::fromUtf8(" · direct from step")), qPrintable(run->title));
  window->workspace()->session()->stop();
  QTRY_VERIFY(!window->workspace()->session()->busy());
  const auto kept = ws::prof::read_run_summary(run->path.toStdString());
  QCOMPARE(QString::fromStdString(kept.name), run->title);
  // Every view asks for the choices that the run ended with, as it will when the run is opened again.
  QVERIFY(run->spec == ws::parse_spec(kept.spec));
  QCOMPARE(run->spec.exec.allocator, ws::Allocator::Direct);
  QVERIFY2(changes_text(*run).contains("direct"), qPrintable(changes_text(*run)));
  // Trained again, they are there from the first step, and the title does not speak of a later one.
  window->trainAgain();
  const Run* again = window->workspace()->session()->run();
  QVERIFY(again != run && again->spec == run->spec && again->changes.empty());
  QVERIFY2(!again->title.contains("from step"), qPrintable(again->title));
  window->workspace()->session()->stop();
  QTRY_VERIFY(!window->workspace()->session()->busy());
}

void WindowTest::theTipOfARunListsItsChanges() {
  ws::RunSpec after;
  after.exec.allocator = ws::Allocator::Direct, after.exec.sync = ws::SyncPolicy::EveryOp, after.train.lr = 0.25;
  auto window = open();
  auto* run = new Run;
  run->title = "changed", run->spec = after;
  window->workspace()->library()->adopt(run);
  RunsModel* runs = window->findChild<RunsPanel*>()->model();
  QVERIFY(runs->data(runs->indexOf(run), Qt::ToolTipRole).toString().startsWith(changes_between(plain_choices(after), after, kAllChanges)));
}

void WindowTest::theRunJustTrainedIsShown() {
  auto window = open();
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  const auto train = [&](int runs) {
    click(window->topBar()->train());
    return QTest::qWaitFor([&] { return ended.count() == runs; }, 60'000);
  };
  iris(*window, 40);
  QVERIFY(train(1));
  Run* first = window->workspace()->session()->run();
  window->workspace()->pick(first);
  window->workspace()->choices()->set("exec.allocator", "direct");
  QVERIFY(train(2));
  Run* second = window->workspace()->session()->run();
  QCOMPARE(second->title, QString::fromUtf8("Iris 4-5-3 · direct, 40 epochs"));
  QCOMPARE(window->workspace()->shownRun(), second);
  const QString line = window->statusLine()->text();
  for (const QString& part : {QString("step time "), QString(" A"), QString::fromUtf8("arena → direct")})
    QVERIFY2(line.contains(part), qPrintable(line));
  window->statusLine()->say({}, false);
  QCOMPARE(window->statusLine()->text(), QString("Ready"));  // the header says the rest
  for (const char* tab : {"Plan", "Kernel times", "Memory"}) {
    QVERIFY(show_tab(*window, tab));
    QVERIFY(window->topBar()->currentRun()->isVisible());
    QCOMPARE(window->topBar()->currentRun()->title(), second->title);
  }
  QVERIFY(show_tab(*window, "Overview"));
  // And one click compares it with the run before.
  QVERIFY2(window->notice()->text().contains(" A"), qPrintable(window->notice()->text()));
  QVERIFY2(window->notice()->text().startsWith("B: "), "another run may be shown meanwhile");
  QVERIFY(!window->notice()->problem());
  QCOMPARE(window->notice()->actions().size(), size_t(1));
  QCOMPARE(window->notice()->actions()[0]->text(), QString("Compare with A"));
  click(window->notice()->actions()[0]);
  auto* compare = window->findChild<CompareTab*>();
  QVERIFY(compare->isVisible() && window->notice()->text().isEmpty());
  QTRY_VERIFY(compare->ready());
  QCOMPARE(QString::fromStdString(compare->comparison().choices.at(0).to), QString("direct"));
  // A training that cannot begin leaves no run.
  window->workspace()->choices()->set("data.name", "csv");
  window->workspace()->choices()->set("data.path", "/no/such.csv");
  window->workspace()->choices()->set("data.label_column", "y");
  click(window->topBar()->train());
  QVERIFY(!window->workspace()->session()->busy());
  QCOMPARE(window->workspace()->library()->runs().size(), size_t{2});
  QCOMPARE(window->workspace()->shownRun(), second);
  window->workspace()->choices()->setSpec(second->spec);
  window->workspace()->choices()->set("exec.sync", "every-op");
  QVERIFY(train(3));
  QCOMPARE(window->workspace()->session()->run()->title, QString::fromUtf8("Iris 4-5-3 · direct, every-op, 40 epochs"));
}

void WindowTest::docksHaveTheirWidths() {
  for (const int width : {1600, 1920}) {
    auto window = std::make_unique<MainWindow>(runs());
    window->windowLayout()->setKeep(false);
    window->resize(width, 972);  // before it is shown, as at the first start
    window->show();
    auto* setup = window->findChild<SetupPanel*>();
    auto* list = window->findChild<RunsPanel*>();
    open_dock(*window, "Setup");
    QTRY_VERIFY2(setup->width() >= 312 && list->width() >= 296,
                 qPrintable(QString("%1, %2").arg(setup->width()).arg(list->width())));
    window->resize(width + 200, 972);
    settle(30);
    QVERIFY(setup->width() >= 312 && setup->width() < 350 && list->width() >= 296 && list->width() < 330);
  }
}

// A spread of half a step is no place for a confident number.
void WindowTest::aBusyMachineIsSaid() {
  auto window = open();
  Run run;
  const auto caption = [&](double p5, double p95) {
    run.step_time = {{100, 1}, p5, p95};
    window->topBar()->showRun(&run, false, false, 0);
    QStringList names;
    for (const NumberCell* cell : window->topBar()->findChildren<NumberCell*>()) names << cell->accessibleName() + ' ' + cell->accessibleDescription();
    return names.join('|');
  };
  const auto shows = [&](const char* spread) {
    return std::ranges::any_of(window->topBar()->findChildren<NumberCell*>(), [&](const NumberCell* cell) {
      return cell->accessibleDescription().contains(QString::fromUtf8(spread));
    });
  };
  QVERIFY2(!caption(98, 104).contains("machine busy"), qPrintable(caption(98, 104)));
  QVERIFY(!shows("98.0–104.0"));
  QVERIFY2(caption(80, 190).contains("machine busy"), qPrintable(caption(80, 190)));
  QVERIFY(std::ranges::any_of(window->topBar()->findChildren<NumberCell*>(), [](const NumberCell* cell) { return cell->toolTip().contains("190"); }));
}

void WindowTest::whatIsFixedBeginsANewRun() {
  auto window = open();
  iris(*window, 1'000'000);
  click(window->topBar()->train());
  Run* run = window->workspace()->session()->run();
  QTRY_VERIFY(run->progress && run->progress->step > 10);
  window->workspace()->choices()->set("model.init", "zeros");
  auto* setup = window->findChild<SetupPanel*>();
  QVERIFY2(setup->message().contains("cannot change while a run trains"), qPrintable(setup->message()));
  QPushButton* anew = nullptr;
  for (QPushButton* button : setup->findChildren<QPushButton*>())
    if (button->text().startsWith("Train anew")) anew = button;
  click(anew);
  QVERIFY2(setup->message().contains("stops the run in training"), qPrintable(setup->message()));
  QVERIFY(window->workspace()->session()->busy() && window->workspace()->session()->run() == run);
  click(anew);
  QTRY_VERIFY(window->workspace()->session()->run() != run && window->workspace()->session()->busy());
  QVERIFY(run->summary->status == ws::RunStatus::Stopped);
  QVERIFY(window->workspace()->session()->run()->spec.model.init == ws::Init::Zeros);
  window->workspace()->session()->stop();
  QTRY_VERIFY(!window->workspace()->session()->busy());
}

void WindowTest::cursorIsShared() {
  auto window = open();
  iris(*window, 20);
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  click(window->topBar()->train());
  QTRY_COMPARE(ended.count(), 1);
  Run* run = window->workspace()->session()->run();
  const double middle = run->steps[run->steps.size() / 2].step;
  emit window->findChild<LivePage*>()->accuracy()->cursorMoved(middle);
  QVERIFY(window->workspace()->cursor()->cursor().has_value());
  QVERIFY(std::abs(run->stepAt(*window->workspace()->cursor()->cursor()) - middle) <= 1);
}

void WindowTest::aWrittenFileCanBeOpened() {
  auto window = open();
  iris(*window, 2);
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  window->train();
  QTRY_COMPARE(ended.count(), 1);
  QDesktopServices::setUrlHandler("file", this, "takeUrl");
  const QString path = home_.path() + "/copy.wsrun";
  window->saveCopyTo(path);
  QTRY_VERIFY(window->notice()->actions().size() == 2);
  QVERIFY2(window->notice()->text().contains("copy.wsrun") && window->notice()->text().contains(QFileInfo(home_.path()).fileName()), qPrintable(window->notice()->text()));
  window->notice()->actions()[0]->click();
  QCOMPARE(opened_.toLocalFile(), path);
  QVERIFY(window->notice()->text().isEmpty());
  QDesktopServices::unsetUrlHandler("file");
}

void WindowTest::closeInMidRunAsksAndKeepsTheRun() {
  auto window = open();
  iris(*window, 1'000'000);
  click(window->topBar()->train());
  Run* run = window->workspace()->session()->run();
  QTRY_VERIFY(run->progress && run->progress->step > 10);
  answer("Keep training");
  QVERIFY(!window->close());
  QVERIFY(window->workspace()->session()->busy());
  answer("Stop and close");
  window->close();
  QTRY_VERIFY(!window->isVisible());
  QVERIFY(!window->workspace()->session()->busy());
  QVERIFY(run->summary->status == ws::RunStatus::Stopped);
}

void WindowTest::weightsOutliveTheRun() {
  WeightsPanel panel([](const Run&, auto) { return false; });
  panel.show();
  Run imported;
  imported.origin = RunOrigin::Imported;
  panel.setRun(&imported);
  const auto shows = [&panel](const QString& words) {
    return std::ranges::any_of(panel.findChildren<QLabel*>(), [&](const QLabel* label) { return label->isVisible() && label->text().contains(words); });
  };
  QVERIFY(shows("no weights"));
  QString path;
  {
    auto window = open();
    iris(*window, 5);
    QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
    click(window->topBar()->train());
    QTRY_COMPARE(ended.count(), 1);
    path = window->workspace()->session()->run()->path;
    iris(*window, 1'000'000);
    click(window->topBar()->train());
    QTRY_VERIFY(
        window->workspace()->session()->run()->progress && window->workspace()->session()->run()->progress->step > 10);
    window->workspace()->session()->stop();
    QTRY_COMPARE(ended.count(), 2);
    QVERIFY(
        QFileInfo::exists(weights_path(window->workspace()->session()->run()->path)));  // a stopped one keeps them too
  }
  auto window = open();
  Run* run = window->workspace()->library()->byPath(path);
  QVERIFY(run);
  panel.setRun(run);
  QTRY_VERIFY(panel.snapshot() != nullptr);
  QCOMPARE(panel.snapshot()->step, run->summary->steps);
  QCOMPARE(panel.snapshot()->layers.front().name, std::string("W1"));
  QVERIFY(panel.snapshot()->layers.front().now != panel.snapshot()->layers.front().first);
  QVERIFY(panel.snapshot()->confusion_rows > 0);
  panel.setRun(nullptr);
  QVERIFY(QFile::remove(weights_path(path)));
  panel.setRun(run);
  QTRY_VERIFY(shows("No weights were saved"));
}

void WindowTest::unreadableFilesAreSaid() {
  auto window = open();
  const QString path = home_.path() + "/broken.wsrun";
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("this is no run file");
  file.close();
  window->openFile(path);
  QVERIFY2(window->statusLine()->text().contains("broken.wsrun"), qPrintable(window->statusLine()->text()));
  window->openFile(home_.path() + "/picture.bmp");
  QVERIFY(window->statusLine()->text().contains("picture.bmp"));
  QVERIFY(window->workspace()->library()->runs().empty());
}

// With the least size: since Qt 6.8 no window comes back larger than the screen, and there is none here of the usual size.
void WindowTest::layoutComesBack() {
  constexpr QSize kLeast(1100, 680);
  {
    MainWindow window(runs());
    window.show();
    window.workspace()->choices()->set("train.lr", "0.375");
    QVERIFY(window.width() > kLeast.width());
    window.resize(kLeast);
    QVERIFY(window.close());
  }
  MainWindow window(runs());
  window.windowLayout()->restore();
  QCOMPARE(window.workspace()->choices()->spec().train.lr, 0.375);
  QCOMPARE(window.size(), kLeast);
}

// What can be had beside any level is ticked, the level stays; both are remembered.
void WindowTest::theTraceBoxHoldsWindowsAndCounters() {
  auto window = open();
  TopBar* bar = window->topBar();
  QComboBox* box = nullptr;
  for (QComboBox* each : bar->findChildren<QComboBox*>())
    if (each->accessibleName() == "Trace level") box = each;
  QVERIFY(box);
  const auto pick = [box](const QString& part) {
    for (int i = 0; i < box->count(); ++i)
      if (box->itemText(i).contains(part)) {
        box->setCurrentIndex(i);
        return emit box->activated(i);
      }
    QFAIL(qPrintable(part));
  };
  pick("graphs");
  QCOMPARE(window->workspace()->choices()->traceExtras().node_every, 0);
  pick("Hardware counters");
  QCOMPARE(box->currentText(), "Trace graphs");
  QVERIFY(window->workspace()->choices()->traceExtras().counters);
  pick("X-ray");
  QCOMPARE(box->currentText(), "Trace graphs");
  QVERIFY(window->workspace()->choices()->traceExtras().xray && window->workspace()->choices()->traceExtras().counters);
  pick("20 of 2 000");
  QCOMPARE(window->workspace()->choices()->traceLevel(), ws::prof::TraceLevel::Graph);
  QCOMPARE(window->workspace()->choices()->traceExtras().node_window, 20);
  QCOMPARE(window->workspace()->choices()->traceExtras().node_every, 2000);
  QVERIFY(window->workspace()->choices()->traceExtras().counters);
  Choices choices;
  TopBar other(&choices);
  other.setTraceChoices(bar->traceChoices());
  QVERIFY(choices.traceExtras().counters && choices.traceExtras().xray);
  QCOMPARE(choices.traceExtras().node_window, 20);
  pick("Hardware counters");
  pick("off");
  QVERIFY(!window->workspace()->choices()->traceExtras().counters);
  QCOMPARE(window->workspace()->choices()->traceLevel(), ws::prof::TraceLevel::Off);
  // A run that starts with them says what came of it.
  pick("steps only");
  pick("Hardware counters");
  window->workspace()->choices()->set("data.name", "iris");
  window->workspace()->choices()->set("train.epochs", "5");
  bar->train()->click();
  QTRY_VERIFY(window->workspace()->session()->run() && window->workspace()->session()->run()->summary);
  QVERIFY(window->workspace()->session()->run()->counters_note.contains("ardware counters"));
  QVERIFY(window->workspace()->session()->run()->xray_note.contains("X-ray"));
}

void WindowTest::noticesMoveNothing() {
  auto window = open();
  const auto places = [&] {
    QList<QRect> all;
    for (QWidget* w : window->findChildren<QWidget*>())
      if (w->isVisible() && w != window->notice() && !window->notice()->isAncestorOf(w)) all << w->geometry();
    return all;
  };
  QTRY_VERIFY(window->workspace()->device()->info());
  settle(30);
  const auto before = places();
  window->notice()->showText("A sentence that says what went wrong, at some length, so that it may need a second line.");
  settle(30);
  QVERIFY(window->notice()->isVisible());
  QCOMPARE(places(), before);
  // No tab either, with any page in front.
  for (const QSize size : {QSize(1366, 768), QSize(1600, 972), QSize(1100, 680)}) {
    window->resize(size);
    window->tabs()->setCurrentIndex(1);
    settle(30);
    const QTabBar* groups = window->tabStrip()->groups();
    std::vector<QPoint> tabs;
    const auto place = [&](int i) { return groups->mapTo(window.get(), groups->tabRect(i).topLeft()); };
    for (int i = 0; i < groups->count(); ++i) tabs.push_back(place(i));
    QVERIFY(groups->tabRect(groups->count() - 1).right() < groups->width());
    for (int tab = 0; tab < window->tabs()->count(); ++tab) {
      window->tabs()->setCurrentIndex(tab);
      settle(30);
      for (int i = 0; i < groups->count(); ++i) QCOMPARE(place(i), tabs[size_t(i)]);
    }
  }
}

// One line stands over the status line, more lines over the pages: never over a dock.
void WindowTest::noticesCoverNoControls() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  window->openFile(QStringLiteral(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-arena.wsrun"));
  QTRY_VERIFY(window->findChild<LivePage*>()->isVisible());
  for (RailButton* dock : window->findChildren<RailButton*>())
    if (dock->text() == "Setup") dock->setChecked(true);
  for (const QSize size : {QSize(1366, 768), QSize(1600, 972), QSize(1920, 1080)}) {
    window->resize(size);
    settle(30);
    const auto covered = [&] {
      const QRect notice(window->notice()->mapToGlobal(QPoint()), window->notice()->size());
      QStringList names;
      for (QWidget* w : window->findChildren<QWidget*>()) {
        const bool matters = qobject_cast<QAbstractButton*>(w) || qobject_cast<QLineEdit*>(w) || qobject_cast<QLabel*>(w);
        QRect seen(w->mapToGlobal(QPoint()), w->size());  // without what its page has scrolled away
        for (const QWidget* around = w->parentWidget(); around; around = around->parentWidget())
          seen &= QRect(around->mapToGlobal(QPoint()), around->size());
        if (matters && w->isVisible() && !window->notice()->isAncestorOf(w) && notice.intersects(seen) && !w->visibleRegion().isEmpty())
          names << w->metaObject()->className() + QString(" ") + w->accessibleName();
      }
      return names;
    };
    window->notice()->conclude("arena is 1.87× faster than direct. Direct calls the driver's allocator 30 times per step, "
                               "the arena 0 times.", {{"Try next: arena, fused, no sync", [] {}}});
    settle(30);
    const QRect concluded(window->notice()->mapToGlobal(QPoint()), window->notice()->size());
    QCOMPARE(concluded.bottom() + 1, window->statusLine()->mapToGlobal(QPoint()).y());  // the status line stays in view
    QTRY_VERIFY2(covered().isEmpty(), qPrintable(covered().join(", ")));
    const LivePage* live = window->findChild<LivePage*>();
    QTRY_VERIFY2(live->mapToGlobal(QPoint(0, live->height())).y() <= concluded.top(), "the timeline gets shorter");
    window->notice()->showText("one.wsrun: not a run.\ntwo.json: not a trace.\nthree.csv: no such file.");
    settle(30);
    auto* setup = window->findChild<SetupPanel*>();
    const QRect notice(window->notice()->mapToGlobal(QPoint()), window->notice()->size());
    QVERIFY(!notice.intersects(QRect(setup->mapToGlobal(QPoint()), setup->size())));
    QVERIFY(notice.height() > window->statusLine()->height());
    window->notice()->dismiss();
  }
}

void WindowTest::openedFilesComeUpAlone() {
  auto window = open();
  iris(*window, 5);
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  for (int i = 0; i < 3; ++i) {
    window->train();
    QTRY_COMPARE(ended.count(), i + 1);
  }
  QCOMPARE(window->workspace()->library()->ticked().size(), size_t(2));  // the newest and the one before it
  const QString path = window->workspace()->session()->run()->path;
  window->tabs()->setCurrentIndex(2);
  window->openFile(path);
  QCOMPARE(window->workspace()->library()->ticked(), std::vector<Run*>{window->workspace()->library()->byPath(path)});
  QCOMPARE(window->workspace()->shownRun(), window->workspace()->library()->byPath(path));
  QCOMPARE(window->tabs()->currentIndex(), 0);
  QStringList all;
  for (const Run* run : window->workspace()->library()->runs()) all << run->path;
  window->openFiles(all);
  QCOMPARE(window->workspace()->library()->ticked().size(), size_t(3));
  QStringList recent;
  for (const QAction* file : window->menuBar()->actions())
    for (const QAction* entry : file->menu()->actions())
      if (entry->text() == "Open recent")
        for (const QAction* each : entry->menu()->actions()) recent << each->toolTip();
  QCOMPARE(recent.size(), 3);
  QVERIFY(recent.contains(path));
}

void WindowTest::allProblemsOfAnOpenStandInOneList() {
  auto window = open();
  QStringList paths;
  for (const char* name : {"one.wsrun", "two.wsrun", "three.bmp", "four.json.gz"}) {
    paths << home_.path() + "/" + name;
    QFile file(paths.last());
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("this is none");
  }
  window->openFiles(paths);
  QTRY_VERIFY2(window->notice()->text().contains("four"), qPrintable(window->notice()->text()));
  for (const char* name : {"one.wsrun", "two.wsrun", "three.bmp"})
    QVERIFY2(window->notice()->text().contains(name), qPrintable(window->notice()->text()));
  QCOMPARE(window->notice()->text().split('\n').size(), 4);
}

void WindowTest::theNetworkIsShownAtWork() {
  auto window = open();
  window->workspace()->choices()->set("data.name", "spirals");
  window->workspace()->choices()->set("train.epochs", "1000000");
  window->workspace()->choices()->set("exec.device", "cpu");
  window->train();
  auto* live = window->findChild<LivePage*>();
  LearnedView* plane = live->network()->views()[0];
  QTRY_VERIFY(plane->isVisible() && plane->hasContent());
  const QImage before = plane->grab().toImage();
  QTRY_VERIFY(plane->grab().toImage() != before);  // it moves
  const int loss = live->loss()->mapTo(live, QPoint()).x(), network = live->network()->mapTo(live, QPoint()).x();
  QVERIFY(loss < network);
  click(live->network()->swapButton());
  settle(30);
  QVERIFY(live->network()->mapTo(live, QPoint()).x() < live->loss()->mapTo(live, QPoint()).x());
  window->workspace()->session()->stop();
  QTRY_VERIFY(!window->workspace()->session()->busy());
}

void WindowTest::windowsFitTheirScreens() {
  for (const QSize screen : {QSize(1366, 768), QSize(1280, 720), QSize(1920, 1080), QSize(3840, 2160)}) {
    const QSize size = fitting({1600, 960}, screen), least = fitting({1100, 680}, screen);
    QVERIFY(size.width() <= screen.width() && size.height() < screen.height());
    QVERIFY(least.width() <= size.width() && least.height() <= size.height());
  }
  QCOMPARE(fitting({1600, 960}, {3840, 2160}), QSize(1600, 960));
}

// All icons of both themes at once.
void WindowTest::bothThemes() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  const auto ink = [](const QAbstractButton* button) {
    const QImage icon = button->icon().pixmap(16, 16).toImage();
    QColor darkest(Qt::white);
    for (int y = 0; y < icon.height(); ++y)
      for (int x = 0; x < icon.width(); ++x)
        if (const QColor c = icon.pixelColor(x, y); c.alpha() > 200 && c.lightness() < darkest.lightness()) darkest = c;
    return darkest.lightness();
  };
  const auto icons = [&](bool dark) {
    for (const QAbstractButton* button : window->findChildren<QAbstractButton*>())
      if (!button->icon().isNull() && button->isVisible() && !button->property("primary").toBool())
        QVERIFY2((ink(button) > 100) == dark, qPrintable(button->accessibleName() + button->text()));
  };
  icons(true);
  window->toggleTheme();
  icons(false);
  QVERIFY(!theme().dark());
  QCOMPARE(QApplication::palette().color(QPalette::Base), theme().base);
  window->toggleTheme();
  QVERIFY(theme().dark());
}

void WindowTest::theFirstPageNeedsNoScrolling() {
  auto window = open();
  window->resize(1366, 768);
  QTRY_VERIFY(window->workspace()->device()->info());
  const auto* scroll = window->startPage()->findChild<QScrollArea*>();
  QTRY_COMPARE(scroll->verticalScrollBar()->maximum(), 0);
  QVERIFY2(!window->topBar()->train()->hasFocus(), "Space does not train");
}

// Train looks the same on every page and for every run, and no other button is blue.
void WindowTest::oneBlueButton() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  const QPushButton* train = window->topBar()->train();
  const QRect place = train->geometry();
  const auto blue = [&] {
    QStringList names;
    for (const QPushButton* button : window->findChildren<QPushButton*>())
      if (button->isVisible() && button->window() == window.get() && button->property("primary").toBool()) names << button->text();
    return names;
  };
  for (const char* page : {"Overview", "Memory", "Lab", "Combinations", "Own kernel", "Query"}) {
    QVERIFY(show_tab(*window, page));
    QTRY_COMPARE(blue(), QStringList("Train"));
    QCOMPARE(train->geometry(), place);
  }
  window->openFile(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-cnn.wsrun");
  QTRY_COMPARE(train->text(), QString("Record"));
  QVERIFY(show_tab(*window, "Kernel times"));
  QTRY_COMPARE(blue(), QStringList("Record"));
  QCOMPARE(train->geometry(), place);
  QVERIFY(show_tab(*window, "Lab"));
  QTRY_COMPARE(blue(), QStringList("Record"));
}

WARPSIGHT_QTEST(WindowTest)
#include "window_test.moc"
