// kill -9 of the window that ships, at random moments: while it connects to another machine, watches a training there, and
// copies a run that has ended. What runs there goes on, and who comes back sees all of it. WARPSIGHT_CUTS=100 for the whole.
#include <signal.h>

#include <QDir>
#include <QProcess>
#include <QSignalSpy>
#include <QTest>
#include <nlohmann/json.hpp>
#include <random>

#include "app/core/remote/fetch_file.h"
#include "app/core/remote/remote_run.h"
#include "app/window/machine_actions.h"
#include "profiling/base/process.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

namespace {

constexpr int kRounds = 4;

// The server that a window has started; 0: none yet.
pid_t server_of(qint64 window) {
  for (const QString& thread : QDir(QString("/proc/%1/task").arg(window)).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
    for (const QByteArray& child : bytes_of(QString("/proc/%1/task/%2/children").arg(window).arg(thread)).split(' '))
      if (bytes_of("/proc/" + child + "/cmdline").contains(QByteArray("serve\0--folder", 14))) return child.toInt();
  return 0;
}

qint64 bytes_sent_by(pid_t server) {
  for (const QByteArray& line : bytes_of(QString("/proc/%1/io").arg(server)).split('\n'))
    if (line.startsWith("wchar: ")) return line.mid(7).toLongLong();
  return 0;
}

}  // namespace

class RemoteKillTest : public QObject, private WindowHome {
  Q_OBJECT
 private:
  QString there() const { return home_.path() + "/there"; }
  QString address() const { return "pipe:exec " WARPSIGHT_CLI " serve --folder " + there(); }
  std::string beginTraining(RemoteLink& link);
  void stopTraining(RemoteLink& link, const std::string& name);
  void killWindow(RemoteLink& link, std::string& training, bool while_it_copies);
  void checkRunsHere();
  void wait(int most_ms) { QTest::qWait(std::uniform_int_distribution(0, most_ms)(random_)); }

  std::mt19937 random_{20261124};
  std::vector<std::string> ended_;
  int reached_ = 0;  // windows that were sent losses or spans before they were killed

 private slots:
  void initTestCase() { moveIn(); }
  void cleanupTestCase() { endJobs(there()); }
  void nothingIsLost();
};

std::string RemoteKillTest::beginTraining(RemoteLink& link) {
  RunSpec spec = load_spec("iris");
  for (const auto& [key, value] : {std::pair{"exec.device", "cpu"}, {"train.batch", "0"}, {"model.hidden", "64"},
                                   {"train.eval_every", "0"}, {"train.epochs", "100000000"}})
    set_field(spec, key, value);
  const std::string name = RemoteRun::new_name("watched");
  RemoteRun::start(link, name, {{"kind", "train"}, {"spec", to_json(spec)}, {"trace", "steps"}, {"title", "a test"}});
  return name;
}

void RemoteKillTest::stopTraining(RemoteLink& link, const std::string& name) {
  RemoteRun run(link, name, false);
  run.stop();
  QVERIFY(QTest::qWaitFor([&] { return run.over(); }, 60'000));
  ended_.push_back(name);
}

void RemoteKillTest::killWindow(RemoteLink& link, std::string& training, bool while_it_copies) {
  QProcess window;
  window.setProcessChannelMode(QProcess::ForwardedChannels);
  window.start(WARPSIGHT_WINDOW, {"--runs", runs(), address()});
  pid_t server = 0;
  QVERIFY(QTest::qWaitFor([&] { return (server = server_of(window.processId())) > 0; }, 60'000));
  wait(1000);
  if (while_it_copies) {
    QVERIFY(QTest::qWaitFor([&] { return bytes_sent_by(server) > 20'000; }, 60'000));
    stopTraining(link, training);
    wait(200);
  }
  reached_ += bytes_sent_by(server) > 20'000;
  const std::string mark = process_mark(server);
  QCOMPARE(window.state(), QProcess::Running);
  window.kill();
  QVERIFY(window.waitForFinished());
  QVERIFY2(OtherProcess(mark).ended(20'000), "its server ends with it");
  if (while_it_copies) training = beginTraining(link);
}

// A copy is whole or not there.
void RemoteKillTest::checkRunsHere() {
  for (const QFileInfo& file : QDir(runs()).entryInfoList({"*.wsrun"}, QDir::Files)) {
    prof::RunFileReader here(file.filePath().toStdString()), original((there() + "/" + file.fileName()).toStdString());
    QVERIFY(here.problems().empty());
    QCOMPARE(here.metrics().size(), original.metrics().size());
    QCOMPARE(here.trace().span_count(), original.trace().span_count());
  }
}

void RemoteKillTest::nothingIsLost() {
  const int rounds = qEnvironmentVariableIsSet("WARPSIGHT_CUTS") ? qEnvironmentVariableIntValue("WARPSIGHT_CUTS") : kRounds;
  RemoteLink link(parse_remote(address().toStdString()));
  std::string training = beginTraining(link);
  for (int i = 0; i < rounds; ++i) {
    killWindow(link, training, i % 4 == 1);
    if (QTest::currentTestFailed()) return;
  }
  QVERIFY(reached_ * 4 >= rounds);
  checkRunsHere();
  auto window = open();
  window->machines()->connectTo(address());
  TrainingSession& session = *window->workspace()->session();
  QVERIFY2(QTest::qWaitFor([&] { return session.run() && session.run()->steps.size() > 100; }, 60'000), "it is found again");
  QCOMPARE(session.run()->id.toStdString(), training);
  QSignalSpy arrived(&session, &TrainingSession::arrived);
  session.stop();
  QVERIFY(QTest::qWaitFor([&] { return arrived.count() == 1; }, 60'000));
  ended_.push_back(training);
  const QString here = runs() + "/" + QString::fromStdString(training) + ".wsrun";
  RunLibrary& library = *window->workspace()->library();
  Run* run = library.byPath(here);  // the run of the copied file; the live one is gone
  QVERIFY(run);
  QVERIFY(QTest::qWaitFor([&] { return !library.loading(); }, 60'000));
  QVERIFY(run->summary);
  for (size_t i = 0; i < run->steps.size(); ++i) QCOMPARE(run->steps[i].step, static_cast<double>(i));
  QCOMPARE(static_cast<int64_t>(run->steps.size()), run->summary->steps);
  checkRunsHere();
  QCOMPARE(link.ask({{"do", "list"}})["runs"].size(), ended_.size());
  for (const std::string& name : ended_) {
    const QString copy = home_.path() + "/copy.wsrun", original = there() + "/" + QString::fromStdString(name) + ".wsrun";
    fetch_file(link, {{"file", name + ".wsrun"}}, copy.toStdString());
    QCOMPARE(bytes_of(copy), bytes_of(original));
    const auto metrics = prof::RunFileReader(copy.toStdString()).metrics();
    for (size_t i = 0; i < metrics.size(); ++i) QCOMPARE(metrics[i].step, static_cast<int64_t>(i));
  }
  std::printf("%d windows were killed, %d while news arrived; %zu runs are whole\n", rounds, reached_, ended_.size());
}

WARPSIGHT_QTEST(RemoteKillTest)

#include "remote_kill_test.moc"
