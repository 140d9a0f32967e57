// What takes long and must not make the window stand still: big files coming in and going out, and a run that does not
// come to its end when the window is closed.
#include <sys/syscall.h>
#include <unistd.h>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <atomic>
#include <chrono>
#include <fstream>
#include <semaphore>
#include <thread>

#include "app/window/finishing_box.h"
#include "app/window/status_line.h"
#include "app/window/top_bar.h"
#include "profiling/formats/convert.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/machine.h"
#include "tests/support/synthetic_trace.h"

using namespace ws::app;
using Clock = std::chrono::steady_clock;

namespace {

// How long a thread of ours has waited for a processor that others had; 0 where the system does not tell.
double waited_ms(long thread) {
  double ran_ns = 0, waited_ns = 0;
  std::ifstream("/proc/self/task/" + std::to_string(thread) + "/schedstat") >> ran_ns >> waited_ns;
  return waited_ns * 1e-6;
}

// Posts an event every few milliseconds; how late each is handled is how long a person would have waited. What the
// window's thread waited for a processor is the machine's doing and not counted.
class WindowPulse {
 public:
  explicit WindowPulse(QObject* window) : window_(window), thread_([this] { beat(); }) {}
  ~WindowPulse() { end(); }
  void end() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    QApplication::processEvents();
  }
  double at(double share) {
    std::sort(ms_.begin(), ms_.end());
    return ms_.empty() ? 0
                       : ms_[std::min(ms_.size() - 1, static_cast<size_t>(share * static_cast<double>(ms_.size())))];
  }
  bool prompt() { return at(0.99) <= ws::test::busy() * 33 && at(1) <= ws::test::busy() * 100; }
  QString text() {
    return QString("the window was late by %1 ms (p99), %2 ms at worst, %3 events")
        .arg(at(0.99), 0, 'f', 1)
        .arg(at(1), 0, 'f', 1)
        .arg(ms_.size());
  }

 private:
  void beat() {
    while (!over_) {
      QMetaObject::invokeMethod(window_, [this, sent = Clock::now(), waited = waited_ms(window_thread_)] {
        const double late = std::chrono::duration<double, std::milli>(Clock::now() - sent).count();
        ms_.push_back(std::max(0.0, late - (waited_ms(window_thread_) - waited)));
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  }
  QObject* window_;
  const long window_thread_ = syscall(SYS_gettid);
  std::vector<double> ms_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

void write_trace(const QString& path, int64_t steps) {
  ws::prof::RunData run;
  run.summary.name = "a long trace", run.summary.status = "finished", run.summary.steps = steps;
  ws::test::add_steps(run.trace, ws::test::StepStyle::EagerDirect, 0, steps);
  ws::prof::export_run(run, path.toStdString());
}

}  // namespace

class PatienceTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  // A run whose thread stays in one step until it is freed.
  Run* stuck(MainWindow& window, std::counting_semaphore<8>& release) const {
    iris(window, 1'000'000);
    window.topBar()->train()->click();
    Run* run = window.workspace()->session()->run();
    (void)QTest::qWaitFor([&] { return run->progress && run->progress->step > 10; }, 60'000);
    window.workspace()->session()->control()->ask([&](ws::Executor&) { release.acquire(); });
    return run;
  }
  static FinishingBox* boxOf(const MainWindow& window) { return window.findChild<FinishingBox*>("finishing"); }

  // What a neighbour of the machine takes away is seen nowhere: late each time is late.
  static constexpr int kAttempts = 3;
  struct Lateness {
    bool prompt = false;
    bool long_enough = false;  // else there was nothing to wait for, and it says nothing
    QString text;
  };
  void watchImport(const QString& path, Lateness& late);
  void watchExport(int64_t steps, Lateness& late);
  // A fast machine gets more to do, until it takes long enough.
  template <class Watch>
  void watch(int64_t steps, Lateness& late, const Watch& once) {
    for (int attempt = 0; attempt < kAttempts && !late.prompt && !QTest::currentTestFailed(); attempt += late.long_enough) {
      clear();
      once(steps);
      if (!late.long_enough) late.prompt = false, steps *= 2;
    }
    QVERIFY2(late.prompt, qPrintable(late.text));
  }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void theWindowGoesOnDuringAnImport();
  void anothersTraceIsTheSameAsNothing();
  void theWindowGoesOnDuringAnExport();
  void closingWaitsForAnImport();
  void closingReportsWhatItWaitsFor();
  void aRunCanBeLeftUnfinished();
  void closingCanBeTakenBack();
};

void PatienceTest::watchImport(const QString& path, Lateness& late) {
  auto window = open();
  window->resize(1280, 800);
  QTRY_VERIFY(window->workspace()->device()->info());
  QTest::qWait(300);
  QSignalSpy imported(window->workspace()->jobs(), &LibraryJobs::imported);
  QStringList said;
  connect(window->workspace()->jobs(), &LibraryJobs::changed, this,
          [&] { said << window->workspace()->jobs()->text() << window->statusLine()->text(); });
  QElapsedTimer clock;
  clock.start();
  WindowPulse pulse(window.get());
  window->openFile(path);
  const qint64 returned = clock.elapsed();
  QTRY_COMPARE(imported.count(), 1);
  const qint64 took = clock.elapsed();
  pulse.end();
  const QString text = pulse.text() + QString(", openFile returned after %1 ms").arg(returned);
  qInfo("import of %lld MiB: %lld ms; %s", QFileInfo(path).size() >> 20, took, qPrintable(text));
  late = {pulse.prompt() && returned < 100 * ws::test::busy(), took > 600, text};
  QVERIFY2(said.join('\n').contains("Importing " + QFileInfo(path).fileName()), qPrintable(said.join('\n')));
  QVERIFY(window->workspace()->jobs()->text().isEmpty());
  QTRY_VERIFY(window->statusLine()->text().contains("Imported"));
  Run* run = window->workspace()->library()->runs().front();
  QCOMPARE(run->slot, 0);
  QTRY_VERIFY(run->loaded);
}

void PatienceTest::theWindowGoesOnDuringAnImport() {
  Lateness late;
  int made = 0;
  watch(3000, late, [&](int64_t steps) {
    const QString path = home_.filePath(QString("long-%1.json").arg(made++));
    write_trace(path, steps);
    watchImport(path, late);
  });
}

// Another program's trace comes without choices, so there is nothing that the dock's choices could be the same as.
void PatienceTest::anothersTraceIsTheSameAsNothing() {
  const QString path = home_.filePath("short.json");
  write_trace(path, 10);
  QFile file(path);
  QVERIFY(file.open(QIODevice::ReadWrite));
  const QByteArray text = file.readAll().replace("\"warpsight\":", "\"another\":");
  QVERIFY(file.resize(0) && file.seek(0) && file.write(text) == text.size());
  file.close();
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  QSignalSpy imported(window->workspace()->jobs(), &LibraryJobs::imported);
  window->openFile(path);
  QTRY_COMPARE(imported.count(), 1);
  QTRY_VERIFY(window->workspace()->library()->runs().front()->loaded);
  for (const QAbstractButton* title : window->findChild<SetupPanel*>()->findChildren<QAbstractButton*>())
    if (title->text() == "Execution") QVERIFY(!title->accessibleDescription().contains("same"));
}

void PatienceTest::watchExport(int64_t steps, Lateness& late) {
  const QString path = runs() + "/long.wsrun";
  QDir().mkpath(runs());
  write_trace(path, steps);
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  QSignalSpy exported(window->workspace()->jobs(), &LibraryJobs::exported), failed(window->workspace()->jobs(), &LibraryJobs::failed);
  QElapsedTimer clock;
  clock.start();
  WindowPulse pulse(window.get());
  window->workspace()->jobs()->exportRun(*window->workspace()->library()->runs().front(), home_.filePath("out.json"));
  window->workspace()->jobs()->exportRun(*window->workspace()->library()->runs().front(),
                                         home_.filePath("no/such/folder.json"));
  QVERIFY2(window->workspace()->jobs()->text().contains("1 more"), qPrintable(window->workspace()->jobs()->text()));
  QTRY_COMPARE(exported.count(), 1);
  const qint64 took = clock.elapsed();
  QTRY_COMPARE(failed.count(), 1);
  pulse.end();
  qInfo("export: %lld ms; %s", took, qPrintable(pulse.text()));
  late = {pulse.prompt(), took > 300, pulse.text()};
  QVERIFY(failed[0][0].toString().contains("folder.json"));
}

void PatienceTest::theWindowGoesOnDuringAnExport() {
  Lateness late;
  watch(6000, late, [&](int64_t steps) { watchExport(steps, late); });
}

void PatienceTest::closingWaitsForAnImport() {
  const QString path = home_.filePath("long.json");
  if (!QFileInfo::exists(path)) write_trace(path, 3000);
  {
    auto window = open();
    window->openFile(path);
    QVERIFY(!window->close());
    QTRY_VERIFY(boxOf(*window) && boxOf(*window)->isVisible());
    QVERIFY2(boxOf(*window)->text().contains("Importing long.json"), qPrintable(boxOf(*window)->text()));
    QVERIFY(boxOf(*window)->leave()->isVisible());
    QTRY_VERIFY(!window->isVisible());
    QVERIFY(!window->leftBehind());
    QVERIFY(QFileInfo::exists(runs() + "/long.wsrun"));
  }
  auto window = open();
  window->openFile(path);
  QVERIFY(!window->close());
  QTRY_VERIFY(boxOf(*window) && boxOf(*window)->isVisible());
  boxOf(*window)->leave()->click();
  QTRY_VERIFY(!window->isVisible());
  QVERIFY(window->leftBehind());
  QFile begun(runs() + "/.part-long-2.wsrun");  // as if the writing had begun
  QVERIFY(begun.open(QIODevice::WriteOnly));
  begun.close();
  window->workspace()->jobs()->abandon();
  QVERIFY(QDir(runs()).entryList({".part-*"}, QDir::Files | QDir::Hidden).isEmpty());
}

void PatienceTest::closingReportsWhatItWaitsFor() {
  std::counting_semaphore<8> release(0);
  auto window = open();
  const auto in_any_case = qScopeGuard([&] { release.release(2); });  // a window waits for its run
  Run* run = stuck(*window, release);
  answer("Stop and close");
  QElapsedTimer clock;
  clock.start();
  QVERIFY(!window->close());
  QVERIFY2(clock.elapsed() < 1500 * ws::test::busy(), qPrintable(QString::number(clock.elapsed())));
  QVERIFY2(window->windowTitle().contains("Finishing"), qPrintable(window->windowTitle()));
  WindowPulse pulse(window.get());
  QTRY_VERIFY(boxOf(*window) && boxOf(*window)->isVisible());
  QVERIFY2(boxOf(*window)->text().contains(run->title) && boxOf(*window)->text().contains("step"),
           qPrintable(boxOf(*window)->text()));
  QVERIFY(!boxOf(*window)->leave()->isVisible());
  QTest::qWait(1200);
  QVERIFY(window->isVisible());
  pulse.end();
  QVERIFY2(pulse.at(1) < 600, qPrintable(QString::number(pulse.at(1))));  // half of the time it was watched
  release.release();
  QTRY_VERIFY(!window->isVisible());
  QVERIFY(!window->workspace()->session()->busy());
  QVERIFY(run->summary->status == ws::RunStatus::Stopped);
  QCOMPARE(QString::fromStdString(ws::prof::read_run_summary(run->path.toStdString()).status), QString("stopped"));
}

void PatienceTest::aRunCanBeLeftUnfinished() {
  std::counting_semaphore<8> release(0);
  std::string path;
  {
    auto window = open();
    auto if_it_fails = qScopeGuard([&] { release.release(2); });
    path = stuck(*window, release)->path.toStdString();
    answer("Stop and close");
    QVERIFY(!window->close());
    QTRY_VERIFY(boxOf(*window) && boxOf(*window)->isVisible());
    QTRY_VERIFY(boxOf(*window)->leave()->isVisible());
    QVERIFY2(boxOf(*window)->text().contains("unfinished"), qPrintable(boxOf(*window)->text()));
    boxOf(*window)->leave()->click();
    QTRY_VERIFY(!window->isVisible());
    QVERIFY(TrainingSession::leftBehind());
    if_it_fails.dismiss();
    QElapsedTimer clock;
    clock.start();
    window.reset();
    QVERIFY2(clock.elapsed() < 3000 * ws::test::busy(), qPrintable(QString::number(clock.elapsed())));
  }
  QCOMPARE(ws::prof::read_run_summary(path).status, std::string("running"));
  QVERIFY(ws::prof::read_run_summary(path).steps >= 0);
  release.release();  // its thread still ends by itself, into the file
  QTRY_COMPARE(ws::prof::read_run_summary(path).status, std::string("stopped"));
  QTest::qWait(500);
}

void PatienceTest::closingCanBeTakenBack() {
  std::counting_semaphore<8> release(0);
  auto window = open();
  const auto in_any_case = qScopeGuard([&] { release.release(2); });  // a window waits for its run
  Run* run = stuck(*window, release);
  answer("Stop and close");
  QVERIFY(!window->close());
  QTRY_VERIFY(boxOf(*window) && boxOf(*window)->isVisible());
  boxOf(*window)->keepOpen()->click();
  QTRY_VERIFY(!boxOf(*window));
  QVERIFY(!window->windowTitle().contains("Finishing"));
  release.release();
  QTRY_VERIFY(!window->workspace()->session()->busy());
  QVERIFY(run->summary.has_value());
  QTest::qWait(100);
  QVERIFY(window->isVisible());
}

WARPSIGHT_QTEST(PatienceTest)
#include "patience_test.moc"
