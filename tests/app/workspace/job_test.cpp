// Work beside the window: in order, with news, cancelled, dropped, and gone with its job.
#include "app/workspace/job.h"
#include "tests/app/support/window_tests.h"

#include <QTest>
#include <QThread>
#include <thread>

using namespace ws::app;

namespace {
// Until somebody asks the work to stop.
void work_on(const Job::Side& side) {
  while (!*side.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
}  // namespace

class JobTest : public QObject {
  Q_OBJECT
 private slots:
  void reportsItsNewsAndItsEndOnThisThread();
  void doesOnePieceAfterTheOther();
  void reportsTheProblem();
  void aCancelledPieceReportsItsEnd();
  void aDroppedPieceReportsNothing();
  void theDestructorCancelsAndWaits();
  void theEndMayDeleteTheJob();
  void aPictureWaitsForAllOfThem();
};

void JobTest::reportsItsNewsAndItsEndOnThisThread() {
  Job job;
  QStringList news;
  QThread* const here = QThread::currentThread();
  job.start(
      [&](const Job::Side& side) {
        for (int i = 1; i <= 3; ++i)
          side.post([&, i] {
            QCOMPARE(QThread::currentThread(), here);
            news << QString::number(i);
          });
      },
      [&](const QString& problem) {
        QCOMPARE(QThread::currentThread(), here);
        news << "end" + problem;
      });
  QVERIFY(job.running());
  QTRY_COMPARE(news, QStringList({"1", "2", "3", "end"}));
  QVERIFY(!job.running());
}

void JobTest::aPictureWaitsForAllOfThem() {
  QVERIFY(!Job::anyRunning());
  Job first;
  auto second = std::make_unique<Job>();
  std::atomic<bool> go{false};
  for (Job* job : {&first, second.get()})
    job->start([&go](const Job::Side& side) { while (!go && !*side.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1)); },
               [](const QString&) {});
  second.reset();
  QVERIFY(Job::anyRunning());
  go = true;
  QTRY_VERIFY(!first.running());
  QVERIFY(!Job::anyRunning());
}

void JobTest::doesOnePieceAfterTheOther() {
  Job job;
  std::atomic<int> at_once{0}, most{0};
  QString order;
  for (const char name : {'a', 'b', 'c'})
    job.start(
        [&](const Job::Side&) {
          most = std::max(most.load(), ++at_once);
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          --at_once;
        },
        [&order, name](const QString&) { order += QChar(name); });
  QTRY_COMPARE(order, QString("abc"));
  QCOMPARE(most.load(), 1);
}

void JobTest::reportsTheProblem() {
  Job job;
  QString said;
  job.start([](const Job::Side&) { throw std::runtime_error("the disk is full"); },
            [&](const QString& problem) { said = problem; });
  QTRY_COMPARE(said, QString("the disk is full"));
}

void JobTest::aCancelledPieceReportsItsEnd() {
  Job job;
  bool ended = false;
  job.start(work_on, [&](const QString&) { ended = true; });
  job.cancel();
  QVERIFY(job.running());
  QTRY_VERIFY(ended);
}

void JobTest::aDroppedPieceReportsNothing() {
  Job job;
  QString news;
  job.start(
      [&](const Job::Side& side) {
        side.post([&] { news += "old news"; });
        work_on(side);
      },
      [&](const QString&) { news += "old end"; });
  job.start(work_on, [&](const QString&) { news += "never begun"; });
  job.drop();
  QVERIFY(!job.running());
  job.start([](const Job::Side&) {}, [&](const QString&) { news += "new end"; });
  QTRY_COMPARE(news, QString("new end"));
}

void JobTest::theDestructorCancelsAndWaits() {
  std::atomic<bool> over{false};
  bool ended = false;
  {
    Job job;
    job.start(
        [&](const Job::Side& side) {
          work_on(side);
          over = true;
        },
        [&](const QString&) { ended = true; });
  }
  QVERIFY(over);
  QCoreApplication::processEvents();
  QVERIFY(!ended);
}

void JobTest::theEndMayDeleteTheJob() {
  auto* job = new Job;
  bool gone = false;
  connect(job, &QObject::destroyed, this, [&] { gone = true; });
  job->start([](const Job::Side&) {}, [job](const QString&) { job->deleteLater(); });
  QTRY_VERIFY(gone);
}

const ws::test::InWindowTests in_window_tests_JobTest("JobTest", ws::test::run_test<JobTest, QCoreApplication>);
#include "job_test.moc"
