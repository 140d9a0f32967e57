// A training on another machine, in the window: it looks and obeys like one here, over a line that is cut as well. The other
// machine is another folder behind a pipe.
#include <signal.h>

#include <QDirIterator>
#include <QFile>
#include <QLineEdit>
#include <QListWidget>
#include <QProcess>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <nlohmann/json.hpp>

#include "app/core/lab/recorded_lab.h"
#include "app/core/remote/remote_run.h"
#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/lab/lab_tab.h"
#include "app/pages/library/torch_job.h"
#include "app/window/connect_dialog.h"
#include "app/window/machine_actions.h"
#include "app/window/notice_bar.h"
#include "app/window/password_dialog.h"
#include "app/window/remote_runs_dialog.h"
#include "app/window/status_line.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/kill_process.h"

using namespace ws;
using namespace ws::app;

namespace {

// WARPSIGHT_SHOTS=FOLDER: pictures of each state, to be looked at.
void shot(QWidget& widget, const QString& name) {
  const QString folder = qEnvironmentVariable("WARPSIGHT_SHOTS");
  if (folder.isEmpty()) return;
  for (const ThemeName theme : {ThemeName::Light, ThemeName::Dark}) {
    set_theme(*qApp, theme);
    QTest::qWait(50);
    widget.grab().save(folder + "/" + name + (theme == ThemeName::Light ? "-light.png" : "-dark.png"));
  }
}

}  // namespace

class RemoteTest : public QObject, private WindowHome {
  Q_OBJECT
 private:
  QString there() const { return home_.path() + "/there"; }
  QString address() const { return "pipe:exec " WARPSIGHT_CLI " serve --folder " + there(); }
  bool aJobRunsThere() const {
    const QFileInfoList jobs = QDir(there() + "/.jobs").entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot);
    return std::ranges::any_of(jobs, [](const QFileInfo& job) { return QFile::exists(job.filePath() + "/.owner"); });
  }
  static bool connected(MainWindow& window) {
    return QTest::qWaitFor([&] { return window.workspace()->session()->machine() != nullptr; }, 60'000);
  }
  std::unique_ptr<MainWindow> connectedWindow() const {
    auto window = open();
    window->machines()->connectTo(address());
    return connected(*window) ? std::move(window) : nullptr;
  }
  QStringList program(const QString& then) const;
  static ExperimentSpec smallExperiment(int epochs);
  static void train(MainWindow& window, int epochs) {
    iris(window, epochs);
    window.workspace()->choices()->set("model.hidden", "64");
    window.train();
  }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() {
    endJobs(there());
    clear();
    QDir(there()).removeRecursively();
  }
  void looksAndObeysAsHere();
  void aCutLineIsSaidAndHeals();
  void whatIsLeftIsFoundAgain();
  void aRunHereAndOneThereSideBySide();
  void aProgramIsRecordedThere();
  void aRecordingThatIsLeftIsFoundAgain();
  void anExperimentRunsThereAndGoesOn();
  void anExperimentThatIsLeftIsFoundAgain();
  void anExperimentThereLeavesThisMachineFree();
  void aNameFromThereStaysInItsFolder();
  void aNameFromThereReplacesNoRunHere();
  void aSweepRunsThere();
  void pyTorchTrainsThere();
  void whoCannotBeReachedIsSaid();
  void anotherVersionAfterACutIsSaid();
  void twoMachinesTrainSideBySide();
  void hostsOfSshAreOffered();
  void sshAsksInADialog();
  void runsThereAreOpenedHere();
};

void RemoteTest::looksAndObeysAsHere() {
  auto window = connectedWindow();
  QVERIFY(window);
  TrainingSession& session = *window->workspace()->session();
  train(*window, 100'000'000);
  Run* run = session.run();
  QVERIFY(run && session.remote());
  QVERIFY(run->device.contains(" on "));
  QVERIFY(QTest::qWaitFor([&] { return run->steps.size() > 100 && run->plan && run->trace.span_count() > 0; }, 60'000));
  shot(*window, "connected");
  session.pause();
  QVERIFY(session.paused());
  QVERIFY(QTest::qWaitFor([&] { return run->progress && run->progress->paused; }, 60'000));
  const auto whole = [&] { return run->steps.back().step + 1 == static_cast<double>(run->progress->step); };
  QVERIFY2(QTest::qWaitFor(whole, 60'000), "the last losses before the pause come");
  const size_t before = run->steps.size();
  session.stepOnce();
  QVERIFY(QTest::qWaitFor([&] { return run->steps.size() == before + 1; }, 60'000));
  session.change("exec.fusion", "off");
  session.resume();
  QVERIFY(QTest::qWaitFor([&] { return !run->changes.empty(); }, 60'000));
  QCOMPARE(QString::fromStdString(run->changes[0].key), QString("exec.fusion"));
  QSignalSpy arrived(&session, &TrainingSession::arrived);
  const QString name = run->id;
  window->workspace()->stop();
  QVERIFY(QTest::qWaitFor([&] { return arrived.count() == 1; }, 60'000));
  QVERIFY(!session.busy());
  const QString here = runs() + "/" + name + ".wsrun";
  QVERIFY(QFile::exists(here));
  QCOMPARE(QFileInfo(here).size(), QFileInfo(there() + "/" + name + ".wsrun").size());  // the letter was written into ours
  Run* kept = window->workspace()->library()->byPath(here);
  QVERIFY(kept);
  QVERIFY(kept->slot >= 0);
  QCOMPARE(window->workspace()->library()->ticked().size(), size_t{1});
}

void RemoteTest::aCutLineIsSaidAndHeals() {
  auto window = connectedWindow();
  QVERIFY(window);
  TrainingSession& session = *window->workspace()->session();
  train(*window, 100'000'000);
  Run* run = session.run();
  QVERIFY(QTest::qWaitFor([&] { return run->steps.size() > 100; }, 60'000));
  RemoteMachine& machine = *session.machine();
  // There is no program there for a while.
  const QByteArray path = qgetenv("PATH");
  qputenv("PATH", "/nowhere");
  QVERIFY(ws::test::kill_process(machine.link().status().process));
  const bool said = QTest::qWaitFor([&] { return machine.text().contains("cut for"); }, 60'000);
  QVERIFY2(window->notice()->text().contains("Warpsight reconnects by itself"), qPrintable(window->notice()->text()));
  shot(*window, "cut");
  qputenv("PATH", path);
  QVERIFY(said);
  QVERIFY(session.busy());
  QVERIFY(QTest::qWaitFor([&] { return machine.up(); }, 60'000));
  QVERIFY2(window->statusLine()->text().contains("is connected again"), qPrintable(window->statusLine()->text()));
  const size_t before = run->steps.size();
  QVERIFY(QTest::qWaitFor([&] { return run->steps.size() > before + 100; }, 60'000));
  session.stop();
  QVERIFY(QTest::qWaitFor([&] { return !session.busy(); }, 60'000));
  for (size_t i = 0; i < run->steps.size(); ++i) QCOMPARE(run->steps[i].step, static_cast<double>(i));
}

void RemoteTest::whatIsLeftIsFoundAgain() {
  QString name;
  {
    auto window = connectedWindow();
    QVERIFY(window);
    train(*window, 100'000'000);
    TrainingSession& session = *window->workspace()->session();
    name = session.run()->id;
    QVERIFY(QTest::qWaitFor([&] { return session.run()->steps.size() > 100; }, 60'000));
    QString asked;
    answer("Keep watching", &asked);
    QVERIFY(!window->close());
    QVERIFY2(asked.contains("go on without this window"), qPrintable(asked));
    QTimer::singleShot(60, [] {
      if (QWidget* question = QApplication::activeModalWidget()) shot(*question, "quit");
    });
    answer("Leave it running");
    QVERIFY(window->close());
  }
  QVERIFY(QFile::exists(there() + "/.jobs/" + name + "/.owner"));
  auto window = connectedWindow();
  QVERIFY(window);
  TrainingSession& session = *window->workspace()->session();
  QVERIFY(QTest::qWaitFor([&] { return session.run() && session.run()->steps.size() > 100; }, 60'000));
  QCOMPARE(session.run()->id, name);
  QCOMPARE(session.run()->steps.front().step, 0.0);
  answer("Stop it and close");
  window->close();
  QVERIFY(QTest::qWaitFor([&] { return !QFile::exists(there() + "/.jobs/" + name + "/.owner"); }, 60'000));
}

// What trains there goes on beside what is begun here; connected again, it is in front again.
void RemoteTest::aRunHereAndOneThereSideBySide() {
  auto window = connectedWindow();
  QVERIFY(window);
  TrainingSession& session = *window->workspace()->session();
  train(*window, 100'000'000);
  Run* there = session.run();
  QVERIFY(QTest::qWaitFor([&] { return there->steps.size() > 100; }, 60'000));
  window->machines()->connectTo(QString());
  QVERIFY(!session.busy() && session.anyBusy());
  window->train();
  Run* here = session.run();
  QVERIFY(here && here != there && !session.remote());
  QVERIFY(QTest::qWaitFor([&] { return here->steps.size() > 100; }, 60'000));
  const size_t before = there->steps.size();
  QVERIFY2(QTest::qWaitFor([&] { return there->steps.size() > before + 100; }, 60'000), "both go on");
  shot(*window, "side-by-side");
  QCOMPARE(window->workspace()->library()->ticked().size(), size_t{2});
  session.stop();
  QVERIFY(QTest::qWaitFor([&] { return !session.busy(); }, 60'000));
  QVERIFY(session.anyBusy());
  window->machines()->connectTo(address());
  QVERIFY(connected(*window));
  QVERIFY(session.busy() && session.remote());
  QCOMPARE(session.run(), there);
  QString asked;
  answer("Stop it and close", &asked);
  window->close();
  QVERIFY2(asked.contains("trains. It can go on without this window"), qPrintable(asked));
  QVERIFY(QTest::qWaitFor([&] { return !session.anyBusy() && !window->isVisible(); }, 60'000));
}

// It "records" itself: it leaves a run file where the collector would, which says of which recording it is.
QStringList RemoteTest::program(const QString& then) const {
  const QString script = home_.path() + "/program.sh";
  QFile file(script);
  if (file.open(QIODevice::WriteOnly))
    file.write((WARPSIGHT_SOURCE_DIR "/tests/support/leave_run.py \"$1\" \"$WARPSIGHT_RECORD_FILE\"; echo said by the program; " + then).toUtf8());
  return {"sh", script, QStringLiteral(WARPSIGHT_SOURCE_DIR) + "/resources/recorded/mnist-arena.wsrun"};
}

void RemoteTest::aProgramIsRecordedThere() {
  auto window = connectedWindow();
  QVERIFY(window);
  QSignalSpy ended(window->workspace()->recording(), &ProgramRecording::ended);
  prof::RecordOptions options;
  options.library = "/no/library";
  Run* run = window->programs()->record(program("exit 0"), options);
  QVERIFY(run && run->device.contains(" on "));
  QVERIFY(window->workspace()->recording()->remote());
  QVERIFY(QTest::qWaitFor([&] { return ended.count() == 1; }, 60'000));
  const auto kept = window->workspace()->library()->ticked();
  QCOMPARE(kept.size(), size_t{1});
  QVERIFY(kept.front()->path.startsWith(runs()));
  QCOMPARE(QDir(there()).entryList({"*.wsrun"}).size(), 1);
  QVERIFY(!window->workspace()->recording()->busy());
}

void RemoteTest::aRecordingThatIsLeftIsFoundAgain() {
  {
    auto window = connectedWindow();
    QVERIFY(window);
    prof::RecordOptions options;
    options.library = "/no/library";
    QVERIFY(window->programs()->record(program("trap 'exit 0' INT; for i in 1 2 3 4 5 6 7 8; do sleep 5; done"), options));
    QVERIFY(QTest::qWaitFor([&] { return aJobRunsThere(); }, 60'000));
    QString asked;
    answer("Leave it running", &asked);
    QVERIFY(window->close());
    QVERIFY2(asked.contains("records a program"), qPrintable(asked));
  }
  auto window = connectedWindow();
  QVERIFY(window);
  ProgramRecording& recording = *window->workspace()->recording();
  QVERIFY2(QTest::qWaitFor([&] { return recording.remote(); }, 60'000), "it is shown again");
  RemoteRunsDialog* dialog = window->machines()->showRunsThere();
  QVERIFY(QTest::qWaitFor([&] { return dialog->list()->count() == 1; }, 60'000));
  shot(*dialog, "runs-there");
  QVERIFY2(dialog->list()->item(0)->text().contains("is recorded now"), qPrintable(dialog->list()->item(0)->text()));
  dialog->close();
  QSignalSpy ended(&recording, &ProgramRecording::ended);
  recording.stop();
  QVERIFY(QTest::qWaitFor([&] { return ended.count() == 1; }, 60'000));
  QCOMPARE(window->workspace()->library()->ticked().size(), size_t{1});
}

ExperimentSpec RemoteTest::smallExperiment(int epochs) {
  ExperimentSpec spec;
  spec.name = "small", spec.title = "Small";
  spec.base = load_spec("iris");
  set_field(spec.base, "exec.device", "cpu");
  set_field(spec.base, "train.epochs", std::to_string(epochs));
  set_field(spec.base, "train.eval_every", "0");
  spec.axes = {{"exec.fusion", {"off", "epilogue"}}};
  spec.repeats = 1;
  return spec;
}

void RemoteTest::anExperimentRunsThereAndGoesOn() {
  auto window = connectedWindow();
  QVERIFY(window);
  auto* tab = window->findChild<ExperimentsTab*>();
  window->workspace()->bringToFront(tab);
  QVERIFY(tab->add(smallExperiment(20)));
  QSignalSpy said(tab, &ExperimentsTab::said);
  tab->run();
  QVERIFY(tab->running());
  QCOMPARE(tab->place(), window->workspace()->session()->machine()->place());
  window->train();
  QVERIFY2(!window->workspace()->session()->busy(), "it would disturb the experiment");
  QVERIFY(QTest::qWaitFor([&] { return !tab->running(); }, 60'000));
  QVERIFY2(said.isEmpty(), said.isEmpty() ? "" : qPrintable(said[0][0].toString()));
  QVERIFY(tab->result().complete);
  shot(*window, "experiment-there");
  const QStringList files = QDir(runs() + "/experiments", {}, {}, QDir::Files).entryList({"*.wsrun"});
  QVERIFY2(files.isEmpty(), "results of other machines have a folder of their own");
  std::vector<TrialRun> first;
  for (const TrialResult& trial : tab->result().trials) {
    QCOMPARE(trial.runs.size(), size_t{1});
    first.push_back(trial.runs[0]);
  }
  QSignalSpy opened(tab, &ExperimentsTab::openWanted);
  emit tab->table()->cellDoubleClicked(0, 0);
  QCOMPARE(opened.count(), 1);
  QVERIFY2(QFile::exists(opened[0][0].toString()), "the run file came here");
  tab->repeats()->setValue(2);
  tab->run();
  QVERIFY(QTest::qWaitFor([&] { return !tab->running(); }, 60'000));
  for (size_t i = 0; i < first.size(); ++i) {
    const TrialResult& trial = tab->result().trials[i];
    QCOMPARE(trial.runs.size(), size_t{2});
    QVERIFY2(std::ranges::any_of(trial.runs, [&](const TrialRun& r) { return r.us_per_step == first[i].us_per_step; }),
             "what was known is not measured again");
  }
}

void RemoteTest::anExperimentThatIsLeftIsFoundAgain() {
  {
    auto window = connectedWindow();
    QVERIFY(window);
    auto* tab = window->findChild<ExperimentsTab*>();
    QVERIFY(tab->add(smallExperiment(1'000'000'000)));
    tab->run();
    QVERIFY(QTest::qWaitFor([&] { return aJobRunsThere(); }, 60'000));
    QString asked;
    answer("Leave it running", &asked);
    QVERIFY(window->close());
    QVERIFY2(asked.contains("An experiment is running on"), qPrintable(asked));
  }
  auto window = connectedWindow();
  QVERIFY(window);
  auto* tab = window->findChild<ExperimentsTab*>();
  QVERIFY2(QTest::qWaitFor([&] { return tab->running(); }, 60'000), "it is followed again");
  tab->stop();
  QVERIFY(QTest::qWaitFor([&] { return !tab->running(); }, 60'000));
  QVERIFY(!tab->result().complete);
}

void RemoteTest::anExperimentThereLeavesThisMachineFree() {
  auto window = connectedWindow();
  QVERIFY(window);
  auto* tab = window->findChild<ExperimentsTab*>();
  QVERIFY(tab->add(smallExperiment(1'000'000'000)));
  tab->run();
  TrainingSession& session = *window->workspace()->session();
  train(*window, 2);
  QVERIFY2(!session.busy(), "two would disturb each other there");
  window->machines()->connectTo(QString());
  train(*window, 2);
  QVERIFY(session.busy() && tab->running());
  QVERIFY(QTest::qWaitFor([&] { return !session.busy(); }, 60'000));
  tab->stop();
  QVERIFY(QTest::qWaitFor([&] { return !tab->running(); }, 60'000));
}

void RemoteTest::aNameFromThereStaysInItsFolder() {
  nlohmann::json experiment = to_json(smallExperiment(1'000'000'000));
  experiment["name"] = "../../../escaped";
  {
    RemoteLink link(parse_remote(address().toStdString()));
    RemoteRun::start(link, "a", {{"kind", "experiment"}, {"experiment", experiment}});
  }
  auto window = connectedWindow();
  QVERIFY(window);
  auto* tab = window->findChild<ExperimentsTab*>();
  QVERIFY(QTest::qWaitFor([&] { return tab->running(); }, 60'000));
  tab->stop();
  QVERIFY(QTest::qWaitFor([&] { return !tab->running(); }, 60'000));
  const QString experiments = QFileInfo(runs()).absoluteFilePath() + "/experiments/";
  QDirIterator all(home_.path(), {"experiment.json"}, QDir::Files, QDirIterator::Subdirectories);
  int found = 0;
  while (all.hasNext()) {
    const QString path = all.next();
    if (path.startsWith(there())) continue;
    ++found;
    QVERIFY2(QFileInfo(path).absoluteFilePath().startsWith(experiments), qPrintable(path));
  }
  QCOMPARE(found, 1);
}

void RemoteTest::aNameFromThereReplacesNoRunHere() {
  auto window = connectedWindow();
  QVERIFY(window);
  TrainingSession& session = *window->workspace()->session();
  QSignalSpy arrived(&session, &TrainingSession::arrived);
  train(*window, 100'000'000);
  const QString ours = runs() + "/" + session.run()->id + ".wsrun";
  QFile file(ours);
  QVERIFY(file.open(QIODevice::WriteOnly) && file.write("ours") == 4);
  file.close();
  QVERIFY(QTest::qWaitFor([&] { return session.run()->steps.size() > 100; }, 60'000));
  session.stop();
  QVERIFY(QTest::qWaitFor([&] { return arrived.count() == 1; }, 60'000));
  QCOMPARE(bytes_of(ours), QByteArray("ours"));
  QVERIFY2(QFile::exists(runs() + "/" + QFileInfo(ours).completeBaseName() + "-2.wsrun"), "the copy has a name of its own");
}

void RemoteTest::aSweepRunsThere() {
  auto window = connectedWindow();
  QVERIFY(window);
  auto* tab = window->findChild<LabTab*>();
  window->workspace()->bringToFront(tab);
  lab::LabSpec spec;
  spec.operation = lab::Operation::Add;
  spec.sizes = {1 << 10, 1 << 12};
  spec.ways = {lab::Way::CpuLoops};
  tab->setSpec(spec);
  tab->run();
  QVERIFY(tab->running() && !tab->place().isEmpty());
  QVERIFY(QTest::qWaitFor([&] { return !tab->running(); }, 60'000));
  shot(*window, "sweep-there");
  QCOMPARE(tab->job().result().points.size(), size_t{2});
  QVERIFY(QFile::exists(tab->job().path()));
  const auto kept = read_lab(tab->job().path().toStdString());
  QVERIFY(kept && kept->points.size() == 2);
  QCOMPARE(kept->points[0].median_s, tab->job().result().points[0].median_s);
}

// A stand-in for the script says no.
void RemoteTest::pyTorchTrainsThere() {
  auto window = connectedWindow();
  QVERIFY(window);
  auto* job = window->findChild<TorchJob*>("torch");
  QFile script(home_.path() + "/train.py");
  QVERIFY(script.open(QIODevice::WriteOnly));
  script.write("import sys\nprint('three words there', file=sys.stderr)\nsys.exit(3)\n");
  script.close();
  job->setScript(script.fileName());
  QSignalSpy ended(job, &TorchJob::ended);
  job->start(load_spec("iris"));
  QVERIFY(job->running() && !job->place().isEmpty());
  QVERIFY(QTest::qWaitFor([&] { return ended.count() == 1; }, 60'000));
  QVERIFY2(ended[0][0].toString().contains("three words there"), qPrintable(ended[0][0].toString()));
  QVERIFY(!job->running());
}

void RemoteTest::whoCannotBeReachedIsSaid() {
  auto window = open();
  window->machines()->connectTo("pipe:exec /nowhere/warpsight serve");
  QVERIFY(QTest::qWaitFor([&] { return window->notice()->text().contains("there is no program"); }, 60'000));
  shot(*window, "refused");
  QVERIFY(!window->machines()->machine());
  window->machines()->connectTo("ssh://-x");
  QVERIFY(window->notice()->text().contains("begins with a hyphen"));
  train(*window, 2);
  QVERIFY(!window->workspace()->session()->remote());
  QVERIFY(QTest::qWaitFor([&] { return !window->workspace()->session()->busy(); }, 60'000));
}

// Somebody installed another version there meanwhile.
void RemoteTest::anotherVersionAfterACutIsSaid() {
  QFile line(home_.path() + "/line.sh");
  QVERIFY(line.open(QIODevice::WriteOnly));
  line.write(("exec " WARPSIGHT_CLI " serve --folder " + there()).toUtf8());
  line.close();
  auto window = open();
  window->machines()->connectTo("pipe:exec sh " + line.fileName());
  QVERIFY(connected(*window));
  TrainingSession& session = *window->workspace()->session();
  train(*window, 100'000'000);
  Run* run = session.run();
  QVERIFY(QTest::qWaitFor([&] { return run->steps.size() > 100; }, 60'000));
  QVERIFY(line.open(QIODevice::WriteOnly | QIODevice::Truncate));
  line.write("echo warpsight-serve 99 9.9.9; cat");
  line.close();
  QVERIFY(ws::test::kill_process(session.machine()->link().status().process));
  QVERIFY(QTest::qWaitFor([&] { return !session.busy(); }, 60'000));
  const QString why = QString::fromStdString(run->summary->message);
  QVERIFY2(why.contains("version 9.9.9 there"), qPrintable(why));
}

void RemoteTest::twoMachinesTrainSideBySide() {
  auto window = connectedWindow();
  QVERIFY(window);
  TrainingSession& session = *window->workspace()->session();
  train(*window, 100'000'000);
  Run* first = session.run();
  QVERIFY(QTest::qWaitFor([&] { return first->steps.size() > 100; }, 60'000));
  window->machines()->connectTo("pipe:exec " WARPSIGHT_CLI " serve --folder " + there() + "/second");
  QVERIFY(connected(*window));
  QVERIFY(!session.busy() && session.anyBusy());
  window->train();
  Run* second = session.run();
  QVERIFY(second && second != first && session.remote());
  const size_t before = first->steps.size();
  QVERIFY(QTest::qWaitFor([&] { return second->steps.size() > 100 && first->steps.size() > before + 100; }, 60'000));
  QCOMPARE(window->workspace()->library()->ticked().size(), size_t{2});
  session.stopAll();
  QVERIFY(QTest::qWaitFor([&] { return !session.anyBusy(); }, 60'000));
}

void RemoteTest::runsThereAreOpenedHere() {
  {
    auto window = connectedWindow();
    QVERIFY(window);
    QSignalSpy arrived(window->workspace()->session(), &TrainingSession::arrived);
    train(*window, 3);
    QVERIFY(QTest::qWaitFor([&] { return arrived.count() == 1; }, 60'000));
  }
  QDir(runs()).removeRecursively();
  auto window = open();
  QCOMPARE(window->machines()->showRunsThere(), nullptr);  // said, since none is connected
  window->machines()->connectTo(address());
  QVERIFY(connected(*window));
  RemoteRunsDialog* dialog = window->machines()->showRunsThere();
  QVERIFY(QTest::qWaitFor([&] { return dialog->list()->count() == 1; }, 60'000));
  QVERIFY2(dialog->list()->item(0)->text().contains("finished"), qPrintable(dialog->list()->item(0)->text()));
  dialog->list()->selectAll();
  dialog->copyChosen();
  QVERIFY(QTest::qWaitFor([&] { return window->workspace()->library()->ticked().size() == 1; }, 60'000));
  QCOMPARE(window->workspace()->library()->ticked().front()->summary->steps, int64_t{24});
  dialog->close();
}

void RemoteTest::hostsOfSshAreOffered() {
  const QByteArray home = qgetenv("HOME");
  qputenv("HOME", home_.path().toUtf8());
  QDir().mkpath(home_.path() + "/.ssh");
  QFile file(home_.path() + "/.ssh/config");
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("Host *\n  User me\nhost gpu7 gpu8\n  Port 22\nHost=!no gpu?\nInclude more/*.conf config\n");
  file.close();
  QDir().mkpath(home_.path() + "/.ssh/more");
  QFile more(home_.path() + "/.ssh/more/work.conf");
  QVERIFY(more.open(QIODevice::WriteOnly));
  more.write("Host cluster1 gpu7\n");
  more.close();
  QCOMPARE(known_hosts(), QStringList({"gpu7", "gpu8", "cluster1"}));
  ConnectDialog::remember("ssh://gpu9");
  ConnectDialog dialog("gpu7");
  QCOMPARE(dialog.address(), QString("ssh://gpu7"));
  dialog.adjustSize();
  shot(dialog, "connect");
  QCOMPARE(ConnectDialog::recent().front(), QString("ssh://gpu9"));
  qputenv("HOME", home);
}

void RemoteTest::sshAsksInADialog() {
  PasswordDialog password("me@gpu7's password: ");
  auto* typed = password.findChild<QLineEdit*>();
  QVERIFY(typed && typed->echoMode() == QLineEdit::Password);
  QTest::keyClicks(typed, "secret");
  QCOMPARE(password.answer(), QString("secret"));
  PasswordDialog trust("The authenticity of host 'gpu7' can't be established. Are you sure (yes/no/[fingerprint])? ");
  QVERIFY(!trust.findChild<QLineEdit*>());
  QCOMPARE(trust.answer(), QString("yes"));
  shot(password, "password"), shot(trust, "trust");
  // What ssh starts: the program, with the question as it is.
  qunsetenv("SSH_ASKPASS");
  offer_password_dialog("/bin/echo");
  QProcess ask;
  ask.start(qEnvironmentVariable("SSH_ASKPASS"), {"the $question's words"});
  QVERIFY(ask.waitForFinished());
  QCOMPARE(ask.readAllStandardOutput(), QByteArray("--ask-password the $question's words\n"));
  qunsetenv("SSH_ASKPASS");
}

WARPSIGHT_QTEST(RemoteTest)

#include "remote_test.moc"
