// What a person keeps of a run: its last seconds as a run of their own, a copy with its weights.
#include <QSignalSpy>
#include <QTest>

#include "app/timeline/timeline_pane.h"
#include "app/window/notice_bar.h"
#include "app/window/status_line.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/machine.h"

using namespace ws::app;

class KeepingTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  static Run* trained(MainWindow& window) {
    iris(window, 30);
    QSignalSpy ended(window.workspace()->session(), &TrainingSession::ended);
    window.train();
    (void)QTest::qWaitFor([&] { return !ended.isEmpty(); }, 60'000);
    return window.workspace()->session()->run();
  }
  static QByteArray bytes(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void theLastSecondsStay();
  void theLastSecondsOfWhatTrains();
  void nothingToKeepIsSaid();
  void aCopyHasItsWeights();
  void aRunIsNotCopiedOntoItself();
};

void KeepingTest::theLastSecondsStay() {
  size_t spans = 0;
  QString path;
  {
    auto window = open();
    Run* whole = trained(*window);
    // By steps: on a busy machine the start of a run takes most of its time.
    const ws::prof::TimeNs from = whole->timeOfStep(0.75 * static_cast<double>(whole->summary->steps));
    window->findChild<TimelinePane*>()->keepLast(static_cast<double>(whole->trace.last_time() - from) * 1e-9);
    QTRY_COMPARE(window->workspace()->library()->ticked().size(), size_t{2});
    Run* kept = window->workspace()->library()->baseline();
    QTRY_VERIFY(kept->loaded);
    spans = kept->trace.span_count(), path = kept->path;
    QVERIFY(spans > 0 && spans < whole->trace.span_count() / 2);
    QCOMPARE(kept->trace.last_time(), whole->trace.last_time());
    QCOMPARE(kept->steps.size(), whole->steps.size());
    QVERIFY(kept->plan);
    window->workspace()->library()->refresh();
    QCOMPARE(window->workspace()->library()->runs().size(), size_t{2});
    QCOMPARE(window->workspace()->library()->byPath(path), kept);
  }
  auto window = open();
  Run* again = window->workspace()->library()->byPath(path);
  QVERIFY(again);
  QVERIFY2(again->title.contains("last"), qPrintable(again->title));
  window->workspace()->library()->setTicked(again, true);
  QTRY_VERIFY(again->loaded);
  QCOMPARE(again->trace.span_count(), spans);
  QVERIFY(!again->meters.empty() && again->meters.back().reserved > 0);
  QVERIFY(again->meters.back().used <= again->meters.back().reserved);
}

void KeepingTest::theLastSecondsOfWhatTrains() {
  auto window = open();
  iris(*window, 1'000'000);
  window->train();
  Run* live = window->workspace()->session()->run();
  QTRY_VERIFY(live->trace.span_count() > 1000);
  window->findChild<TimelinePane*>()->keepLast(0.05);
  QTRY_COMPARE(window->workspace()->library()->runs().size(), size_t{2});
  window->workspace()->session()->stop();
  QTRY_VERIFY(!window->workspace()->session()->busy());
  for (Run* run : window->workspace()->library()->runs()) {
    if (run == live) continue;
    QTRY_VERIFY(run->loaded);
    QVERIFY(!run->live() && !run->unfinished);
    QVERIFY(run->trace.span_count() > 0);
    for (const ws::prof::Track& track : run->trace.tracks())  // a sample of the host may be longer: it is kept whole
      if (track.kind == ws::prof::TrackKind::Steps)
        QVERIFY(static_cast<double>(run->trace.last_time() - track.blocks.front().first) < ws::test::busy() * 1e8);
  }
}

void KeepingTest::nothingToKeepIsSaid() {
  auto window = open();
  auto* timeline = window->findChild<TimelinePane*>();
  QSignalSpy said(timeline, &TimelinePane::said);
  timeline->keepLast(1);
  QCOMPARE(said.count(), 1);
  QVERIFY(window->workspace()->library()->runs().empty());
}

void KeepingTest::aCopyHasItsWeights() {
  auto window = open();
  const Run* run = trained(*window);
  QTemporaryDir outside;
  const QString to = outside.filePath("copy");
  QSignalSpy exported(window->workspace()->jobs(), &LibraryJobs::exported);
  window->saveCopyTo(to);
  QTRY_COMPARE(exported.count(), 1);
  QCOMPARE(exported[0][0].toString(), to + ".wsrun");
  QVERIFY(QFileInfo::exists(weights_path(to + ".wsrun")));
  QCOMPARE(bytes(weights_path(to + ".wsrun")), bytes(weights_path(run->path)));
  Run* copy = window->workspace()->library()->open(to + ".wsrun");
  QVERIFY(copy);
  QCOMPARE(copy->title, run->title);
  QCOMPARE(copy->summary->steps, run->summary->steps);
  QCOMPARE(QDir(outside.path()).entryList(QDir::Files | QDir::Hidden).size(), 2);
}

void KeepingTest::aRunIsNotCopiedOntoItself() {
  auto window = open();
  const Run* run = trained(*window);
  const QByteArray before = bytes(run->path), weights = bytes(weights_path(run->path));
  QVERIFY(!before.isEmpty() && !weights.isEmpty());
  const QString link = home_.path() + "/link.wsrun";
  QFile::remove(link);
  QVERIFY(QFile::link(run->path, link));
  for (const QString& path : {run->path, link}) {
    window->notice()->dismiss();
    window->saveCopyTo(path);
    QTRY_VERIFY(window->notice()->text().contains("the run itself"));
    QCOMPARE(bytes(run->path), before);
    QCOMPARE(bytes(weights_path(run->path)), weights);
  }
}

WARPSIGHT_QTEST(KeepingTest)
#include "keeping_test.moc"
