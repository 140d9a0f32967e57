// The Kernels tab: its sums are the trace's, it sorts, filters and shows what each execution belongs to.
#include <QAbstractItemModelTester>
#include <QLineEdit>
#include <QMenu>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <tuple>

#include "app/timeline/meaning_legend.h"
#include "app/pages/kernels/kernels_panel.h"
#include "app/widgets/instruction_view.h"
#include "app/widgets/theme.h"
#include "profiling/trace/code_places.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;

namespace {

// A run, and the panel that may show it.
struct Kernels {
  void show() {
    panel.setRun(run.get());
    panel.refresh();
  }
  std::unique_ptr<Run> run = test::traced(test::StepStyle::EagerDirect);
  Focus focus;
  KernelsPanel panel{&focus};
};

bool largest_first(const QAbstractItemModel& rows, int column) {
  for (int row = 1; row < rows.rowCount(); ++row)
    if (rows.index(row - 1, column).data(kSortRole).toDouble() < rows.index(row, column).data(kSortRole).toDouble())
      return false;
  return true;
}

}  // namespace

class KernelsTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void kernelsSumToTheTrace();
  void kernelsSortAndFilter();
  void slowestExecutionComesFirst();
  void collectivesWithoutKernelsHaveExecutions();
  void executionsOutsideOfStepsAreEvaluations();
  void columnsFitOrAreChosen();
  void statisticsAndOccupancyAreColumns();
  void graphsHaveRows();
  void namesKeepWhatDiffers();
  void normsAreCalledByTheirName();
  void theSourceOfASampledKernelIsShownWithItsSamples();
  void linesAndInstructionsAreLinked();
  void theSourceOfAKernelIsShownWithTheTimeOfItsLines();
  void aLineHasTheTimeOfWhatItCalls();
};

void KernelsTest::theSourceOfASampledKernelIsShownWithItsSamples() {
  QTemporaryDir folder;
  QFile file(folder.filePath("my.cu"));
  QVERIFY(file.open(QIODevice::WriteOnly));
  for (int line = 1; line <= 60; ++line) file.write(QByteArray("line ") + QByteArray::number(line) + "\n");
  file.close();
  Kernels kernels;
  auto& [run, focus, panel] = kernels;
  run->created = QDateTime::currentDateTime().addSecs(60);
  kernels.show();
  QVERIFY(panel.source()->isHidden());
  const auto add = [&run = run, &panel = panel](const QString& path, int line, prof::Stall reason, uint64_t count) {
    prof::SampledInstruction one{.module = 1, .offset = static_cast<uint32_t>(line * 16), .line = line, .function = panel.rows()[0].name, .file = run->trace.intern(path.toStdString())};
    one.samples[static_cast<size_t>(reason)] = count;
    run->trace.stalls.add(one);
  };
  add(folder.filePath("gone.cu"), 3, prof::Stall::Barrier, 900);
  panel.table()->selectRow(0);
  panel.refresh();
  QVERIFY2(panel.source()->isHidden(), "its file is not on this machine");
  add(file.fileName(), 40, prof::Stall::GlobalMemory, 600), add(file.fileName(), 42, prof::Stall::Barrier, 100);
  panel.refresh();
  QVERIFY(!panel.source()->isHidden());
  const QTableView& table = *panel.source()->table();
  const QAbstractItemModel& lines = *table.model();
  QCOMPARE(table.currentIndex().row(), 39);
  QCOMPARE(lines.index(39, SourceModel::Samples).data().toInt(), 600);
  QVERIFY(lines.index(39, SourceModel::Samples).data(Qt::ToolTipRole).toString().contains("waits for memory: 600"));
  QVERIFY(!lines.index(40, SourceModel::Samples).data().isValid());
  QVERIFY(!table.isColumnHidden(SourceModel::Samples) && table.isColumnHidden(SourceModel::Time));
}

// nvdisasm is a stand-in: line 40 has two instructions, line 42 one, and one belongs to no line.
void KernelsTest::linesAndInstructionsAreLinked() {
  QTemporaryDir folder;
  const auto write = [&folder](const char* name, const QByteArray& text) {
    QFile file(folder.filePath(name));
    file.open(QIODevice::WriteOnly);
    file.write(text), file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return folder.filePath(name);
  };
  const QString source = write("my.cu", QByteArray("line\n").repeated(60));
  write("nvdisasm", "#!/bin/sh\nfor i in 0 10 20 30; do echo \"        /*00$i*/  FADD R$i, R1, R2 ;\"; done\n");
  const QByteArray path = qgetenv("PATH");
  qputenv("PATH", folder.path().toUtf8() + ":" + path);
  Kernels kernels;
  auto& [run, focus, panel] = kernels;
  run->created = QDateTime::currentDateTime().addSecs(60);
  kernels.show();
  const prof::NameId function = panel.rows()[0].name, file = run->trace.intern(source.toStdString());
  for (const auto& [offset, line, count] : {std::tuple(0u, 40, 500u), {16u, 40, 0u}, {32u, 42, 100u}}) {
    prof::SampledInstruction one{.module = 1, .offset = offset, .line = line, .function = function, .file = file};
    one.samples[static_cast<size_t>(prof::Stall::GlobalMemory)] = count;
    run->trace.stalls.add(one);
  }
  panel.table()->selectRow(0), panel.refresh();
  QVERIFY2(panel.source()->instructions()->isHidden(), "a run of an older version keeps no code");
  run->trace.stalls.add(prof::SampledCode{1, function, 90, std::string(64, '\1')});
  panel.refresh();
  InstructionView& view = *panel.source()->instructions();
  QVERIFY(!view.isHidden());
  QTRY_COMPARE(view.model().rowCount(), 4);
  QCOMPARE(view.model().row(1).instruction, std::string("FADD R10, R1, R2"));
  QCOMPARE(view.model().index(0, InstructionModel::Samples).data().toInt(), 500);
  QVERIFY(view.model().index(0, InstructionModel::Samples).data(Qt::ToolTipRole).toString().contains("FADD R0, R1, R2: 500 samples"));
  QVERIFY(view.title().contains("4 instructions"));
  emit panel.source()->table()->clicked(panel.source()->table()->model()->index(39, SourceModel::Text));
  QCOMPARE(view.model().rowCount(), 2);
  QCOMPARE(view.title(), QString("line 40 · 2 instructions · 500 samples"));
  emit panel.source()->table()->clicked(panel.source()->table()->model()->index(10, SourceModel::Text));
  QCOMPARE(view.model().rowCount(), 4);
  emit view.table()->clicked(view.model().index(2, InstructionModel::Text));
  QCOMPARE(panel.source()->table()->currentIndex().row(), 41);
  QVERIFY(QFile::remove(source));
  panel.refresh();
  QVERIFY2(panel.source()->note().contains("is not on this machine"), qPrintable(panel.source()->note()));
  QVERIFY(!view.isHidden() && panel.source()->table()->isHidden());
  qputenv("PATH", path);
}

void KernelsTest::theSourceOfAKernelIsShownWithTheTimeOfItsLines() {
  QTemporaryDir folder;
  QFile file(folder.filePath("net.py"));
  QVERIFY(file.open(QIODevice::WriteOnly));
  for (int line = 1; line <= 400; ++line) file.write(QByteArray("line ") + QByteArray::number(line) + "\n");
  file.close();
  Kernels kernels;
  auto& [run, focus, panel] = kernels;
  run->record_folder = folder.path();
  run->created = QDateTime::currentDateTime().addSecs(60);
  kernels.show();
  QVERIFY2(panel.source()->isHidden(), "our own trainings have no lines");
  QVERIFY2(panel.headline().contains(" % of the kernel time") && panel.headline().contains("; the kernel with the most time is "), qPrintable(panel.headline()));
  for (prof::OpInfo& op : run->trace.ops) op.stack = prof::stack_from_text("net.py:217 in Net.forward");
  panel.refresh();
  QVERIFY(!panel.source()->isHidden());
  const QAbstractItemModel& lines = *panel.source()->table()->model();
  QCOMPARE(lines.rowCount(), 400);
  QCOMPARE(panel.source()->table()->currentIndex().row(), 216);
  QCOMPARE(lines.index(216, SourceModel::Text).data().toString(), "line 217");
  QVERIFY(!lines.index(216, SourceModel::Time).data().toString().isEmpty());
  QVERIFY(lines.index(215, SourceModel::Time).data().toString().isEmpty());
  QVERIFY(panel.source()->note().isEmpty());
  run->created = QDateTime::currentDateTime().addSecs(-3600);
  panel.refresh();
  QVERIFY2(panel.source()->note().contains("changed after"), qPrintable(panel.source()->note()));
  QVERIFY(file.remove());
  panel.refresh();
  QVERIFY2(panel.source()->note().contains("is not on this machine"), qPrintable(panel.source()->note()));
  QVERIFY2(panel.source()->isHidden(), "an empty source takes no place");
  QCOMPARE(lines.rowCount(), 0);
  // A cell of a notebook is in no file: its text came with the run.
  for (prof::OpInfo& op : run->trace.ops) op.stack = prof::stack_from_text("<ipython-input-3-ab>:2 in train");
  prof::RunSummary account;
  account.extra["source:<ipython-input-3-ab>"] = "def train():\n    net(x)\n";
  run->takeAccount(account);
  panel.refresh();
  QVERIFY(panel.source()->note().isEmpty());
  QCOMPARE(lines.rowCount(), 2);
  QCOMPARE(panel.source()->table()->currentIndex().row(), 1);
  QCOMPARE(lines.index(1, SourceModel::Text).data().toString(), "    net(x)");
}

void KernelsTest::aLineHasTheTimeOfWhatItCalls() {
  QTemporaryDir folder;
  QFile file(folder.filePath("train.py"));
  QVERIFY(file.open(QIODevice::WriteOnly));
  for (int line = 1; line <= 40; ++line) file.write("        loss = step(net, batch)\n");
  file.close();
  Kernels kernels;
  auto& [run, focus, panel] = kernels;
  run->record_folder = folder.path();
  run->created = QDateTime::currentDateTime().addSecs(60);
  panel.resize(1200, 700);
  panel.show();
  kernels.show();
  QVERIFY2(panel.table()->isColumnHidden(KernelsPanel::WithCalls), "nothing is known of calls");
  for (size_t i = 1; i < run->trace.ops.size(); ++i)
    run->trace.ops[i].stack = prof::stack_from_text("net.py:" + std::to_string(i) + " in Net.forward < train.py:9 in main");
  for (QAction* action : panel.findChildren<QAction*>())
    if (action->text() == "By line") action->trigger();
  const QAbstractItemModel& rows = *panel.table()->model();
  QVERIFY(!panel.table()->isColumnHidden(KernelsPanel::WithCalls));
  qlonglong all = 0;
  int calling = -1;
  for (int row = 0; row < rows.rowCount(); ++row) {
    all += rows.index(row, KernelsPanel::Total).data(kSortRole).toLongLong();
    if (rows.index(row, 0).data().toString() == "train.py:9 in main") calling = row;
  }
  QVERIFY(calling >= 0);
  QCOMPARE(rows.index(calling, KernelsPanel::Count).data().toString(), QString("0"));
  QCOMPARE(rows.index(calling, KernelsPanel::Mean).data().toString(), QString("—"));
  QVERIFY(rows.index(calling, KernelsPanel::WithCalls).data(kSortRole).toLongLong() > all / 2);
  panel.table()->setCurrentIndex(rows.index(calling, 0));
  QCOMPARE(panel.source()->table()->currentIndex().row(), 8);
  QVERIFY2(panel.instances()->model()->rowCount() > 0, "what its calls launched");
  for (const ThemeName name : {ThemeName::Light, ThemeName::Dark}) {
    set_theme(*qApp, name);
    const QByteArray pictures = qgetenv("WARPSIGHT_PICTURES");
    if (!pictures.isEmpty())
      panel.grab().save(QString::fromLocal8Bit(pictures) + (name == ThemeName::Light ? "/kernels-by-line-light.png" : "/kernels-by-line-dark.png"));
  }
}

void KernelsTest::kernelsSumToTheTrace() {
  Kernels kernels;
  auto& [run, focus, panel] = kernels;
  QAbstractItemModelTester tester(panel.model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  kernels.show();
  int64_t shown = 0, expected = 0;
  double share = 0;
  for (int row = 0; row < panel.model()->rowCount(); ++row)
    shown += panel.rows()[static_cast<size_t>(row)].time.total, share += panel.rows()[static_cast<size_t>(row)].share;
  for (const auto& track : run->trace.tracks())
    if (track.kind == prof::TrackKind::Stream)
      for (const auto& block : track.blocks)
        for (const auto& span : block.spans) expected += static_cast<int64_t>(span.duration);
  QCOMPARE(shown, expected);
  QVERIFY(std::abs(share - 1) < 1e-9);
  const QStringList colours = panel.findChild<MeaningLegend*>()->names();
  for (const char* name : {"matrix product", "pointwise"}) QVERIFY2(colours.contains(name), qPrintable(colours.join(", ")));
  QVERIFY2(!colours.contains("allocator calls"), "no row has that colour");
}

void KernelsTest::kernelsSortAndFilter() {
  Kernels kernels;
  kernels.show();
  KernelsPanel& panel = kernels.panel;
  auto* shown = panel.table()->model();
  for (int column : {int(KernelsPanel::Total), int(KernelsPanel::Count), int(KernelsPanel::Max)}) {
    panel.table()->sortByColumn(column, Qt::DescendingOrder);
    QVERIFY(largest_first(*shown, column));
  }
  const int all = shown->rowCount();
  panel.findChild<QLineEdit*>()->setText("softmax");
  QVERIFY(shown->rowCount() > 0 && shown->rowCount() < all);
}

void KernelsTest::slowestExecutionComesFirst() {
  Kernels kernels;
  auto& [run, focus, panel] = kernels;
  QSignalSpy revealed(&focus, &Focus::revealed);
  kernels.show();
  double total = 0;
  for (double count : panel.histogram()->data().counts) total += count;
  const auto* row = &panel.rows().at(0);
  QCOMPARE(static_cast<uint64_t>(total), row->time.count);
  panel.instances()->setCurrentIndex(panel.instances()->model()->index(0, 0));
  QCOMPARE(revealed.size(), 1);
  QCOMPARE(static_cast<int64_t>(focus.get<SpanChoice>()->span.duration), row->time.max);
}

void KernelsTest::collectivesWithoutKernelsHaveExecutions() {
  Kernels kernels;
  kernels.run = std::make_unique<Run>();
  prof::Trace& trace = kernels.run->trace;
  const prof::TrackId track = trace.track(prof::TrackKind::Collectives, "collectives", "GPU 0");
  for (int i = 0; i < 7; ++i) {
    prof::Span span{.start = i * 10'000, .duration = 4000};
    span.kind = static_cast<uint64_t>(prof::SpanKind::Op), span.name = trace.intern("AllReduce");
    span.meaning = static_cast<uint64_t>(prof::Meaning::Communication);
    trace.append(track, span);
  }
  kernels.show();
  QCOMPARE(kernels.panel.rows().at(0).time.count, uint64_t{7});
  QCOMPARE(kernels.panel.instances()->model()->rowCount(), 7);
}

// What a run does outside of its steps is evaluation; of another program's trace nobody knows.
void KernelsTest::executionsOutsideOfStepsAreEvaluations() {
  Kernels kernels;
  Run* run = kernels.run.get();
  KernelsPanel& panel = kernels.panel;
  const auto stream = std::ranges::find(run->trace.tracks(), prof::TrackKind::Stream, &prof::Track::kind);
  prof::Span span = stream->blocks.front().spans.front();
  span.start = run->trace.last_time() + 1000, span.duration = 9'000'000, span.step = 0;
  const prof::TrackId track = run->trace.track(prof::TrackKind::Stream, stream->name, stream->group);
  run->trace.append(track, span);
  const auto slowest = [&] { return panel.instances()->model()->index(0, 1).data().toString(); };
  kernels.show();
  // What runs outside of the steps comes when asked: the training's kernels stand first.
  for (int row = 0; row < panel.instances()->model()->rowCount(); ++row)
    QVERIFY(panel.instances()->model()->index(row, 1).data().toString() != "outside of the steps");
  const double in_steps = panel.rows().front().time.total;
  panel.showWholeRun(true);
  panel.table()->setCurrentIndex(panel.table()->model()->index(0, 0));
  QVERIFY(static_cast<double>(panel.rows().front().time.total) > in_steps);
  // The steps of the training come first, the slowest at the top. An evaluation may take longer.
  const QAbstractItemModel& rows = *panel.instances()->model();
  QVERIFY(slowest() != "outside of the steps");
  bool evaluations = false;
  for (int row = 0; row < rows.rowCount(); ++row) {
    const bool one = rows.index(row, 1).data().toString() == "outside of the steps";
    QVERIFY2(one || !evaluations, "a step below an evaluation");
    evaluations |= one;
  }
  QVERIFY(evaluations);
  run->origin = RunOrigin::Imported;
  panel.refresh();
  QCOMPARE(slowest(), QString::fromUtf8("—"));
}

// Where there is space all usual columns stand; in a narrow window the names have it.
void KernelsTest::columnsFitOrAreChosen() {
  Kernels kernels;
  auto& [run, focus, panel] = kernels;
  panel.setRun(run.get());
  panel.show();
  const auto hidden = [&](int column) { return panel.table()->isColumnHidden(column); };
  const auto shown = [&] {
    int width = 0;
    for (int c = 0; c < KernelsPanel::Columns; ++c) width += panel.table()->columnWidth(c);
    return width;
  };
  panel.resize(1500, 600);
  QVERIFY(!hidden(KernelsPanel::Registers) && !hidden(KernelsPanel::Grid) && !hidden(KernelsPanel::Occupancy));
  QVERIFY(hidden(KernelsPanel::Sigma) && hidden(KernelsPanel::P999));
  panel.resize(1000, 600);
  QVERIFY(hidden(KernelsPanel::Registers));
  QVERIFY(!hidden(KernelsPanel::Occupancy));
  QVERIFY(panel.table()->columnWidth(KernelsPanel::Name) >= 290);
  QVERIFY2(shown() <= panel.table()->viewport()->width(), "nothing is cut off");
  // What a person picks stands whatever the width, and is what the menu ticks.
  const auto action = [&](const QString& name) {
    for (QAction* each : panel.columnMenu()->actions())
      if (each->text() == name) return each;
    return static_cast<QAction*>(nullptr);
  };
  QVERIFY(action("σ, µs") && action("P99.9, µs") && action("of total, %"));
  QVERIFY(!action("σ, µs")->isChecked());
  action("σ, µs")->trigger();
  action("P99.9, µs")->trigger();
  action("of total, %")->trigger();
  QVERIFY(!hidden(KernelsPanel::Sigma) && !hidden(KernelsPanel::P999) && hidden(KernelsPanel::Share));
  QVERIFY(action("σ, µs")->isChecked() && !action("of total, %")->isChecked());
  panel.resize(1500, 600);
  QVERIFY(hidden(KernelsPanel::Share));
  KernelsPanel again(&focus);
  again.setColumns(panel.columns());
  QVERIFY(!again.table()->isColumnHidden(KernelsPanel::P999) && again.table()->isColumnHidden(KernelsPanel::Share));
  panel.showUsualColumns();
  QVERIFY(hidden(KernelsPanel::Sigma) && !hidden(KernelsPanel::Share));
  QVERIFY(panel.columns().isEmpty());
}

void KernelsTest::statisticsAndOccupancyAreColumns() {
  Kernels kernels;
  kernels.show();
  KernelsPanel& panel = kernels.panel;
  const auto* row = &panel.rows().at(0);
  QVERIFY(row && row->occupancy);
  const auto text = [&](int column) { return panel.model()->index(0, column).data().toString(); };
  QVERIFY2(text(KernelsPanel::Occupancy).contains(" %"), qPrintable(text(KernelsPanel::Occupancy)));
  for (const int column :
       {KernelsPanel::Min, KernelsPanel::Sigma, KernelsPanel::P90, KernelsPanel::P95, KernelsPanel::P999}) {
    QVERIFY(text(column).toDouble() > 0);
    panel.table()->sortByColumn(column, Qt::DescendingOrder);
    QVERIFY(largest_first(*panel.table()->model(), column));
  }
  kernels.run->device = "a card of tomorrow";
  panel.refresh();
  QCOMPARE(text(KernelsPanel::Occupancy), QString::fromUtf8("—"));
  QVERIFY(panel.table()->isColumnHidden(KernelsPanel::Occupancy));
}

// At level Graphs the launches are what was recorded; marks of the capture are no kernels.
void KernelsTest::graphsHaveRows() {
  Run run;
  run.slot = 0, run.summary = Summary{}, run.device = "NVIDIA H200";
  const auto add = [&](prof::TrackKind kind, prof::SpanKind what, prof::TimeNs start, const char* name) {
    prof::Span span;
    span.start = start, span.duration = 300, span.kind = static_cast<uint64_t>(what),
    span.name = run.trace.intern(name);
    run.trace.append(run.trace.track(kind, "row " + std::to_string(static_cast<int>(kind)), "GPU 0"), span);
  };
  add(prof::TrackKind::CpuThread, prof::SpanKind::Op, 0, "fc1");
  for (int i = 1; i <= 5; ++i) add(prof::TrackKind::GraphLaunches, prof::SpanKind::GraphRun, i * 1000, "graph 3");
  Focus focus;
  KernelsPanel panel(&focus);
  panel.setRun(&run);
  panel.refresh();
  QCOMPARE(panel.model()->rowCount(), 1);
  QCOMPARE(panel.model()->index(0, KernelsPanel::Name).data().toString(), QString("graph 3 · whole graph"));
  QCOMPARE(panel.instances()->model()->rowCount(), 5);
}

// Instances of one template differ in some of their arguments. Only these stand in the table; the tip has the whole name.
void KernelsTest::namesKeepWhatDiffers() {
  Run run;
  run.slot = 0, run.summary = Summary{};
  const std::string names[] = {"void gemm<false, true, 64, 32>(float*)", "void gemm<false, true, 128, 32>(float*)"};
  for (size_t i = 0; i < 2; ++i) {
    prof::Span span{.start = static_cast<prof::TimeNs>(1000 * i), .duration = 300 - 100 * i, .kind = static_cast<uint64_t>(prof::SpanKind::Kernel)};
    span.name = run.trace.intern(names[i]);
    run.trace.append(run.trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0"), span);
  }
  Focus focus;
  KernelsPanel panel(&focus);
  panel.setRun(&run);
  panel.refresh();
  QStringList shown, tips;
  for (int row = 0; row < panel.model()->rowCount(); ++row) {
    const QModelIndex name = panel.model()->index(row, KernelsPanel::Name);
    shown << name.data().toString(), tips << name.data(Qt::ToolTipRole).toString();
  }
  QCOMPARE(shown, QStringList({"gemm · 64", "gemm · 128"}));
  QCOMPARE(tips, QStringList({QString::fromStdString(names[0]), QString::fromStdString(names[1])}));
}

void KernelsTest::normsAreCalledByTheirName() {
  Run run;
  run.slot = 0, run.summary = Summary{};
  for (const auto& [name, ns] : {std::pair{"void cudnn::bn_bw_1C11_kernel_new<float>", 700u}, {"reduce_kernel<512, 1>", 300u}}) {
    prof::Span span{.start = static_cast<prof::TimeNs>(ns), .duration = ns, .kind = static_cast<uint64_t>(prof::SpanKind::Kernel)};
    span.name = run.trace.intern(name), span.meaning = static_cast<uint8_t>(prof::Meaning::Reduction);
    run.trace.append(run.trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0"), span);
  }
  Focus focus;
  KernelsPanel panel(&focus);
  panel.setRun(&run);
  panel.refresh();
  QVERIFY2(panel.headline().startsWith("Reduction takes 100 % of the kernel time; the kernel with the most time is "), qPrintable(panel.headline()));
  const auto name = [&](int row) { return panel.model()->index(row, KernelsPanel::Name).data().toString(); };
  QVERIFY2(name(0).endsWith(QString::fromUtf8(" · batch norm")) && !name(1).contains("norm"), qPrintable(name(0) + "\n" + name(1)));
}

WARPSIGHT_QTEST(KernelsTest)
#include "kernels_test.moc"
