// What is behind the window, without a widget: choices, trainings, the list of runs, and what is said about them.
#include "app/workspace/workspace.h"

#include <QCoreApplication>
#include <QDir>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "app/workspace/closing_line.h"
#include "app/workspace/lessons.h"
#include "app/workspace/shipped_runs.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class WorkspaceTest : public QObject {
  Q_OBJECT
 private:
  void open() {
    workspace_.reset();
    workspace_ = std::make_unique<Workspace>(home_.path() + "/runs");
    workspace_->library()->refresh();
  }
  Workspace& workspace() { return *workspace_; }
  Run* train() { return workspace().train(workspace().choices()->spec()); }
  void choose(const char* preset, const std::map<QString, QString>& choices) {
    QVERIFY(workspace().choices()->usePreset(preset));
    workspace().choices()->set("exec.device", "cpu");
    for (const auto& [key, value] : choices) workspace().choices()->set(key, value);
  }

  QTemporaryDir home_;
  std::unique_ptr<Workspace> workspace_;

 private slots:
  void initTestCase() { qputenv("XDG_CONFIG_HOME", (home_.path() + "/config").toUtf8()); }
  void init() { open(); }
  void cleanup() {
    workspace_->session()->stopAndWait(10'000);
    workspace_.reset();
    QDir(home_.path() + "/runs").removeRecursively();
    QSettings().clear();
  }
  void wrongNumbersAreRefused();
  void trainsMnistOnTheCpu();
  void aStartTrainsItsRuns();
  void runsOfOneTitleAreDistinct();
  void manyChangesAreCounted();
  void aBusyMachineIsSaidAtTheEnd();
  void thePickedRunStays();
  void keptRunsComeBack();
};

void WorkspaceTest::wrongNumbersAreRefused() {
  Choices& choices = *workspace().choices();
  QSignalSpy said(&choices, &Choices::said);
  const double before = choices.spec().train.lr;
  for (const char* wrong : {"-1", "fast", "1e999", ""}) {
    choices.set("train.lr", wrong);
    QCOMPARE(choices.spec().train.lr, before);
    QVERIFY(said.takeFirst().front().toString().startsWith("train.lr:"));
  }
  choices.set("train.lr", "0.25");
  QCOMPARE(choices.spec().train.lr, 0.25);
  QVERIFY(said.isEmpty());
}

void WorkspaceTest::trainsMnistOnTheCpu() {
  choose("mnist", {{"data.limit", "2000"}, {"train.epochs", "2"}});
  QSignalSpy ended(workspace().session(), &TrainingSession::ended);
  const Run* run = train();
  QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 1, 90'000);
  QVERIFY2(run->summary->status == ws::RunStatus::Finished, run->summary->message.c_str());
  QVERIFY(run->summary->test_accuracy > 0.75);
}

void WorkspaceTest::aStartTrainsItsRuns() {
  auto requests = lessons(true)[0]->requests(false);
  QCOMPARE(requests.size(), size_t(2));
  for (StartRequest& request : requests) {
    QVERIFY(!ws::why_invalid(request.spec, false));
    request.spec.data.limit = 640;
    request.spec.train.epochs = 1;
  }
  QSignalSpy ended(workspace().session(), &TrainingSession::ended);
  workspace().session()->startAll(std::move(requests));
  QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 2, 90'000);
  QCOMPARE(workspace().library()->ticked().size(), size_t(2));
  for (bool cuda : {false, true})
    for (const Lesson* lesson : lessons(cuda)) {
      for (const StartRequest& request : lesson->requests(cuda)) QVERIFY(!ws::why_invalid(request.spec, cuda));
      QVERIFY(!ws::why_invalid(lesson->next(cuda).spec, cuda));
      QVERIFY(cuda || !lesson->needs_gpu || !shipped_runs_of(*lesson, cuda).isEmpty());
    }
}

void WorkspaceTest::runsOfOneTitleAreDistinct() {
  Run first, second, third, program;
  first.title = second.title = program.title = "mnist", third.title = "iris";
  program.origin = RunOrigin::Imported;
  second.spec.exec.allocator = ws::Allocator::Direct, second.spec.train.lr = 0.25;
  third.spec.train.batch = 7;
  const std::vector<const Run*> all{&first, &second, &third, &program};
  const QString as_first = title_among(first, all), as_second = title_among(second, all);
  QVERIFY2(as_first.startsWith(QString::fromUtf8("mnist · ")) && as_first.contains("0.05"), qPrintable(as_first));
  QVERIFY2(as_second.contains("direct") && as_second.contains("0.25"), qPrintable(as_second));
  QCOMPARE(title_among(third, all), QString("iris"));
  QCOMPARE(title_among(program, all), QString("mnist"));
  QCOMPARE(title_among(first, {&first}), QString("mnist"));
  Run eager, compiled;  // recordings of one script
  for (Run* run : {&eager, &compiled}) run->title = "gpt.py", run->origin = RunOrigin::Imported;
  eager.command = QStringList{"python3", "gpt.py", "--steps", "40"};
  compiled.command = QStringList{"python3", "gpt.py", "--compile", "--steps", "30"};
  QCOMPARE(title_among(eager, {&eager, &compiled}), QString("gpt.py · --steps 40"));
  QCOMPARE(title_among(compiled, {&eager, &compiled}), QString("gpt.py · --compile --steps 30"));
}

void WorkspaceTest::manyChangesAreCounted() {
  ws::RunSpec before, after;
  after.exec.allocator = ws::Allocator::Direct, after.exec.sync = ws::SyncPolicy::EveryOp, after.train.lr = 0.25;
  const QString arrow = QString::fromUtf8("→"), two = changes_between(before, after);
  QVERIFY2(two.count(arrow) == 2 && two.endsWith(" + 1 more"), qPrintable(two));
  QCOMPARE(changes_between(before, after, kAllChanges).count(arrow), 3);
  QVERIFY(changes_between(before, before).isEmpty());
}

void WorkspaceTest::aBusyMachineIsSaidAtTheEnd() {
  Run busy, quiet;
  busy.step_time = {{100, 1}, 80, 190};
  quiet.step_time = {{100, 1}, 98, 104};
  QVERIFY2(closing_line(busy, nullptr).contains("Something else used this machine"), qPrintable(closing_line(busy, nullptr)));
  QVERIFY2(closing_line(quiet, &busy).contains("Something else used this machine while "), qPrintable(closing_line(quiet, &busy)));
  QVERIFY(!closing_line(quiet, &quiet).contains("Something else"));
}

void WorkspaceTest::thePickedRunStays() {
  RunLibrary& library = *workspace().library();
  QSignalSpy ended(workspace().session(), &TrainingSession::ended);
  choose("iris", {{"train.epochs", "5"}});
  for (int i = 0; i < 2; ++i) {
    train();
    QTRY_COMPARE(ended.count(), i + 1);
  }
  Run *second = library.runs()[0], *first = library.runs()[1];
  QCOMPARE(workspace().shownRun(), second);
  workspace().pick(first);
  QVERIFY(library.setNote(second, "the list changes"));
  QCOMPARE(workspace().shownRun(), first);
  library.setTicked(first, false);
  QCOMPARE(workspace().shownRun(), second);
  library.setTicked(first, true);
  workspace().pick(first);
  QVERIFY(library.remove(first));
  QCOMPARE(workspace().shownRun(), second);
}

void WorkspaceTest::keptRunsComeBack() {
  choose("iris", {{"train.epochs", "10"}});
  QSignalSpy ended(workspace().session(), &TrainingSession::ended);
  const Run* trained = train();
  QTRY_COMPARE(ended.count(), 1);
  const size_t steps = trained->steps.size();
  QVERIFY2(QFileInfo::exists(trained->path), qPrintable(trained->path));
  open();
  QCOMPARE(workspace().library()->runs().size(), size_t(1));
  Run* run = workspace().library()->runs().front();
  QVERIFY(!run->loaded);
  workspace().library()->setTicked(run, true);
  QTRY_VERIFY(run->loaded);
  QCOMPARE(run->steps.size(), steps);
  QCOMPARE(run->spec.data.name, std::string("iris"));
  QVERIFY(run->trace.span_count() > 0);
}

const ws::test::InWindowTests in_window_tests("WorkspaceTest", ws::test::run_test<WorkspaceTest, QCoreApplication>);
#include "workspace_test.moc"
