// The run library: many runs, names and tags, deleting and undo, files in and out, two windows on one folder, a killed
// program's runs.
#include <QElapsedTimer>
#include <QFontMetricsF>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <set>
#include <sqlite3.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "app/core/runs/run_name.h"
#include "app/pages/library/library_model.h"
#include "app/pages/library/library_tab.h"
#include "app/pages/library/runs_panel.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/workspace/library_jobs.h"
#include "profiling/base/process.h"
#include "profiling/formats/convert.h"
#include "profiling/base/ownership.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/machine.h"
#include "tests/support/sanitizers.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;

namespace {

struct FileOptions {
  std::string status = "finished";
  int index = 0;
  int steps = 50;
};

void write_run(const QString& path, const FileOptions& o = {}) {
  prof::RunSummary s;
  s.name = "run " + std::to_string(o.index);
  s.preset = "mnist";
  s.device = o.index % 2 ? "NVIDIA H200" : "AMD EPYC";
  s.created = QDateTime::currentDateTimeUtc().addSecs(-60 * o.index).toString(Qt::ISODate).toStdString();
  s.status = o.status;
  RunSpec spec = load_spec("mnist");
  if (o.index % 3 == 0) spec.exec.allocator = Allocator::Direct;
  s.spec = spec_text(spec);
  s.steps = o.steps;
  s.us_per_step = 100 + o.index;
  s.test_loss = o.index % 5 == 0 ? std::nan("") : 0.1 + o.index;
  s.final_accuracy = 0.9;
  s.peak_bytes = 1 << 20;
  prof::RunFileWriter writer(path.toStdString(), s);
  for (int i = 0; i < o.steps; ++i) writer.add(prof::Metric{i, i * 1e-3, 2.3 / (1 + i), 0.5});
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::GraphArena, 0, 5);
  writer.add(trace);
  writer.finish();
}

}  // namespace

class LibraryTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  QString at(const QString& name) const { return folder_.path() + "/" + name; }
  void make(int count) {
    for (int i = 0; i < count; ++i) write_run(at(QString("run-%1.wsrun").arg(i, 3, 10, QChar('0'))), {.index = i});
  }

 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void cleanup() {
    QDir(folder_.path()).removeRecursively();
    QDir().mkpath(folder_.path());
  }
  void twoHundredRunsOpenInUnderASecond();
  void recordedRunsHaveAStepTimeBeforeTheyAreOpened();
  void theSecondLineOfARunIsNotCut();
  void namesTagsAndNotesAreKept();
  void aColumnHasOneMeaning();
  void whatIsDeletedComesBack();
  void aRunKeepsItsLetterForLife();
  void moreRunsThanLettersKeepTheirOwn();
  void anEndedRunLeavesMemoryToOthers();
  void filesGoOutAndComeIn();
  void aRunThatIsBeingWrittenIsNotImported();
  void aKilledRunComesInWithItsLog();
  void aFailedExportLeavesNothing();
  void killedRunsAreUnfinished();
  void twoWindowsShareAFolder();
  void theTableFindsFiltersAndSorts();
  void damagedFilesAreSaidOnce();
  void aBadFileIsNotReadAgainByItself();
  void aFaultOfTheDiskPutsNoRunAside();
  void anEmptyMarkPutsNoRunAside();
  void aChangedFileIsMarkedWhileItIsRead();
};

constexpr qint64 kSlower = ws::test::kSanitized ? 4 : 1;  // the sanitizers' share

void LibraryTest::twoHundredRunsOpenInUnderASecond() {
  make(200);
  QElapsedTimer timer;
  timer.start();
  RunLibrary library(folder_.path());
  library.refresh();
  LibraryJobs jobs(library);
  LibraryTab tab(&library, &jobs);
  tab.resize(1300, 800);
  tab.show();
  QCoreApplication::processEvents();
  const qint64 took = timer.elapsed();
  QCOMPARE(library.runs().size(), size_t(200));
  QCOMPARE(tab.table()->model()->rowCount(), 200);
  qInfo("200 runs in %lld ms", took);
  QVERIFY2(took < 1000 * kSlower * ws::test::busy(), qPrintable(QString("%1 ms").arg(took)));
  timer.restart();
  library.refresh();  // nothing is new
  QVERIFY(timer.elapsed() < 300 * kSlower * ws::test::busy());
}

// From the summary alone. A file of an older version has the mean only, until the run is opened.
void LibraryTest::recordedRunsHaveAStepTimeBeforeTheyAreOpened() {
  prof::RunSummary s;
  s.origin = "record", s.status = "finished", s.steps = 5, s.us_per_step = 3000;
  const auto write = [&](const char* name) {
    prof::RunFileWriter writer(at(name).toStdString(), s);
    prof::Trace trace;
    test::add_steps(trace, test::StepStyle::GraphArena, 0, 5);
    writer.add(trace);
    writer.finish();
  };
  s.name = "old", write("old.wsrun");
  s.name = "new", s.step_time = {{2500, 20}, 2400, 2700}, write("new.wsrun");
  s.name = "none", s.step_time = {}, s.us_per_step = 0, write("none.wsrun");
  RunLibrary library(folder_.path());
  library.refresh();
  LibraryModel model(&library);
  std::map<QString, QString> shown;
  for (int row = 0; row < model.rowCount({}); ++row) {
    QVERIFY(!model.run(row)->loaded);
    shown[model.run(row)->title] = model.index(row, LibraryModel::StepTime).data().toString();
  }
  QCOMPARE(shown["old"], step_time_text(3000));
  QCOMPARE(shown["new"], step_time_text(2500));
  QCOMPARE(shown["none"], step_time_text(std::nan("")));
  Run* old = library.byPath(at("old.wsrun"));
  library.setTicked(old, true);
  QTRY_VERIFY(old->loaded);
  QVERIFY(old->step_time.known() && old->stepUs() < 1000);
}

void LibraryTest::theSecondLineOfARunIsNotCut() {
  Run run;
  run.summary = Summary{}, run.spec = plain_choices(run.spec);
  run.created = QDateTime(QDate(2026, 1, 2), QTime(19, 46));
  run.spec.data.limit = 3200, ++run.spec.train.epochs, run.spec.exec.allocator = Allocator::Direct;
  const QFontMetricsF metrics(ui_font(11));
  const auto line = [&](double width) { return second_line(run, nullptr, metrics, width); };
  const QString whole = line(1000);
  QVERIFY2(whole.startsWith(u'3') && whole.contains("200 rows") && whole.contains("arena → direct") && whole.endsWith(" · 19:46") && !whole.contains("more"), qPrintable(whole));
  for (double width = 1000; width > 140; width -= 10) {
    const QString shown = line(width);
    QVERIFY2(!shown.contains(QChar(0x2026)) && metrics.horizontalAdvance(shown) <= width, qPrintable(QString("%1: %2").arg(width).arg(shown)));
  }
  const QString narrow = line(150);
  QVERIFY2(narrow.contains(" + 2 more"), qPrintable(narrow));
}

void LibraryTest::namesTagsAndNotesAreKept() {
  make(2);
  {
    RunLibrary library(folder_.path());
    library.refresh();
    Run* run = library.runs().front();
    QVERIFY(library.rename(run, "  a better   name "));
    QVERIFY(!library.rename(run, "   "));
    QVERIFY(library.setTags(run, {"paper", " slow ", "paper", ""}));
    QVERIFY(library.setNote(run, "two\nlines"));
    QCOMPARE(library.allTags(), QStringList({"paper", "slow"}));
  }
  RunLibrary again(folder_.path());
  again.refresh();
  const Run* run = again.runs().front();
  QCOMPARE(run->title, QString("a better name"));
  QCOMPARE(run->tags, QStringList({"paper", "slow"}));
  QCOMPARE(run->note, QString("two\nlines"));
}

// Its file has all of the trace: what is looked at comes back from there.
void LibraryTest::anEndedRunLeavesMemoryToOthers() {
  Run run;
  run.path = at("ended.wsrun");
  write_run(run.path);
  test::add_steps(run.trace, test::StepStyle::EagerDirect, 0, 40'000);
  QVERIFY2(run.trace.resident_bytes() > (80U << 20), qPrintable(QString::number(run.trace.resident_bytes())));
  RunUpdate last;
  last.summary = Summary{};
  run.apply(std::move(last));
  QVERIFY2(run.trace.resident_bytes() < (66U << 20), qPrintable(QString::number(run.trace.resident_bytes())));
}

void LibraryTest::aRunKeepsItsLetterForLife() {
  make(4);
  QMap<QString, int> letters;
  {
    RunLibrary library(folder_.path());
    library.refresh();
    const auto runs = library.runs();
    library.tickOnly({runs[1], runs[0]});
    QCOMPARE(run_letter(runs[1]->slot), QString("A"));
    QCOMPARE(run_letter(runs[0]->slot), QString("B"));
    QCOMPARE(library.baseline(), runs[1]);  // the first, as in `warpsight diff` and in reports
    QCOMPARE(library.current(), runs[0]);
    QCOMPARE(library.ticked(), (std::vector{runs[1], runs[0]}));
    library.setTicked(runs[1], false);
    library.setTicked(runs[2], true);  // another run does not take the letter that is free
    QCOMPARE(run_letter(runs[2]->slot), QString("C"));
    library.setTicked(runs[1], true);
    QCOMPARE(run_letter(runs[1]->slot), QString("A"));
    for (const Run* run : runs) letters[run->path] = run->letter;
    // Undoing a delete gives back the tick and the letter.
    const QString path = runs[1]->path;
    QVERIFY(library.remove(runs[1]));
    Run* back = library.undoRemove();
    QVERIFY(back && back->path == path);
    QCOMPARE(run_letter(back->slot), QString("A"));
    // A file from elsewhere keeps no letter, but has the same one while the window is open.
    const QString shipped = QStringLiteral(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-arena.wsrun");
    Run* opened = library.open(shipped);
    library.setTicked(opened, true);
    const int letter = opened->letter;
    QVERIFY(letter >= 0 && library.remove(opened));
    library.setTicked(runs[3], true);
    QVERIFY(runs[3]->letter != letter);
    opened = library.open(shipped);
    library.setTicked(opened, true);
    QCOMPARE(opened->letter, letter);
    letters[runs[3]->path] = runs[3]->letter;
  }
  RunLibrary again(folder_.path());
  again.refresh();
  for (Run* run : again.runs()) {
    if (letters[run->path] < 0) continue;
    again.tickOnly({run});
    QCOMPARE(run->slot, letters[run->path]);
  }
  // If two ticked runs were kept with one letter, the second gets a new one.
  Run *first = again.runs()[0], *second = again.runs()[1];
  again.tickOnly({});
  first->letter = second->letter = 3;
  again.setTicked(first, true);
  again.setTicked(second, true);
  QCOMPARE(first->slot, 3);
  QVERIFY(second->slot >= 0 && second->slot % 8 != 3);
}

// The letters go on after Z. They are drawn in a badge of the same size.
void LibraryTest::moreRunsThanLettersKeepTheirOwn() {
  constexpr int kRuns = 40;
  make(kRuns);
  QMap<QString, int> letters;
  {
    RunLibrary library(folder_.path());
    library.refresh();
    for (Run* run : library.runs()) library.tickOnly({run}), letters[run->path] = run->letter;
    const std::set<int> different(letters.begin(), letters.end());
    QCOMPARE(static_cast<int>(different.size()), kRuns);
    QCOMPARE(run_letter(*different.begin()), QString("A"));
    QCOMPARE(run_letter(*different.rbegin()), QString("AR"));
    Run* newest = library.runs()[0];
    library.tickOnly({});
    for (size_t i = 1; i < 8; ++i) library.setTicked(library.runs()[i], true);
    library.setTicked(newest, true);
    QCOMPARE(newest->slot, letters[newest->path]);
  }
  RunLibrary again(folder_.path());
  again.refresh();
  for (Run* run : again.runs()) {
    again.tickOnly({run});
    QCOMPARE(run->slot, letters[run->path]);
  }
  const QString copy = folder_.filePath("copy.wsrun");  // has the letter in its file
  QVERIFY(QFile::copy(again.runs()[3]->path, copy));
  again.refresh();
  QCOMPARE(again.byPath(copy)->letter, -1);
  again.setTicked(again.byPath(copy), true);
  QCOMPARE(run_letter(again.byPath(copy)->slot), QString("AS"));
  class Badge : public QWidget {
    void paintEvent(QPaintEvent*) override {
      QPainter painter(this);
      draw_badge(painter, {4, 4, 15, 15}, 24 * 21 + 20);  // "WW"
    }
  } badge;
  badge.resize(40, 24);
  const auto texts = painted_texts(badge);
  QCOMPARE(texts.size(), size_t{1});
  QVERIFY2(QRectF(4, 4, 15, 15).contains(QRectF(texts[0].box.left(), 8, texts[0].box.width(), 1)), qPrintable(texts[0].text));
}

void LibraryTest::whatIsDeletedComesBack() {
  make(3);
  RunLibrary library(folder_.path());
  library.refresh();
  Run* first = library.runs()[0];
  const QString title = first->title, path = first->path;
  library.setTags(first, {"keep"});
  library.setTicked(first, true);
  QVERIFY(library.remove(first));
  QVERIFY(!QFile::exists(path));
  QCOMPARE(library.runs().size(), size_t(2));
  library.refresh();
  QCOMPARE(library.runs().size(), size_t(2));
  QVERIFY(library.remove(library.runs()[0]));
  QVERIFY(!library.trash().empty());
  library.undoRemove();
  QCOMPARE(library.trash().lastTitle(), title);
  Run* back = library.undoRemove();
  QVERIFY(back);
  QCOMPARE(back->title, title);
  QCOMPARE(back->tags, QStringList("keep"));
  QVERIFY(back->slot >= 0);
  QVERIFY(QFile::exists(path));
  QVERIFY(library.trash().empty());
  QCOMPARE(library.runs().size(), size_t(3));
  // Its place was taken meanwhile: both stay.
  Run* again = library.byPath(path);
  library.remove(again);
  write_run(path, {.index = 77});
  library.undoRemove();
  library.refresh();
  QCOMPARE(library.runs().size(), size_t(4));
}

void LibraryTest::filesGoOutAndComeIn() {
  make(1);
  QTemporaryDir outside;
  RunLibrary library(folder_.path());
  LibraryJobs jobs(library);
  library.refresh();
  Run* run = library.runs().front();
  QSignalSpy exported(&jobs, &LibraryJobs::exported), failed(&jobs, &LibraryJobs::failed);
  const QStringList names{"a.wsrun", "a.json", "a.json.gz"};
  for (const QString& name : names) jobs.exportRun(*run, outside.filePath(name));
  QVERIFY(jobs.busy());
  QTRY_COMPARE(exported.count(), names.size());
  for (const QString& name : names) QVERIFY2(QFileInfo(outside.filePath(name)).size() > 0, qPrintable(name));
  Run *same = nullptr, *trace = nullptr;
  jobs.import(outside.filePath("a.wsrun"), [&](Run* came) { same = came; });
  jobs.import(outside.filePath("a.json.gz"), [&](Run* came) { trace = came; });
  QTRY_VERIFY(same && trace);
  QVERIFY(same != run);
  QCOMPARE(same->title, run->title);
  QCOMPARE(QFileInfo(same->path).absolutePath(), QFileInfo(folder_.path()).absoluteFilePath());
  QCOMPARE(trace->origin, RunOrigin::File);  // a run of ours, whatever file it came in
  QCOMPARE(library.runs().size(), size_t(3));
  QCOMPARE(failed.count(), 0);
  QVERIFY(QFile(outside.filePath("no.wsrun")).open(QIODevice::WriteOnly));
  jobs.import(outside.filePath("no.wsrun"), [](Run*) { QFAIL("an empty file is no run"); });
  QTRY_COMPARE(failed.count(), 1);
  QVERIFY(!jobs.busy());
  QVERIFY(QDir(folder_.path()).entryList({"*.part"}).isEmpty());
}

// Half of its rows are in the log beside the file.
std::unique_ptr<prof::RunFileWriter> begun_run(const QString& path) {
  auto writer = std::make_unique<prof::RunFileWriter>(path.toStdString(), prof::RunSummary{.name = "begun"});
  for (int i = 0; i < 40; ++i) writer->add(prof::Metric{i, i * 1e-3, 1, 0.5});
  writer->flush();
  return writer;
}

void LibraryTest::aRunThatIsBeingWrittenIsNotImported() {
  QTemporaryDir outside;
  const auto writer = begun_run(outside.filePath("a.wsrun"));
  RunLibrary library(folder_.path());
  LibraryJobs jobs(library);
  QSignalSpy failed(&jobs, &LibraryJobs::failed);
  jobs.import(outside.filePath("a.wsrun"), [](Run*) { QFAIL("it is not whole"); });
  QTRY_COMPARE(failed.count(), 1);
  QVERIFY2(failed[0][0].toString().contains("is being written by process"), qPrintable(failed[0][0].toString()));
}

void LibraryTest::aKilledRunComesInWithItsLog() {
  QTemporaryDir outside;
  {
    const auto writer = begun_run(outside.filePath("a.wsrun"));
    for (const char* suffix : {"", "-wal"})  // as a kill leaves them
      QVERIFY(QFile::copy(outside.filePath("a.wsrun") + suffix, outside.filePath("b.wsrun") + suffix));
  }
  RunLibrary library(folder_.path());
  LibraryJobs jobs(library);
  QSignalSpy failed(&jobs, &LibraryJobs::failed);
  Run* came = nullptr;
  jobs.import(outside.filePath("b.wsrun"), [&](Run* run) { came = run; });
  QTRY_VERIFY(came || failed.count() > 0);
  QCOMPARE(failed.count(), 0);
  QCOMPARE(prof::RunFileReader(came->path.toStdString()).metrics().size(), size_t(40));
}

void LibraryTest::aFailedExportLeavesNothing() {
  make(1);
  QTemporaryDir outside;
  RunLibrary library(folder_.path());
  LibraryJobs jobs(library);
  library.refresh();
  QSignalSpy failed(&jobs, &LibraryJobs::failed), exported(&jobs, &LibraryJobs::exported);
  for (const QString& path :
       {outside.filePath("none/a.json"), outside.filePath("a.what"), library.runs().front()->path})
    jobs.exportRun(*library.runs().front(), path);
  QTRY_COMPARE(failed.count(), 3);
  QCOMPARE(exported.count(), 0);
  QCOMPARE(QDir(outside.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot).size(), 0);
  QVERIFY(QFile::exists(library.runs().front()->path));
}

void LibraryTest::killedRunsAreUnfinished() {
  write_run(at("dead.wsrun"), {.status = "running", .index = 1});
  write_run(at("old.wsrun"), {.status = "running", .index = 2});
  write_run(at("alive.wsrun"), {.status = "running", .index = 3});
  const Ownership writes(at("alive.wsrun").toStdString());
  RunLibrary library(folder_.path());
  library.refresh();
  QVERIFY(library.byPath(at("dead.wsrun"))->unfinished);
  QVERIFY(library.byPath(at("old.wsrun"))->unfinished);
  const Run* alive = library.byPath(at("alive.wsrun"));
  QVERIFY(alive->elsewhere && !alive->unfinished);
  QCOMPARE(status_text(*alive), QString("training elsewhere"));
  QVERIFY(!library.remove(library.byPath(at("alive.wsrun"))));
  QCOMPARE(status_text(*library.byPath(at("dead.wsrun"))), QString("unfinished"));
  library.setTicked(library.byPath(at("dead.wsrun")), true);
  QTRY_VERIFY(!library.loading());
  QCOMPARE(library.byPath(at("dead.wsrun"))->steps.size(), size_t(50));
}

void LibraryTest::twoWindowsShareAFolder() {
  make(2);
  write_run(at("live.wsrun"), {.status = "running", .index = 9});
  auto training = std::make_unique<Ownership>(at("live.wsrun").toStdString());
  RunLibrary one(folder_.path()), two(folder_.path());
  one.refresh();
  two.refresh();
  const QString path = one.runs().front()->path;
  QVERIFY(one.rename(one.byPath(path), "renamed in the other window"));
  training.reset();
  write_run(at("live.wsrun"), {.index = 9});  // the other window's training ends
  two.refresh();
  QCOMPARE(two.byPath(path)->title, QString("renamed in the other window"));
  QVERIFY(!two.byPath(at("live.wsrun"))->elsewhere);
  QVERIFY(one.remove(one.byPath(path)));
  QTRY_VERIFY(!two.byPath(path));  // it looks by itself
  one.undoRemove();
  QTRY_VERIFY(two.byPath(path));
}

void LibraryTest::theTableFindsFiltersAndSorts() {
  make(12);
  write_run(at("x.wsrun"), {.status = "failed", .index = 40});
  RunLibrary library(folder_.path());
  library.refresh();
  LibraryJobs jobs(library);
  LibraryTab tab(&library, &jobs);
  LibraryFilter* filter = tab.filter();
  library.setTags(library.byPath(at("run-003.wsrun")), {"paper"});
  library.setNote(library.byPath(at("run-004.wsrun")), "a strange spike");
  const auto found = [&](const QString& text) {
    filter->setText(text);
    return filter->rowCount();
  };
  QCOMPARE(found("direct"), 4);       // a changed choice
  QCOMPARE(found("direct h200"), 2);  // both words
  QCOMPARE(found("tag:paper"), 1);
  QCOMPARE(found("strange"), 1);
  QCOMPARE(found("status:failed"), 1);
  QCOMPARE(found("device:epyc status:finished"), 6);
  QCOMPARE(found(""), 13);
  filter->setStatus("failed");
  QCOMPARE(filter->rowCount(), 1);
  filter->setStatus({});
  filter->setTag("paper");
  QCOMPARE(filter->rowCount(), 1);
  filter->setTag({});
  for (const auto order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
    tab.table()->sortByColumn(LibraryModel::TestLoss, order);
    double before = order == Qt::AscendingOrder ? -1e9 : 1e9;
    bool unknown = false;
    for (int row = 0; row < filter->rowCount(); ++row) {
      const double loss = filter->index(row, LibraryModel::TestLoss).data(LibraryModel::SortRole).toDouble();
      if (std::isnan(loss)) {
        unknown = true;
        continue;
      }
      QVERIFY2(!unknown, "what is not known stands last");
      QVERIFY(order == Qt::AscendingOrder ? loss >= before : loss <= before);
      before = loss;
    }
    QVERIFY(unknown);
  }
  tab.table()->selectRow(0);
  QCOMPARE(tab.chosen().size(), size_t(1));
  const auto count = library.runs().size();
  tab.removeChosen();
  QCOMPARE(library.runs().size(), count - 1);
  tab.undo();
  QCOMPARE(library.runs().size(), count);
}

// A test loss never stands in the column of training losses, a note hides no text, and an empty column takes no space.
void LibraryTest::aColumnHasOneMeaning() {
  make(2);
  RunLibrary library(folder_.path());
  library.refresh();
  LibraryJobs jobs(library);
  LibraryTab tab(&library, &jobs);
  tab.resize(1800, 600);
  tab.show();
  Run* untested = library.byPath(at("run-000.wsrun"));
  library.setNote(untested, "a note");
  library.setTicked(untested, true);
  QTRY_VERIFY(untested->loaded);
  const auto cell = [&](int column, int role = Qt::DisplayRole) {
    for (int row = 0; row < tab.filter()->rowCount(); ++row)
      if (const QModelIndex at = tab.filter()->index(row, column); tab.filter()->run(at) == untested) return at.data(role).toString();
    return QString();
  };
  QCOMPARE(cell(LibraryModel::TestLoss), QString::fromUtf8("–"));
  QVERIFY2(cell(LibraryModel::TrainingLoss).toDouble() > 0, qPrintable(cell(LibraryModel::TrainingLoss)));
  QVERIFY(!cell(LibraryModel::Changes).isEmpty());
  QCOMPARE(cell(LibraryModel::Changes, Qt::ToolTipRole), cell(LibraryModel::Changes));
  QVERIFY(cell(LibraryModel::Name, Qt::ToolTipRole).contains("a note"));
  QVERIFY(tab.table()->isColumnHidden(LibraryModel::Tags) && !tab.table()->isColumnHidden(LibraryModel::TestLoss));
  library.setTags(untested, {"paper"});
  tab.resize(1801, 600);
  QTRY_VERIFY(!tab.table()->isColumnHidden(LibraryModel::Tags));
}

void LibraryTest::damagedFilesAreSaidOnce() {
  make(1);
  QFile broken(at("broken.wsrun"));
  QVERIFY(broken.open(QIODevice::WriteOnly));
  broken.write("SQLite format 3 but no more");
  broken.close();
  RunLibrary library(folder_.path());
  QSignalSpy failed(&library, &RunLibrary::failed);
  library.refresh();
  library.refresh();
  QCOMPARE(failed.count(), 1);
  QVERIFY(failed[0][0].toString().contains("broken.wsrun"));
  QCOMPARE(library.runs().size(), size_t(1));
}

void LibraryTest::aBadFileIsNotReadAgainByItself() {
  make(1);
  write_run(at("slow.wsrun"), {.index = 2});
  {  // a window that ended while it read the file
    QFile mark(at(".reading-slow.wsrun"));
    QVERIFY(mark.open(QIODevice::WriteOnly));
    mark.write("another-boot 1 2");
  }
  {
    RunLibrary library(folder_.path());
    QSignalSpy failed(&library, &RunLibrary::failed);
    library.refresh();
    QCOMPARE(library.runs().size(), size_t(1));
    QVERIFY2(failed[0][0].toString().contains("put aside; open it to try again"), qPrintable(failed[0][0].toString()));
  }
  RunLibrary library(folder_.path());  // the next start
  QSignalSpy failed(&library, &RunLibrary::failed);
  library.refresh();
  library.refresh();
  QCOMPARE(library.runs().size(), size_t(1));
  QCOMPARE(failed.count(), 1);
  QVERIFY2(library.open(at("slow.wsrun")), "asked to, it reads");
  RunLibrary later(folder_.path());
  later.refresh();
  QCOMPARE(later.runs().size(), size_t(2));
  QVERIFY(QDir(folder_.path()).entryList({".reading-*"}, QDir::Files | QDir::Hidden).isEmpty());
}

// A file was read to its end, but its mark could not be removed.
void LibraryTest::anEmptyMarkPutsNoRunAside() {
  make(1);
  QVERIFY(QFile(at(".reading-run-000.wsrun")).open(QIODevice::WriteOnly));
  RunLibrary library(folder_.path());
  library.refresh();
  QCOMPARE(library.runs().size(), size_t(1));
  QVERIFY(!QFile::exists(at(".reading-run-000.wsrun")));
}

int failing_opens = 0;  // of SQLite

int open_with_faults(const char* path, int flags, int mode) {
  if (failing_opens == 0) return ::open(path, flags, mode);
  --failing_opens;
  errno = EIO;
  return -1;
}

void LibraryTest::aFaultOfTheDiskPutsNoRunAside() {
  make(1);
  sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
  QCOMPARE(system->xSetSystemCall(system, "open", reinterpret_cast<sqlite3_syscall_ptr>(open_with_faults)), SQLITE_OK);
  failing_opens = 1;
  RunLibrary library(folder_.path());
  library.refresh();
  QCOMPARE(failing_opens, 0);
  QCOMPARE(library.runs().size(), size_t(1));

  constexpr int kMany = 1'000'000;
  failing_opens = kMany;  // for long: said once, tried again ever more seldom, and the run comes back by itself
  RunLibrary lasting(folder_.path());
  QSignalSpy failed(&lasting, &RunLibrary::failed);
  lasting.refresh();
  const int of_one_try = kMany - failing_opens;
  QElapsedTimer watched;
  watched.start();
  QTest::qWait(2500);
  int tries = 1;  // at 0 s, 1 s, 3 s, 7 s, and so on
  for (qint64 wait = 1000, next = wait; next <= watched.elapsed(); next += wait *= 2) ++tries;
  QVERIFY2(kMany - failing_opens <= tries * of_one_try, qPrintable(QString::number(kMany - failing_opens)));
  failing_opens = 0;
  QCOMPARE(lasting.runs().size(), size_t(0));
  QCOMPARE(failed.count(), 1);
  QVERIFY2(failed[0][0].toString().contains("tries again by itself"), qPrintable(failed[0][0].toString()));
  QTRY_COMPARE_WITH_TIMEOUT(lasting.runs().size(), size_t(1), 60'000);  // the time to the next try doubles
  QVERIFY(!QFile::exists(at(".aside")));
  system->xSetSystemCall(system, "open", nullptr);
}

// Otherwise a file that ends the program would do that at the next start, too.
void LibraryTest::aChangedFileIsMarkedWhileItIsRead() {
  make(1);
  RunLibrary library(folder_.path());
  library.refresh();
  QTest::qWait(20);  // the time of the file's last change differs
  prof::rename_run(at("run-000.wsrun").toStdString(), "changed elsewhere");
  const int watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  inotify_add_watch(watcher, folder_.path().toStdString().c_str(), IN_CREATE);
  library.refresh();
  std::string events(4096, '\0');
  events.resize(static_cast<size_t>(std::max<ssize_t>(0, read(watcher, events.data(), events.size()))));
  close(watcher);
  QCOMPARE(library.runs().front()->title, "changed elsewhere");
  QVERIFY(events.find(".reading-run-000.wsrun") != events.npos);
}

WARPSIGHT_QTEST(LibraryTest)
#include "library_test.moc"
