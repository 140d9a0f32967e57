// A recorded program, shown while it runs. This program is also the one that is recorded: it speaks as the collector in
// a CUDA program would, so that no GPU is needed.
#include <QTemporaryDir>
#include <QtTest>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "app/panels/theme.h"
#include "app/window/main_window.h"
#include "app/window/notice_bar.h"
#include "app/window/top_bar.h"
#include "profiling/formats/run_file.h"

using namespace ws;
using namespace ws::app;

namespace {

constexpr int kBatches = 20, kKernels = 50;

prof::TraceBatch batch(int number) {
  prof::BatchBuilder builder;
  auto& row = builder.row(prof::TrackKind::Stream, "stream 7", "GPU 0");
  for (int i = 0; i < kKernels; ++i) {
    prof::Span span;
    span.start = (number * kKernels + i) * 10'000, span.duration = 7'000;
    span.kind = static_cast<uint64_t>(prof::SpanKind::Kernel);
    span.name = builder.id(builder.name("saxpy"));
    row.spans.push_back(span);
  }
  return builder.finish();
}

int recorded_program() {
  prof::LiveSender sender(std::getenv(prof::kRecordFollower), 0);
  prof::RunSummary summary;
  summary.name = "saxpy", summary.origin = "record";
  prof::RunFileWriter writer(std::getenv(prof::kRecordFile), summary);
  for (int i = 0; i < kBatches; ++i) {
    sender.send(batch(i));
    writer.add(batch(i));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  summary.status = "finished";
  writer.set_summary(summary);
  writer.finish();
  sender.finish();
  return 0;
}

}  // namespace

class RecordingTest : public QObject {
  Q_OBJECT
 private:
  QTemporaryDir home_;
  QString self() const { return QCoreApplication::applicationFilePath(); }

 private slots:
  void initTestCase() {
    qputenv("XDG_CONFIG_HOME", (home_.path() + "/config").toUtf8());
    set_theme(*qApp, ThemeName::Dark);
  }
  void aProgramIsShownWhileItRuns();
  void aForgottenRunEndsWell();
  void whatCannotBeRecordedIsSaid();
};

void RecordingTest::aProgramIsShownWhileItRuns() {
  MainWindow window(home_.path() + "/runs");
  window.setKeepLayout(false);
  window.show();
  Run* live = window.record({self(), "--recorded"}, self());
  QVERIFY2(live, qPrintable(window.notice()->text()));
  QVERIFY(live->live());
  window.library()->refresh();  // it has no file yet
  QCOMPARE(window.library()->runs().size(), size_t{1});
  QCOMPARE(window.library()->runs().front(), live);
  QTRY_VERIFY_WITH_TIMEOUT(live->trace.span_count() > 0, 5000);
  QVERIFY(window.recording()->busy());
  QVERIFY(window.topBar()->stop()->isEnabled());
  QVERIFY(!window.close());  // it says that a program is being recorded
  QVERIFY(window.notice()->text().contains("recorded"));
  QPointer<Run> gone(live);
  QTRY_VERIFY_WITH_TIMEOUT(!window.recording()->busy() && !gone, 10'000);
  QCOMPARE(window.library()->runs().size(), size_t{1});
  Run* kept = window.library()->runs().front();
  QCOMPARE(QFileInfo(kept->path).absolutePath(), QFileInfo(home_.path() + "/runs").absoluteFilePath());
  QVERIFY(kept->slot >= 0 && !kept->live());
  QTRY_COMPARE_WITH_TIMEOUT(kept->trace.span_count(), size_t{kBatches * kKernels}, 5000);
}

// Whoever owns the run may drop it while the program goes on: its file is kept all the same.
void RecordingTest::aForgottenRunEndsWell() {
  ProgramRecording recording(home_.path() + "/others");
  QString kept;
  bool ended = false;
  connect(&recording, &ProgramRecording::ended, this, [&](Run* run, const QString& path) {
    QVERIFY(!run);
    kept = path, ended = true;
  });
  Run* run = recording.start({self(), "--recorded"}, self());
  QVERIFY(run);
  QTRY_VERIFY_WITH_TIMEOUT(run->trace.span_count() > 0, 5000);
  delete run;
  QTRY_VERIFY_WITH_TIMEOUT(ended, 10'000);
  QVERIFY(QFileInfo::exists(kept));
}

void RecordingTest::whatCannotBeRecordedIsSaid() {
  MainWindow window(home_.path() + "/runs");
  window.setKeepLayout(false);
  window.show();
  QVERIFY(!window.record({"/not/there"}, self()));
  QVERIFY2(window.notice()->text().contains("/not/there"), qPrintable(window.notice()->text()));
  const size_t before = window.library()->runs().size();
  QVERIFY(window.record({"true"}, self()));
  QTRY_VERIFY_WITH_TIMEOUT(window.notice()->text().contains("nothing was recorded"), 5000);
  QCOMPARE(window.library()->runs().size(), before);
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--recorded") return recorded_program();
  QApplication app(argc, argv);
  RecordingTest test;
  return QTest::qExec(&test, argc, argv);
}

#include "recording_test.moc"
