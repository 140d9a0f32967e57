// The Compare tab: its pickers, tables and linked timelines, also of many and long runs.
#include <QBuffer>
#include <QComboBox>
#include <QLabel>
#include <QPainter>
#include <QProcess>
#include <QSignalSpy>
#include <QSvgGenerator>
#include <QTabBar>
#include <QTableView>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <ctime>

#include "app/charts/flame_view.h"
#include "app/pages/compare/compare_headline.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/compare/compare_table.h"
#include "app/pages/compare/compare_tables.h"
#include "app/workspace/compared_live_run.h"
#include "app/workspace/run_loader.h"
#include "profiling/formats/convert.h"
#include "app/widgets/paged_pane.h"
#include "app/pages/compare/step_view.h"
#include "app/pages/compare/waterfall_view.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"
#include "app/timeline/meaning_legend.h"
#include "app/timeline/time_scale.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/machine.h"
#include "tests/support/sanitizers.h"

using namespace ws;
using namespace ws::app;
using test::made;

namespace {

void settle(CompareTab& tab) {
  QTRY_VERIFY(tab.ready());
}

// Two runs, compared in a window of that size.
struct TwoCompared {
  explicit TwoCompared(QSize size) {
    tab.resize(size);
    tab.show();
    compare();
  }
  void compare() {
    tab.setRuns({a.get(), b.get()});
    settle(tab);
  }
  std::unique_ptr<Run> a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  CompareTab tab;
};

// Steps whose allocations are not known, in which the test hands out what it likes.
void forget_memory(Run& run) {
  prof::Trace bare;
  copy_trace(run.trace, {0, run.trace.last_time() + 1}, bare);
  bare.drop_points();
  run.trace = std::move(bare);
}

QString written(const QTemporaryDir& folder, const QString& name, test::StepStyle style, int64_t steps) {
  prof::RunData data;
  RunSpec spec;
  spec.name = "test";
  data.summary.name = name.toStdString(), data.summary.status = "finished", data.summary.spec = spec_text(spec);
  data.summary.steps = 400, data.summary.wall_s = 0.5, data.summary.us_per_step = 123.4, data.summary.device = "GPU";
  data.summary.peak_bytes = 3 << 20, data.summary.extra["driver_calls_per_step"] = "2.500000";
  test::add_steps(data.trace, style, 0, steps);
  for (int64_t i = 0; i < 4000; ++i)
    data.metrics.push_back({i, 1e-4 * double(i) + 1e-6 * double(i * 7919 % 101), 2.3 / (1 + 0.01 * double(i)), 0.5});
  data.evaluations = {{200, 1, 0.2, 0.4, 0.91}, {400, 2, 0.4, 0.3, 0.95}};
  const QString path = folder.filePath(name + ".wsrun");
  prof::export_run(data, path.toStdString());
  return path;
}

std::unique_ptr<Run> opened(const QString& path, int slot) {
  auto run = std::make_unique<Run>();
  read_summary(*run, path);
  give_details(*run, std::move(*read_details(path)));
  run->slot = slot;
  return run;
}

QStringList said_by_diff(const QString& a, const QString& b) {
  QProcess diff;
  diff.start(WARPSIGHT_CLI, {"diff", a, b});
  diff.waitForFinished();
  return QString::fromUtf8(diff.readAllStandardOutput()).split('\n');
}

// Without thin spaces and the true minus, as the command line prints.
QString plain(QString text) { return text.remove(QChar(0x202F)).remove(QChar(0x2009)).replace(QChar(0x00A0), ' ').replace(QChar(0x2212), '-').trimmed(); }

QString plain_text(const QAbstractItemModel& rows, int row, int column) { return plain(rows.index(row, column).data().toString()); }

// "step time, median, µs" of the window is "step time, median (µs)" there.
QString line_of(const QStringList& printed, const QString& name) {
  for (const QString& line : printed) {
    const QString head = line.left(line.indexOf("  ", 3)).trimmed();
    if (head == name || QString(head).replace(" (", ", ").remove(')') == name) return line;
  }
  return {};
}

}  // namespace

class CompareTabTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void oneRunIsNotComparedWithItself();
  void theTableShowsWholeRowsOnly();
  void theFirstLetterIsTheBaseline();
  void aChosenPairIsReported();
  void onlyRunsOfTheSameWorkAreRanked();
  void theHeadlineIsWholeAtAnyWidth();
  void causesHaveTheUnitOfTheStep();
  void theTableKnowsEveryRun();
  void timelinesZoomTogether();
  void timelinesAlignAtAStep();
  void theColoursHaveAKey();
  void onlyDifferentChoicesAreListed();
  void linesOfAnXrayAreComparedIfBothRunsHaveOne();
  void theWaterfallIsSplitByOpWhenAsked();
  void launchingStacksAreCompared();
  void memoryIsDrawnOnOneScale();
  void memoryIsOneMeasureForAllRuns();
  void theCommandLineReportsTheSame();
  void aRunThatGoesAwayIsForgotten();
  void eightRunsOfAMillionSpansStayQuick();
};

void CompareTabTest::theTableShowsWholeRowsOnly() {
  TwoCompared two({1300, 900});
  auto& table = *dynamic_cast<CompareTable*>(two.tab.measures());
  two.tab.resize(1300, 900);
  const auto rows_end = [&table] {
    int end = 0;
    for (int row = 0; row < table.rowCount() && table.rowViewportPosition(row) + table.rowHeight(row) <= table.viewport()->height(); ++row)
      end = table.rowViewportPosition(row) + table.rowHeight(row);
    return end;
  };
  int cut = 0;
  for (int height = 860; height < 900; height += 3) {
    two.tab.resize(1300, height);
    QVERIFY(table.rowViewportPosition(table.rowCount() - 1) > table.viewport()->height());
    const int from = table.cutFrom(), whole = rows_end();
    QCOMPARE(from, whole == table.viewport()->height() ? -1 : whole);
    if (from < 0) continue;
    ++cut;
    const QImage below = table.viewport()->grab(QRect(0, from, 200, table.viewport()->height() - from)).toImage();
    for (int y = 0; y < below.height(); ++y)
      for (int x = 0; x < below.width(); ++x) QCOMPARE(below.pixelColor(x, y), theme().base);
  }
  QVERIFY(cut > 5);
}

void CompareTabTest::oneRunIsNotComparedWithItself() {
  CompareTab tab;
  const auto one = made("one", test::StepStyle::GraphArena, 0), two = made("two", test::StepStyle::EagerDirect, 1);
  const auto pickers = tab.picker()->findChildren<QComboBox*>();
  QCOMPARE(pickers.size(), 2);
  tab.setRuns({one.get()});
  QCOMPARE(pickers[0]->currentIndex(), -1);
  QCOMPARE(pickers[0]->placeholderText(), QString("tick a second run"));
  QCOMPARE(pickers[1]->currentIndex(), 0);
  tab.setRuns({one.get(), two.get()});
  QVERIFY(pickers[0]->currentIndex() != pickers[1]->currentIndex());
  const Run* before = tab.baseline();
  tab.setPair(tab.baseline(), tab.baseline());  // the same in both: they change places
  QCOMPARE(tab.candidate(), before);
  QVERIFY(tab.baseline() && tab.baseline() != before);
  tab.setRuns({});
}

// The faster one does not matter, as with `diff`: the first file there is the first run here.
void CompareTabTest::theFirstLetterIsTheBaseline() {
  for (const bool slow_first : {true, false}) {
    const auto a = made("a", slow_first ? test::StepStyle::EagerDirect : test::StepStyle::GraphArena, 0),
               b = made("b", slow_first ? test::StepStyle::GraphArena : test::StepStyle::EagerDirect, 1);
    CompareTab tab;
    tab.setRuns({a.get(), b.get()});
    QCOMPARE(tab.baseline(), a.get());
    QCOMPARE(tab.candidate(), b.get());
    settle(tab);
    QVERIFY(plain(tab.headline()->findChild<QLabel*>()->text()).contains(QRegularExpression(slow_first ? "faster|less time" : "slower|more time")));
    tab.swapRuns();
    QCOMPARE(tab.baseline(), b.get());
    tab.setRuns({});
  }
}

// The pair that a person chooses in the pickers is reported: the window gives these roles to the runs.
void CompareTabTest::aChosenPairIsReported() {
  std::vector<std::unique_ptr<Run>> runs;
  for (int i = 0; i < 3; ++i)
    runs.push_back(made(QString("run %1").arg(i), i ? test::StepStyle::GraphArena : test::StepStyle::EagerDirect, i));
  Run *a = runs[0].get(), *b = runs[1].get(), *c = runs[2].get();
  CompareTab tab;
  QSignalSpy chosen(&tab, &CompareTab::pairChosen);
  tab.setRuns({a, b, c});
  QCOMPARE(tab.baseline(), a);
  QCOMPARE(tab.candidate(), b);
  QCOMPARE(chosen.count(), 0);
  auto* candidates = tab.picker()->findChildren<QComboBox*>()[1];
  candidates->setCurrentIndex(2);
  emit candidates->activated(2);
  QCOMPARE(chosen.count(), 1);
  QCOMPARE(chosen[0][0].value<Run*>(), a);
  QCOMPARE(chosen[0][1].value<Run*>(), c);
  tab.setRuns({b, c});  // other roles
  QCOMPARE(tab.baseline(), b);
  QCOMPARE(tab.candidate(), c);
  tab.setRuns({});
}

// A network of another size is no faster or slower.
void CompareTabTest::onlyRunsOfTheSameWorkAreRanked() {
  std::vector<std::unique_ptr<Run>> runs;
  for (int i = 0; i < 4; ++i)
    runs.push_back(made(QString("run %1").arg(i), i ? test::StepStyle::GraphArena : test::StepStyle::EagerDirect, i));
  CompareTab tab;
  tab.resize(1300, 900);
  const auto said = [&] {
    tab.setRuns({runs[0].get(), runs[1].get(), runs[2].get(), runs[3].get()});
    settle(tab);
    QString all;
    for (const QLabel* label : tab.headline()->findChildren<QLabel*>()) all += label->text() + "\n";
    return all;
  };
  QVERIFY2(said().contains("Fastest of 4: "), qPrintable(said()));
  runs[3]->spec.model.hidden = {7};
  tab.setRuns({});
  QVERIFY2(said().contains("Fastest of the 3 that do the same work: "), qPrintable(said()));
  runs[2]->spec.data.name = "iris";
  tab.setRuns({});
  QVERIFY2(!said().contains("Fastest"), qPrintable(said()));
  tab.setRuns({});
}

// Its sentences take one line or several; none is cut off.
void CompareTabTest::theHeadlineIsWholeAtAnyWidth() {
  const auto slow = made("slow", test::StepStyle::EagerDirect, 0), fast = made("fast", test::StepStyle::GraphArena, 1);
  slow->device = "NVIDIA H200", fast->device = "2 × NVIDIA H100 80GB HBM3";
  fast->spec.model.hidden = {784, 784, 784, 784}, fast->spec.exec.precision = Precision::Tf32, fast->spec.train.epochs = 3;
  CompareTab tab;
  tab.resize(1500, 800);
  tab.show();
  tab.setRuns({});
  tab.setRuns({slow.get(), fast.get()});
  settle(tab);
  QVERIFY(tab.headline()->findChildren<QLabel*>()[0]->text().contains(QChar(0x00A0)) ||
          !tab.headline()->findChildren<QLabel*>()[0]->text().contains(" %"));
  for (const int width : {1500, 1018, 860, 1300}) {
    tab.resize(width, 800);
    QCoreApplication::processEvents();
    for (const QLabel* label : tab.headline()->findChildren<QLabel*>())
      if (label->isVisible())
        QVERIFY2(label->height() >= label->heightForWidth(label->width()),
                 qPrintable(QString("%1: %2").arg(width).arg(label->text())));
  }
  tab.setRuns({});
}

void CompareTabTest::causesHaveTheUnitOfTheStep() {
  const auto slow = made("slow", test::StepStyle::EagerDirect, 0), fast = made("fast", test::StepStyle::GraphArena, 1);
  ComparedRuns compared;
  compared.runs = {slow.get(), fast.get()}, compared.baseline = slow.get(), compared.candidate = fast.get();
  for (const Run* run : {slow.get(), fast.get()}) compared.figures.push_back(std::make_shared<ComparedRun>(compared_run(*run)));
  compared.comparison = compare(*compared.figures[0], *compared.figures[1]);
  compared.comparison.split = true;
  constexpr int64_t kMs = 1'000'000'000;
  const auto said = [&](int64_t unit) {
    compared.comparison.by_kind = {12 * unit, 8 * unit, {{prof::Meaning::Communication, 7 * unit, 1 * unit}, {prof::Meaning::Matrix, 5 * unit, 7 * unit}}};
    CompareHeadline headline;
    headline.setRuns(compared);
    QString all;
    for (const QLabel* label : headline.findChildren<QLabel*>()) all += plain(label->text()) + "\n";
    return all;
  };
  QVERIFY2(said(kMs).contains("<b>communication -6.00 ms</b>, matrix product +2.00 ms."), qPrintable(said(kMs)));
  QVERIFY2(said(kMs / 1000).contains("<b>communication -6.0 µs</b>"), qPrintable(said(kMs / 1000)));
}

void CompareTabTest::theTableKnowsEveryRun() {
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<Run*> ticked;
  for (int i = 0; i < 8; ++i) {
    runs.push_back(
        made(QString("run %1").arg(i), i % 2 ? test::StepStyle::GraphArena : test::StepStyle::EagerDirect, i));
    ticked.push_back(runs.back().get());
  }
  ticked[0]->tracing_cost = {0.01, 0.05}, ticked[1]->tracing_cost = {0.2, 0.01};
  CompareTab tab;
  tab.resize(1300, 900);
  for (const size_t count : {2U, 3U, 8U}) {
    tab.setRuns({ticked.begin(), ticked.begin() + static_cast<std::ptrdiff_t>(count)});
    settle(tab);
    QCOMPARE(tab.ordered().size(), count);
    QCOMPARE(tab.ordered().front(), tab.baseline());
    QCOMPARE(tab.measures()->columnCount(), count == 2 ? 6 : 1 + int(count));
    QVERIFY(tab.measures()->rowCount() > 10);
  }
  // The widest name fits its column.
  const QFontMetrics metrics(ui_font(12));
  for (int row = 0; row < tab.measures()->rowCount(); ++row)
    QVERIFY(metrics.horizontalAdvance(tab.measures()->item(row, 0)->text()) <= tab.measures()->columnWidth(0) - 16);
  // A difference within noise has no percentage, and neither has a tracing cost within its noise a number.
  tab.setRuns({ticked[0], ticked[1]});
  settle(tab);
  int quiet = 0, costs = 0;
  for (int row = 0; row < tab.measures()->rowCount(); ++row) {
    const auto cell = [&](int column) {
      const QTableWidgetItem* item = tab.measures()->item(row, column);
      return item ? item->text() : QString();
    };
    costs += cell(0).startsWith("tracing costs") && (cell(1) == "within noise" || cell(2) == "within noise");
    if (!cell(5).contains("within noise")) continue;
    QCOMPARE(cell(4), QString::fromUtf8("–"));
    ++quiet;
  }
  QVERIFY(quiet > 0 && costs == 1);
  tab.setRuns({});
  settle(tab);
  QCOMPARE(tab.measures()->rowCount(), 0);
  tab.setRuns({ticked[0]});
  settle(tab);
  QVERIFY(!tab.baseline());
}

void CompareTabTest::timelinesZoomTogether() {
  TwoCompared two({1300, 900});
  CompareTab& tab = two.tab;
  StepView* view = tab.timelines();
  const TimeRange whole = view->range();
  const prof::StepWindowNs step = sample_of(*tab.baseline()).median_step;
  QVERIFY2(whole.contains(0) && whole.contains(step.end - step.begin - 1), "the longest step is seen whole");
  QSignalSpy moved(view, &StepView::rangeChanged);
  QTest::keyClick(view, Qt::Key_W);
  QVERIFY(view->range().length() < whole.length());
  QTest::keyClick(view, Qt::Key_D);
  QCOMPARE(moved.count(), 2);
  // One range for both: the same view time is a fixed distance apart in the two runs.
  const TimeRange in_a = view->runRange(0, view->range()), in_b = view->runRange(1, view->range());
  QCOMPARE(in_a.length(), in_b.length());
  const TimeRange before = view->range();
  QWheelEvent wheel(QPointF(600, 60), view->mapToGlobal(QPointF(600, 60)), {}, {0, 120}, Qt::NoButton,
                    Qt::ControlModifier, Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(view, &wheel);
  QVERIFY(view->range().length() < before.length());
  const TimeRange at_press = view->range();
  QTest::mousePress(view, Qt::LeftButton, Qt::ShiftModifier, {600, 60});
  QTest::mouseMove(view, {500, 60});
  QTest::mouseRelease(view, Qt::LeftButton, Qt::ShiftModifier, {500, 60});
  QVERIFY2(view->range().begin > at_press.begin, "dragging to the left shows what comes later");
  QCOMPARE(view->range().length(), at_press.length());
  QSignalSpy said(&tab, &CompareTab::said);
  QTest::mousePress(view, Qt::LeftButton, {}, {300, 60});
  QTest::mouseMove(view, {500, 60});
  QTest::mouseRelease(view, Qt::LeftButton, {}, {500, 60});
  QVERIFY(view->selected().has_value());
  QVERIFY(said.count() == 1 && said[0][0].toString().contains("A: kernels"));
  view->fit();
  QCOMPARE(view->range(), whole);
}

void CompareTabTest::timelinesAlignAtAStep() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  StepView view;
  view.resize(900, 400);
  view.setRuns({{a.get(), sample_of(*a)}, {b.get(), sample_of(*b)}});
  view.setAlign(StepAlign::Step, 42);
  const Run* runs[] = {a.get(), b.get()};
  for (size_t i = 0; i < 2; ++i) {
    const prof::TimeNs begin = view.runRange(i, {0, 1}).begin;
    const prof::StepWindowNs window = prof::step_window(runs[i]->trace, 42);
    QCOMPARE(begin, window.begin);
    QVERIFY(window.end > window.begin);
    QCOMPARE(runs[i]->stepAt(window.begin), 42.0);
  }
  view.setAlign(StepAlign::Start);
  QCOMPARE(view.runRange(0, {0, 1}).begin, prof::step_window(a->trace, 0).begin);
  QVERIFY(prof::step_window(a->trace, 1'000'000).end > 0);  // beyond the last: the last
}

// In a narrow window the key takes a second line.
void CompareTabTest::theColoursHaveAKey() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  CompareTab tab;
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  const auto* key = tab.findChild<MeaningLegend*>();
  for (const char* name : {"matrix product", "pointwise", "allocator calls"}) QVERIFY2(key->names().contains(name), qPrintable(key->names().join(", ")));
  QVERIFY(key->heightForWidth(200) > key->heightForWidth(2000));
}

void CompareTabTest::onlyDifferentChoicesAreListed() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  a->spec = b->spec = {};
  b->spec.exec.allocator = Allocator::Caching;
  const auto rows = differing_choices({&a->spec, &b->spec});
  QCOMPARE(rows.size(), size_t(1));
  QCOMPARE(rows[0].key, std::string("exec.allocator"));
  QCOMPARE(rows[0].values[1], std::string("caching"));
  CompareTab tab;
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  QCOMPARE(tab.choices()->rowCount(), 1);
}

void CompareTabTest::linesOfAnXrayAreComparedIfBothRunsHaveOne() {
  const auto sampled = [](const char* name, int slot, uint64_t first) {
    auto run = made(name, test::StepStyle::EagerDirect, slot);
    for (const auto& [line, count] : {std::pair{14, first}, {20, 10'000 - first}}) {
      prof::SampledInstruction one{.offset = static_cast<uint32_t>(line), .line = line, .function = run->trace.intern("mine(float*)"), .file = run->trace.intern("/home/my.cu")};
      one.samples[static_cast<size_t>(prof::Stall::GlobalMemory)] = count;
      run->trace.stalls.add(one);
    }
    return run;
  };
  const auto a = sampled("a", 0, 6000), b = sampled("b", 1, 4140), plain = made("c", test::StepStyle::GraphArena, 2);
  CompareTab tab;
  auto& tables = *tab.findChild<CompareTables*>();
  const int page = tables.strip()->count() - 1;
  tab.setRuns({a.get(), plain.get()});
  settle(tab);
  QVERIFY(!tables.strip()->isTabVisible(page));
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  QTRY_VERIFY(tables.strip()->isTabVisible(page));
  const QAbstractItemModel& rows = *tables.waits()->model();
  QCOMPARE(rows.rowCount(), 2);
  QStringList all;
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < rows.columnCount(); ++column) all << plain_text(rows, row, column);
  QCOMPARE(rows.headerData(1, Qt::Horizontal).toString(), QString("A, %"));
  QVERIFY2(all.contains("my.cu:14") && all.contains("-31") && all.contains("less") && all.contains("global memory"), qPrintable(all.join('|')));
  tab.swapRuns();
  settle(tab);
  QTRY_COMPARE(rows.headerData(1, Qt::Horizontal).toString(), QString("B, %"));
}

void CompareTabTest::theWaterfallIsSplitByOpWhenAsked() {
  TwoCompared two({1300, 900});
  CompareTab& tab = two.tab;
  WaterfallView* view = tab.waterfall();
  const QImage by_kind = view->grab().toImage();
  const auto segments = tab.findChildren<Segment*>();
  QCOMPARE(segments.size(), 2);
  QVERIFY(segments[0]->isChecked() && !view->byOp());
  QTest::mouseClick(segments[1], Qt::LeftButton);
  QVERIFY(view->byOp());
  QVERIFY(view->grab().toImage() != by_kind);
  // The ops that fit, in one waterfall that ends where the candidate does.
  size_t fewer = 0;
  for (const double height : {150.0, 300.0, 900.0}) {
    const prof::Waterfall w = view->shown(height);
    int64_t at = w.a_ps;
    size_t ops = 0;
    for (const prof::Cause& cause : w.causes) at += cause.delta_ps(), ops += !cause.op.empty();
    QVERIFY(std::abs(at - w.b_ps) <= int64_t(w.causes.size() + 1) * 100'000);  // each is rounded to 0.1 µs
    long shown = 0;  // the numbers of the bars, in tenths
    const auto bars = view->bars(w);
    for (const auto& bar : bars)
      if (!bar.end) shown += std::lround(10 * (bar.to - bar.from));
    QCOMPARE(shown, std::lround(10 * bars.back().to) - std::lround(10 * bars.front().to));
    QVERIFY(ops >= 4 && ops >= fewer);
    fewer = ops;
  }
  QVERIFY(fewer > 15);
  const prof::Cause first = view->shown(view->height()).causes.front();
  const QString said = view->explained({10, 3 + 1.5 * std::min(26.0, 18.0)});
  QVERIFY2(said.contains("µs per step") && said.contains(QString::number(double(first.a_ps) * 1e-6, 'f', 1)),
           qPrintable(said));
  QVERIFY(view->explained({10, 1e5}).isEmpty());
  QTest::mouseClick(segments[0], Qt::LeftButton);
  QVERIFY(!view->byOp());
  QCOMPARE(view->grab().toImage(), by_kind);
}

// Time of kernels in a step.
static double busy_us(const Run& run) {
  double ns = 0, steps = 0;
  for (const prof::Track& track : run.trace.tracks()) {
    if (track.kind == prof::TrackKind::Steps) steps += static_cast<double>(track.spans);
    prof::each_span(track, -prof::kAlways, prof::kAlways, [&](const prof::Span& span) {
      if (span.span_kind() == prof::SpanKind::Kernel) ns += static_cast<double>(span.duration);
    });
  }
  return ns * 1e-3 / steps;
}

// Runs recorded at level lines: the kernels of a step by the stack that launched them, as one flame graph of differences.
void CompareTabTest::launchingStacksAreCompared() {
  TwoCompared t({1200, 900});
  auto* strip = t.tab.findChild<PagedPane*>()->strip();
  int page = -1;
  for (int i = 0; i < strip->count(); ++i)
    if (strip->tabText(i) == "Launches") page = i;
  QVERIFY(page >= 0 && !strip->isTabVisible(page));
  const auto give_stacks = [](Run& run) {
    for (size_t i = 1; i < run.trace.ops.size(); ++i)
      run.trace.ops[i].stack = prof::stack_from_text((i % 2 ? "net.py:12 in Net.forward" : "train.py:33 in update") +
                                                     std::string(" < train.py:40 in step < train.py:60 in <module>"));
  };
  const auto compare_anew = [&] { t.tab.setRuns({}); settle(t.tab); t.compare(); };
  give_stacks(*t.a);
  compare_anew();
  QTRY_VERIFY(strip->isTabVisible(page));
  auto* view = t.tab.findChild<FlameView*>("launches");
  QVERIFY2(view->tree().empty(), "the other run has none");
  give_stacks(*t.b);
  compare_anew();
  QTRY_VERIFY(!view->tree().empty());
  const prof::FlameTree& tree = view->tree();
  const auto node = [&](const std::string& function) {
    return *std::ranges::find(tree, function, &prof::FlameNode::function);
  };
  const double a = busy_us(*t.a), b = busy_us(*t.b);
  QVERIFY(std::abs(node("step").before * 1e-3 - a) < 0.01);
  QVERIFY(std::abs(node("step").ns * 1e-3 - b) < 0.01);
  QVERIFY(node("Net.forward").ns > 0 && node("update").ns > 0);
  strip->setCurrentIndex(page);
  if (const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES"); !folder.isEmpty())
    QVERIFY(t.tab.grab().save(folder + "/compare-launches-dark.png"));
  // The table of kernels by line has the same times.
  auto* tables = t.tab.findChild<CompareTables*>();
  QComboBox* const groups = tables->kernelGroups();
  tables->setPage(1);
  QVERIFY(groups->isVisible());
  groups->setCurrentText("by line");
  QCOMPARE(groups->currentText(), QString("by line"));
  const QTableWidget& table = *tables->kernels();
  QStringList lines;
  double sums[2] = {0, 0};
  for (int row = 0; row < table.rowCount(); ++row) {
    lines << table.item(row, 0)->text();
    for (int run = 0; run < 2; ++run) sums[run] += table.item(row, 3 + run)->text().remove(QChar(0x2009)).toDouble();
  }
  QVERIFY2(lines.contains("net.py:12 in Net.forward") && lines.contains("train.py:33 in update"), qPrintable(lines.join(", ")));
  QVERIFY(std::abs(sums[0] - a) < 0.5 && std::abs(sums[1] - b) < 0.5);
  compare_anew();
  QCOMPARE(groups->currentText(), QString("by line"));
  if (const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES"); !folder.isEmpty())
    QVERIFY(t.tab.grab().save(folder + "/compare-lines-dark.png"));
}

void CompareTabTest::memoryIsDrawnOnOneScale() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  for (Run* run : {a.get(), b.get()}) forget_memory(*run);
  CompareTab tab;
  tab.resize(1300, 1600);  // so tall that no lane has to give way
  tab.show();
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  StepView* view = tab.timelines();
  QCOMPARE(view->mostBytes(), 0.0);
  const double without = view->contentHeight();
  const auto hand_out = [](Run& run, prof::TimeNs time, uint64_t address, uint64_t bytes) {
    run.trace.append_memory({time, address, bytes, 1, 0, prof::MemoryAction::Allocate, 0});
  };
  for (Run* run : {a.get(), b.get()}) {
    run->trace.memory_sources = {"arena"};
    const prof::StepWindowNs step = sample_of(*run).median_step;
    hand_out(*run, 0, 0x1000, 1000);
    hand_out(*run, (step.begin + step.end) / 2, 0x9000, run == a.get() ? 3000 : 500);
    hand_out(*run, step.end + 10, 0x90000, 1 << 30);  // after the step: no part of its peak
    run->steps.push_back({500, 1, 0, 0.1F, 0.5F});
    run->announce();
  }
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  QCOMPARE(view->mostBytes(), 4000.0);
  QTRY_VERIFY(view->contentHeight() >= without + 2 * 24);  // memory comes a piece a turn
  view->setAlign(StepAlign::Start);
  QCOMPARE(view->mostBytes(), 1000.0);  // the first steps had no more
}

// An arena shows only what it reserves.
void CompareTabTest::memoryIsOneMeasureForAllRuns() {
  const auto direct = opened(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-direct.wsrun", 0), arena = opened(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-arena.wsrun", 1);
  CompareTab tab;
  tab.resize(1300, 1600);
  tab.show();
  const auto drawn = [&tab](const QString& text) {
    QBuffer buffer;
    QSvgGenerator svg;
    svg.setOutputDevice(&buffer), svg.setSize(tab.timelines()->size());
    QPainter painter(&svg);
    tab.timelines()->render(painter, tab.timelines()->rect());
    painter.end();
    return QString::fromUtf8(buffer.data()).contains(text);
  };
  tab.setRuns({direct.get(), arena.get()});
  settle(tab);
  QTRY_VERIFY(drawn("reserved 429.5 KiB") && drawn("reserved 429.8 KiB"));
}

// `diff` and the page are asked about the same two files; every number and verdict that they print is the same.
void CompareTabTest::theCommandLineReportsTheSame() {
  const QTemporaryDir folder;
  const QStringList files{written(folder, "eager", test::StepStyle::EagerDirect, 400),
                          written(folder, "graph", test::StepStyle::GraphArena, 400),
                          written(folder, "graph again", test::StepStyle::GraphArena, 380),
                          written(folder, "untraced", test::StepStyle::GraphArena, 0)};
  int rows = 0;
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 0}, {1, 2}, {0, 3}, {3, 3}}) {
    const auto of_a = opened(files[a], 0), of_b = opened(files[b], 1);
    CompareTab tab;
    tab.setRuns({of_a.get(), of_b.get()});
    settle(tab);
    const QStringList printed = said_by_diff(files[a], files[b]);
    QCOMPARE(printed.value(2), plain(tab.headline()->findChild<QLabel*>()->text()));
    for (int row = 0; row < tab.measures()->rowCount(); ++row) {
      const auto cell = [&](int column) {
        const QTableWidgetItem* item = tab.measures()->item(row, column);
        return item ? plain(item->text()) : QString();
      };
      if (cell(3).isEmpty() || cell(3) == "–") continue;  // a heading, or not known of one
      const QString line = line_of(printed, cell(0));
      QVERIFY2(!line.isEmpty(), qPrintable("diff has no row " + cell(0)));
      for (int column = 1; column <= 3; ++column) {
        const QString value = cell(column).startsWith('+') ? cell(column).mid(1) : cell(column);
        QVERIFY2(QString(line).replace('+', ' ').contains(" " + value + " "), qPrintable(line + " has no " + value));
      }
      const QString verdict = cell(5).mid(cell(5).indexOf(' ') + 1);
      QVERIFY2(line.endsWith(verdict), qPrintable(line + " does not say " + verdict));
      ++rows;
    }
  }
  QVERIFY2(rows > 40, qPrintable(QString::number(rows)));
}

void CompareTabTest::aRunThatGoesAwayIsForgotten() {
  TwoCompared two({1000, 800});
  two.b.reset();
  QTest::qWait(20);
  two.tab.grab();
  two.tab.setRuns({two.a.get()});
  settle(two.tab);
  QVERIFY(!two.tab.candidate() || two.tab.candidate() == two.a.get());
}

// Processor time, so that a busy machine does not decide. The limits are the window's: no turn of the event loop
// over 50 ms, repaints at 60 a second.
void CompareTabTest::eightRunsOfAMillionSpansStayQuick() {
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<Run*> ticked;
  for (int i = 0; i < 8; ++i) {
    runs.push_back(made(QString("run %1").arg(i), test::StepStyle::EagerDirect, i, 0));
    test::add_many_spans(runs.back()->trace, 1'000'000, 0);
    QVERIFY(runs.back()->trace.span_count() > 1'000'000);
    auto& trace = runs.back()->trace;
    trace.memory_sources = {"direct"};
    for (uint64_t k = 0; k < 300'000; ++k)
      trace.append_memory({static_cast<prof::TimeNs>(k * 1000), k / 2 % 40, 512, 1, 0,
                           k % 2 ? prof::MemoryAction::Free : prof::MemoryAction::Allocate, 0});
    ticked.push_back(runs.back().get());
  }
  const auto now = ws::test::thread_cpu_ms;
  CompareTab tab;
  tab.resize(1500, 900);
  tab.show();
  double longest = 0;
  const auto turn = [&](auto work) {
    const double begun = now();
    work();
    longest = std::max(longest, now() - begun);
  };
  turn([&] { tab.setRuns(ticked); });
  while (!tab.ready()) turn([] { QCoreApplication::processEvents(); });
  std::vector<double> frames;
  tab.views()->setPage(0);
  for (int i = 0; i < 40; ++i) {
    const double begun = now();
    tab.timelines()->zoomBy(i < 20 ? 1.4 : 0.7);
    tab.timelines()->repaint();
    frames.push_back(now() - begun);
  }
  std::sort(frames.begin(), frames.end());
  qInfo("longest turn %.1f ms, repaint median %.1f ms, slowest %.1f ms", longest, frames[20], frames.back());
  const double slower = ws::test::kSanitized ? 16 : ws::test::busy();
  QVERIFY2(longest < 50 * slower, "a turn of the event loop takes long");
  QVERIFY2(frames[36] < 16 * slower, "zooming is not smooth");
}

WARPSIGHT_QTEST(CompareTabTest)
#include "compare_tab_test.moc"
