// A recorded program, shown while it runs. This program is also the one that is recorded: it speaks as the collector in
// a CUDA program would, so that no GPU is needed.
#include <sys/wait.h>
#include <unistd.h>

#include <QCheckBox>
#include <QPlainTextEdit>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "app/widgets/segmented_row.h"
#include "app/workspace/printed_lines.h"
#include "app/widgets/theme.h"
#include "app/window/main_window.h"
#include "app/window/program_actions.h"
#include "app/window/window_layout.h"
#include "app/window/notice_bar.h"
#include "app/window/record_dialog.h"
#include "app/window/status_line.h"
#include "app/window/top_bar.h"
#include "profiling/base/process.h"
#include "profiling/recording/claim_file.h"
#include "profiling/recording/process_files.h"
#include "tests/support/recorded_here.h"
#include "profiling/recording/record_keys.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/track_names.h"
#include "tests/app/support/window_tests.h"

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

// It prints as a script with a progress bar does, and fails.
int failing_program() {
  std::printf("in %s\n 50 %%\r100 %%\r\n\x1b[31mred\x1b[0m", std::filesystem::current_path().c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "\nTraceback\nValueError: \xC2\xB5 is no number");
  return 3;
}

int recorded_program() {
  prof::LiveSender sender(std::getenv(prof::kRecordFollower), getpid(), 0);
  prof::RunSummary summary;
  summary.extra[prof::kRecordProcess] = this_process();
  summary.extra[prof::kRecordingKey] = prof::recording_mark(std::getenv(prof::kRecordFollower));
  summary.name = "saxpy", summary.origin = "record", summary.us_per_step = 80;
  for (const char* variable : {prof::kRecordLevel, prof::kRecordWindow, prof::kRecordCounters})
    summary.notes += std::string(std::getenv(variable)) + " ";
  prof::RunFileWriter writer(prof::claim_file(std::getenv(prof::kRecordFile)), summary);
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

// One step of a training on a GPU that is 24 ms behind its host.
prof::TraceBatch training_step(uint32_t number, prof::TimeNs origin) {
  constexpr prof::TimeNs kStep = 10'000'000, kBehind = 24'000'000;
  prof::BatchBuilder builder;
  const auto put = [&](prof::TrackKind track, std::string_view row, const char* group, prof::SpanKind kind, const char* name, prof::TimeNs start,
                       prof::TimeNs ns, prof::Meaning meaning = prof::Meaning::Other, uint32_t call = 0) {
    prof::Span span;
    span.start = start, span.duration = static_cast<uint64_t>(ns), span.correlation = call;
    span.kind = static_cast<uint64_t>(kind), span.meaning = static_cast<uint64_t>(meaning), span.name = builder.id(builder.name(name));
    builder.row(track, row, group).spans.push_back(span);
  };
  const prof::TimeNs host = origin + number * kStep;
  put(prof::TrackKind::ProgramSteps, prof::kProgramSteps, "CPU", prof::SpanKind::Phase, "step #", host, kStep);
  put(prof::TrackKind::Api, "thread 1 calls", "CPU", prof::SpanKind::Api, "cudaLaunchKernel", host + 1000, 5000, prof::Meaning::Launch, number + 1);
  put(prof::TrackKind::Stream, "stream 7", "GPU 0", prof::SpanKind::Kernel, "gemm", host + kBehind, kStep * 4 / 5, prof::Meaning::Matrix, number + 1);
  return builder.finish();
}

// A training on a GPU that runs until it is interrupted, and reads its loss.
int recorded_training() {
  std::atomic<uint32_t> wanted = 0;
  uint32_t made = 0;
  test::RecordedHere recorder(prof::claim_file(std::getenv(prof::kRecordFile)), "train", {.level = prof::TraceLevel::Off},
                               std::getenv(prof::kRecordFollower),
                               [&] { return made == wanted ? prof::TraceBatch() : training_step(made++, 1'000'000); });
  static std::atomic<bool> interrupted = false;
  std::signal(SIGINT, [](int) { interrupted = true; });
  for (uint32_t i = 0; i < 2000 && !interrupted; ++i, ++wanted) {
    recorder.notes().scalar("read loss", 2.0 / (1 + i), i);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  recorder.finish();
  return 0;
}

// Starts another process that does the same, and waits for it.
int recorded_twice() {
  const pid_t other = fork();
  const int status = recorded_program();
  if (other == 0) _exit(status);
  int its = 1;
  waitpid(other, &its, 0);
  return status != 0 ? status : its;
}

}  // namespace

class RecordingTest : public QObject {
  Q_OBJECT
 private:
  QTemporaryDir home_;
  // The words that start this program as the recorded one.
  static QStringList self(const char* part) { return {QCoreApplication::applicationFilePath(), "RecordingTest", part}; }
  prof::RecordOptions fake() const { return {.library = QCoreApplication::applicationFilePath().toStdString()}; }

 private slots:
  void initTestCase() {
    qputenv("XDG_CONFIG_HOME", (home_.path() + "/config").toUtf8());
    set_theme(*qApp, ThemeName::Dark);
  }
  void aProgramIsShownWhileItRuns();
  void aTrainingOnAGpuHasItsFiguresWhileItRuns();
  void everyProcessComesIntoTheLibrary();
  void aForgottenRunEndsWell();
  void whatCannotBeRecordedIsSaid();
  void aProgramReceivesHowCloselyToRecord();
  void theDialogNeedsAProgram();
  void theDialogFitsASmallScreen();
  void theDialogReportsWhatCannotBe();
  void theNextDialogHasTheSameChoices();
  void anotherMachineIsChosenWithoutTypingAgain();
  void whatAProgramPrintsIsInTheLog();
  void linesAreWhole();
};

void RecordingTest::aProgramIsShownWhileItRuns() {
  MainWindow window(home_.path() + "/runs");
  window.windowLayout()->setKeep(false);
  window.show();
  Run* live = window.programs()->record(self("--recorded"), fake());
  QVERIFY2(live, qPrintable(window.notice()->text()));
  QVERIFY(live->live());
  window.workspace()->library()->refresh();  // it has no file yet
  QCOMPARE(window.workspace()->library()->runs().size(), size_t{1});
  QCOMPARE(window.workspace()->library()->runs().front(), live);
  QTRY_VERIFY(live->trace.span_count() > 0);
  QVERIFY(window.workspace()->recording()->busy());
  QVERIFY(window.topBar()->stop()->isEnabled());
  QTRY_VERIFY2(window.statusLine()->text().startsWith("Recording A"), qPrintable(window.statusLine()->text()));
  QVERIFY(!window.close());  // it says that a program is being recorded
  QVERIFY(window.notice()->text().contains("Stop the recording first"));
  QPointer<Run> gone(live);
  QTRY_VERIFY(!window.workspace()->recording()->busy() && !gone);
  QCOMPARE(window.workspace()->library()->runs().size(), size_t{1});
  Run* kept = window.workspace()->library()->runs().front();
  QCOMPARE(QFileInfo(kept->path).absolutePath(), QFileInfo(home_.path() + "/runs").absoluteFilePath());
  QVERIFY(kept->slot >= 0 && !kept->live());
  QTRY_COMPARE(kept->trace.span_count(), size_t{kBatches * kKernels});
  QVERIFY(kept->summary && kept->summary->us_per_step == 80);
  QCOMPARE(kept->summary->samples_per_s, 0.0);  // how many it takes in a step is not known
}

void RecordingTest::aTrainingOnAGpuHasItsFiguresWhileItRuns() {
  MainWindow window(home_.path() + "/training");
  window.windowLayout()->setKeep(false);
  window.resize(1366, 768);
  window.show();
  Run* live = window.programs()->record(self("--recorded-training"), fake());
  QVERIFY2(live, qPrintable(window.notice()->text()));
  for (const int64_t steps : {20, 150}) {
    QTRY_VERIFY(live->stepsMade() >= steps && live->split.steps >= steps / 2);
    QVERIFY(live->live());
    QVERIFY2(std::abs(live->stepUs() - 10'000) < 10, qPrintable(QString::number(live->stepUs())));
    QVERIFY2(std::abs(live->split.wall_us - 10'000) < 10, qPrintable(QString::number(live->split.wall_us)));
    QVERIFY2(std::abs(live->split.busy - 0.8) < 0.01, qPrintable(QString::number(live->split.busy)));
    QCOMPARE(std::round(live->split.kernels * 100), 100.0);
    QVERIFY(live->hasLoss() && live->trainLoss() < 1);
  }
  const int64_t shown = live->stepsMade();
  QPointer<Run> gone(live);
  window.workspace()->recording()->stop();
  QTRY_VERIFY(!window.workspace()->recording()->busy() && !gone);
  Run* kept = window.workspace()->library()->runs().front();
  QTRY_VERIFY(kept->stepsMade() >= shown && kept->split.steps > 0);
  QVERIFY2(std::abs(kept->stepUs() - 10'000) < 10, qPrintable(QString::number(kept->stepUs())));
}

void RecordingTest::everyProcessComesIntoTheLibrary() {
  MainWindow window(home_.path() + "/both");
  window.windowLayout()->setKeep(false);
  window.show();
  QVERIFY2(window.programs()->record(self("--recorded-twice"), fake()), qPrintable(window.notice()->text()));
  QTRY_VERIFY(!window.workspace()->recording()->busy());
  QTRY_COMPARE(window.workspace()->library()->runs().size(), size_t{2});
  QCOMPARE(QDir(home_.path() + "/both/.recording").entryList(QDir::Files), QStringList());
  for (Run* run : window.workspace()->library()->runs()) {
    QVERIFY2(run->path.endsWith(".wsrun") && !run->unfinished, qPrintable(run->path));
    window.workspace()->library()->setTicked(run, true);
    QTRY_COMPARE(run->trace.span_count(), size_t{kBatches * kKernels});
  }
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
  Run* run = recording.start(self("--recorded"), fake());
  QVERIFY(run);
  QTRY_VERIFY(run->trace.span_count() > 0);
  delete run;
  QTRY_VERIFY(ended);
  QVERIFY(QFileInfo::exists(kept));
}

void RecordingTest::whatCannotBeRecordedIsSaid() {
  MainWindow window(home_.path() + "/runs");
  window.windowLayout()->setKeep(false);
  window.show();
  QVERIFY(!window.programs()->record({"/not/there"}, fake()));
  QVERIFY2(window.notice()->text().contains("/not/there"), qPrintable(window.notice()->text()));
  const size_t before = window.workspace()->library()->runs().size();
  QVERIFY(window.programs()->record({"true"}, fake()));
  QTRY_VERIFY(window.notice()->text().contains("Nothing was recorded"));
  QCOMPARE(window.workspace()->library()->runs().size(), before);
}

void RecordingTest::aProgramReceivesHowCloselyToRecord() {
  MainWindow window(home_.path() + "/told");
  window.windowLayout()->setKeep(false);
  window.show();
  prof::RecordOptions options = fake();
  options.level = prof::TraceLevel::Steps, options.window = "200ms/5s";
  QVERIFY(!window.programs()->record(self("--recorded"), options));
  QVERIFY2(window.notice()->text().contains("records no kernels"), qPrintable(window.notice()->text()));
  options.level = prof::TraceLevel::Kernels, options.counters = true;
  QVERIFY2(window.programs()->record(self("--recorded"), options), qPrintable(window.notice()->text()));
  QTRY_VERIFY(!window.workspace()->recording()->busy());
  const Run* kept = window.workspace()->library()->runs().front();
  QCOMPARE(kept->note.simplified(), QString("kernels 200ms/5s 1"));
  // Counters were asked for, and its file says nothing of any.
  QVERIFY2(kept->counters_note.contains("before they were sampled"), qPrintable(kept->counters_note));
}

namespace {

// The dialog, and its fields by what they are called.
struct OpenDialog {
  explicit OpenDialog(const QString& machine = {}) : dialog(machine) {}
  QLineEdit& line(const QString& name) const {
    const QList<QLineEdit*> all = dialog.findChildren<QLineEdit*>();
    return **std::ranges::find(all, name, &QWidget::accessibleName);
  }
  QCheckBox& box(const QString& part) const {
    const QList<QCheckBox*> all = dialog.findChildren<QCheckBox*>();
    return **std::ranges::find_if(all, [&](const QCheckBox* box) { return box->text().contains(part); });
  }
  QPushButton& record() const {
    const QList<QPushButton*> all = dialog.findChildren<QPushButton*>();
    return **std::ranges::find(all, QString("Record"), &QPushButton::text);
  }
  bool may_record() const { return record().isEnabled(); }
  void choose(const QString& row, const QString& value) const {
    for (const SegmentedRow* each : dialog.findChildren<SegmentedRow*>())
      for (Segment* segment : each->segments())
        if (each->accessibleName() == row && segment->value() == value) segment->click();
  }
  bool said(const char* words) const {
    return std::ranges::any_of(dialog.findChildren<QLabel*>(),
                               [&](const QLabel* label) { return !label->isHidden() && label->text().contains(words); });
  }
  RecordDialog dialog;
};

}  // namespace

void RecordingTest::theDialogNeedsAProgram() {
  QSettings().clear();
  const OpenDialog open;
  QVERIFY(!open.may_record());
  QCOMPARE(open.line("Folder").text(), QDir::currentPath());
  open.line("Program").setText("python3 train.py --name \"two words\"");
  QVERIFY(open.may_record());
  QCOMPARE(open.dialog.command(), QStringList({"python3", "train.py", "--name", "two words"}));
  const prof::RecordOptions usual = open.dialog.options();
  QVERIFY(usual.window.empty() && usual.xray.empty() && !usual.counters);
  QCOMPARE(usual.level, prof::TraceLevel::Full);
  QCOMPARE(usual.python, prof::PythonLevel::Modules);
}

void RecordingTest::theDialogFitsASmallScreen() {
  OpenDialog open;
  open.dialog.adjustSize();
  QVERIFY2(open.dialog.height() <= 720, qPrintable(QString::number(open.dialog.height())));  // of a screen with 768 points
}

void RecordingTest::theDialogReportsWhatCannotBe() {
  QSettings().clear();
  const OpenDialog open;
  open.line("Program").setText("python3 train.py");
  open.line("Trace windows").setText("5s/200ms");
  QVERIFY(!open.may_record() && open.said("such as 200ms/5s, with at least 10 ms of each kind"));
  open.line("Trace windows").setText("200 ms / 5 s");
  QVERIFY(open.may_record() && !open.said("at least 10 ms of each kind"));
  open.choose("Trace level", "steps");
  QVERIFY(!open.may_record() && open.said("steps records no kernels"));
  open.choose("Trace level", "graph");
  QVERIFY(open.may_record());
  open.line("Folder").setText(home_.path() + "/no such folder");
  QVERIFY(!open.may_record() && open.said("There is no such folder"));
  open.line("Folder").setText(home_.path());
  QVERIFY(open.may_record() && !open.said("There is no such folder"));
  open.box("what the program asks for").setChecked(true);
  QVERIFY(!open.may_record() && open.said("Choose either capture ranges"));
}

void RecordingTest::theNextDialogHasTheSameChoices() {
  QSettings().clear();
  OpenDialog open;
  open.line("Program").setText("python3 train.py --name \"two words\"");
  open.line("Trace windows").setText("200 ms / 5 s");
  open.line("Folder").setText(home_.path());
  open.choose("Trace level", "graph");
  open.choose("Python level", "lines");
  QVERIFY(open.said("The source line of each"));
  open.box("counters").setChecked(true);
  open.box("kernels wait").setChecked(true);
  open.record().click();
  const RecordDialog next;
  QCOMPARE(next.command(), open.dialog.command());
  const prof::RecordOptions options = next.options();
  QCOMPARE(options.window, std::string("200ms/5s"));
  QVERIFY(options.counters);
  QCOMPARE(options.xray, std::string("200ms/30s"));
  QCOMPARE(options.level, prof::TraceLevel::Graph);
  QCOMPARE(options.python, prof::PythonLevel::Lines);
  QCOMPARE(options.folder, home_.path().toStdString());
  const RecordDialog there("gpu7");  // its folders are not known here
  QVERIFY(there.windowTitle().contains("gpu7") && there.options().folder.empty());
}

void RecordingTest::anotherMachineIsChosenWithoutTypingAgain() {
  QSettings().clear();
  OpenDialog open;
  open.line("Program").setText("torchrun --nproc_per_node 8 train.py");
  const auto buttons = open.dialog.findChildren<QPushButton*>();
  const auto other = std::ranges::find_if(buttons, [](const QPushButton* button) { return button->text().startsWith("Another machine"); });
  QVERIFY(other != buttons.end());
  (*other)->click();
  QCOMPARE(open.dialog.result(), int(RecordDialog::kOtherMachine));
  const RecordDialog there("gpu7");
  QCOMPARE(there.command().join(' '), QString("torchrun --nproc_per_node 8 train.py"));
}

void RecordingTest::whatAProgramPrintsIsInTheLog() {
  MainWindow window(home_.path() + "/prints");
  window.windowLayout()->setKeep(false);
  window.show();
  prof::RecordOptions options = fake();
  QDir(home_.path()).mkpath("with space");
  options.folder = (home_.path() + "/with space").toStdString();
  QVERIFY2(window.programs()->record(self("--failing"), options), qPrintable(window.notice()->text()));
  QTRY_VERIFY(!window.workspace()->recording()->busy());
  QString log;
  for (const QPlainTextEdit* edit : window.findChildren<QPlainTextEdit*>())
    if (edit->accessibleName() == "Log") log = edit->toPlainText();
  QVERIFY2(log.contains("in " + QFileInfo(home_.path()).canonicalFilePath() + "/with space\n"), qPrintable(log));
  QVERIFY2(log.contains("          100 %\n") && !log.contains("50 %"), qPrintable(log));
  QVERIFY2(log.contains("          red\n"), qPrintable(log));
  QVERIFY2(log.contains("ended with status 3: ValueError: µ is no number"), qPrintable(log));
  QCOMPARE(QDir(home_.path() + "/prints/.recording").entryList(QDir::Files), QStringList());
}

void RecordingTest::linesAreWhole() {
  PrintedLines lines;
  QCOMPARE(lines.add("one\ntw"), QStringList("one"));
  QCOMPARE(lines.add("o\n\n  \n\xC2"), QStringList("two"));
  QCOMPARE(lines.add("\xB5\r\n"), QStringList("µ"));
  QCOMPARE(lines.add("a\x1b[2Kb\x1b]c\n\x1b"), QStringList("abc"));
  QCOMPARE(lines.end(), QStringList());
  QCOMPARE(lines.last(), QString("abc"));
  lines.add(std::string(200'000, 'x') + "\rend");  // a progress bar that never ends its line stays small
  QCOMPARE(lines.end(), QStringList("end"));
}

namespace {

int run_either(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--recorded") return recorded_program();
  if (argc > 1 && std::string_view(argv[1]) == "--recorded-training") return recorded_training();
  if (argc > 1 && std::string_view(argv[1]) == "--recorded-twice") return recorded_twice();
  if (argc > 1 && std::string_view(argv[1]) == "--failing") return failing_program();
  return ws::test::run_test<RecordingTest>(argc, argv);
}

const ws::test::InWindowTests recording_in_window_tests("RecordingTest", run_either);

}  // namespace

#include "recording_test.moc"
