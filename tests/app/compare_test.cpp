// The Compare tab and what it is made of: samples of runs, differences with their noise, linked timelines.
#include <QSignalSpy>
#include <QTableWidget>
#include <QtTest>
#include <cmath>
#include <ctime>

#include "app/compare/compare_tab.h"
#include "app/compare/paged_pane.h"
#include "app/compare/step_view.h"
#include "app/panels/theme.h"
#include "tests/support/graph_run.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;
using prof::Meaning;

namespace {

constexpr int64_t kSteps = 400;

std::unique_ptr<Run> made(const QString& title, test::StepStyle style, int slot, int64_t steps = kSteps) {
  auto run = std::make_unique<Run>();
  run->title = title;
  run->slot = slot;
  run->device = "NVIDIA H200";
  run->spec.exec.allocator = style == test::StepStyle::GraphArena ? Allocator::Arena : Allocator::Direct;
  test::add_steps(run->trace, style, 0, steps);
  Summary summary;
  summary.steps = steps;
  summary.wall_s = 1 + slot;
  summary.us_per_step = 100;
  summary.peak_bytes = (slot + 1) << 20;
  summary.calls.device_allocate = steps * slot;
  summary.spec = run->spec;
  run->summary = summary;
  for (int64_t i = 0; i < steps; ++i)
    run->steps.push_back({double(i), double(i) * 1e-4, 0, float(2.3 / (1 + 0.01 * double(i))), 0.5F});
  run->evals.push_back({double(steps), 0.5, 1, 0.3, 0.9});
  run->evals.push_back({double(steps), 1.0, 2, 0.2, 0.96});
  return run;
}

// Steps of 100 µs every 105, with a pause after step 60, an evaluation after every 50th and a hole where nothing was
// traced.
prof::Trace with_breaks() {
  prof::Trace trace;
  const auto steps = trace.track(prof::TrackKind::Steps, "steps", "CPU");
  const auto thread = trace.track(prof::TrackKind::CpuThread, "thread 1", "CPU");
  const auto name = trace.intern("step"), op = trace.intern("gemm");
  prof::TimeNs now = 1000;
  for (uint32_t i = 0; i < 200; ++i) {
    prof::Span step;
    step.start = now, step.duration = 100'000, step.kind = static_cast<uint64_t>(prof::SpanKind::Step);
    step.name = name, step.step = i + 1 + (i >= 130 ? 40 : 0);
    prof::Span work = step;
    work.start += 10'000, work.duration = 60'000, work.kind = static_cast<uint64_t>(prof::SpanKind::Op);
    work.meaning = static_cast<uint64_t>(Meaning::Matrix), work.name = op;
    trace.append(steps, step);
    trace.append(thread, work);
    now += 105'000;
    if (i == 60) now += 50'000'000;         // a pause
    if ((i + 1) % 50 == 0) now += 400'000;  // an evaluation
    if (i == 129) now += 40 * 105'000;      // untraced
  }
  return trace;
}

void settle(CompareTab& tab) {
  for (int i = 0; i < 500 && !tab.ready(); ++i) QTest::qWait(2);
  QVERIFY(tab.ready());
}

}  // namespace

class CompareTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void partsSumToTheStep();
  void pausesAndEvaluationsAreNoPartOfAStep();
  void oneSpanMayStandForManySteps();
  void graphRunsAreComparedByTheGpusSteps();
  void aRunDoesNotDifferFromItself();
  void swappedBaselineFlipsTheSigns();
  void mismatchesAreNamed();
  void noiseComesFromTheRunsOwnSpread();
  void theTableKnowsEveryRun();
  void timelinesZoomTogether();
  void timelinesAlignAtAStep();
  void onlyDifferentChoicesAreListed();
  void aRunThatGoesAwayIsForgotten();
  void eightRunsOfAMillionSpansStayQuick();
};

void CompareTest::partsSumToTheStep() {
  for (const auto style : {test::StepStyle::GraphArena, test::StepStyle::EagerDirect}) {
    const auto run = made("a", style, 0);
    const RunSample sample = sample_of(*run);
    QVERIFY(sample.parts.steps > 100);
    int64_t sum = 0;
    for (const int64_t part : sample.parts.times) sum += part;
    QCOMPARE(sum, sample.parts.wall());
    double mean = 0;
    for (const double us : sample.step_us) mean += us / double(sample.step_us.size());
    QVERIFY2(std::abs(mean - sample.mean_step_us()) < 0.01 * mean, qPrintable(QString::number(mean)));
  }
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  const PairComparison c = compare_runs(*a, *b);
  int64_t sum = 0;
  for (const prof::Cause& cause : c.waterfall.causes) sum += cause.delta_ps();
  QCOMPARE(sum, c.waterfall.b_ps - c.waterfall.a_ps);
  QVERIFY(std::abs(double(c.waterfall.a_ps) * 1e-6 - c.baseline_us) < 1e-3 * c.baseline_us);
  QVERIFY(c.beyond_noise);
  QVERIFY(c.candidate_us < c.baseline_us);
}

void CompareTest::pausesAndEvaluationsAreNoPartOfAStep() {
  Run run;
  run.trace = with_breaks();
  for (const double per_epoch : {0.0, 50.0}) {
    run.setStepsPerEpoch(per_epoch);
    const RunSample sample = sample_of(run);
    QVERIFY2(std::abs(sample.mean_step_us() - 105) < 0.01, qPrintable(QString::number(sample.mean_step_us())));
    QVERIFY(sample.parts.steps >= 180);
    QCOMPARE(sample.median_step.end - sample.median_step.begin, 105'000);
    for (const double us : sample.step_us) QVERIFY(std::abs(us - 105) < 1e-6);
  }
}

void CompareTest::oneSpanMayStandForManySteps() {
  Run run;
  const auto track = run.trace.track(prof::TrackKind::Steps, "steps", "CPU");
  for (uint32_t i = 0; i < 100; ++i) {
    prof::Span span;
    span.start = i * 160'000, span.duration = 159'000, span.kind = static_cast<uint64_t>(prof::SpanKind::Step);
    span.step = i * 16 + 1, span.name = run.trace.intern("step");
    run.trace.append(track, span);
  }
  const RunSample sample = sample_of(run);
  QCOMPARE(sample.stride, 16);
  QVERIFY(std::abs(sample.mean_step_us() - 10) < 1e-9);
}

// The table, the waterfall, the kernels and the report say the same of runs whose host is far ahead.
void CompareTest::graphRunsAreComparedByTheGpusSteps() {
  test::GraphRun slow, fast;
  slow.gemm_ns = 13'000;
  Run a, b;
  const auto fill = [](Run& run, const test::GraphRun& shape) {
    run.spec.exec.launch = ws::Launch::Graph;
    test::add_graph_run(run.trace, shape, 3);
    RunUpdate last;
    last.summary = Summary{};
    run.apply(std::move(last));
  };
  fill(a, slow), fill(b, fast);
  QVERIFY(a.hasGpuSteps());
  const PairComparison c = compare_runs(a, b);
  QCOMPARE(c.waterfall.a_ps, slow.step_ns() * 1000);
  QCOMPARE(c.waterfall.b_ps, fast.step_ns() * 1000);
  QCOMPARE(c.waterfall.causes.front().delta_ps(), -4'000'000);
  QCOMPARE(c.kernels.front().name, std::string("gemm"));
  QCOMPARE(c.kernels.front().a_count, 1.0);
  QVERIFY(std::abs(c.kernels.front().delta_us() + 4) < 1e-9);
  const auto values = measures_of(b, sample_of(b), 0);
  for (const MeasureValue& m : values) {
    if (m.name.startsWith("step,")) QVERIFY2(std::abs(m.value - 18) < 1e-9, qPrintable(m.name));
    if (m.name == "kernels a step") QCOMPARE(m.value, 2.0);
    if (m.name == "tracing costs") QVERIFY2(std::isnan(m.value), "not measured is not nothing");
    if (m.name == "busy") QVERIFY(std::abs(m.value - 100.0 * 16 / 18) < 1e-9);
  }
}

void CompareTest::aRunDoesNotDifferFromItself() {
  const auto run = made("a", test::StepStyle::EagerDirect, 0);
  const PairComparison c = compare_runs(*run, *run);
  QVERIFY(!c.beyond_noise);
  QVERIFY(c.warnings.isEmpty());
  QVERIFY(c.choices.empty());
  for (const prof::Cause& cause : c.waterfall.causes) QCOMPARE(cause.delta_ps(), 0);
  for (const prof::KernelDelta& kernel : c.kernels) QCOMPARE(kernel.delta_us(), 0.0);
  const RunSample sample = sample_of(*run);
  for (const MeasureValue& m : measures_of(*run, sample, 0.9)) {
    const MeasureDelta d = delta_of(m, m);
    QVERIFY2(d.verdict != Verdict::Better && d.verdict != Verdict::Worse, qPrintable(m.name));
  }
}

void CompareTest::swappedBaselineFlipsTheSigns() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  const PairComparison there = compare_runs(*a, *b), back = compare_runs(*b, *a);
  std::map<Meaning, int64_t> changes;
  for (const prof::Cause& cause : there.waterfall.causes) changes[cause.meaning] = cause.delta_ps();
  for (const prof::Cause& cause : back.waterfall.causes) QCOMPARE(cause.delta_ps(), -changes[cause.meaning]);
  QCOMPARE(there.kernels.size(), back.kernels.size());
  QVERIFY(!there.kernels.empty());
  for (size_t i = 1; i < there.kernels.size(); ++i)
    QVERIFY(std::abs(there.kernels[i - 1].delta_us()) >= std::abs(there.kernels[i].delta_us()));
  const auto of_a = measures_of(*a, sample_of(*a), 0.9), of_b = measures_of(*b, sample_of(*b), 0.9);
  QCOMPARE(of_a.size(), of_b.size());
  int decided = 0;
  for (size_t i = 0; i < of_a.size(); ++i) {
    const MeasureDelta x = delta_of(of_a[i], of_b[i]), y = delta_of(of_b[i], of_a[i]);
    if (std::isnan(x.delta)) continue;
    QCOMPARE(x.delta, -y.delta);
    QCOMPARE(x.noise, y.noise);
    QCOMPARE(x.verdict == Verdict::Better, y.verdict == Verdict::Worse);
    decided += x.verdict == Verdict::Better || x.verdict == Verdict::Worse;
  }
  QVERIFY(decided >= 5);
}

void CompareTest::mismatchesAreNamed() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0);
  const auto b = made("b", test::StepStyle::GraphArena, 1, 150);
  b->spec.model.hidden = {64, 64};
  b->spec.data.name = "iris";
  b->spec.train.batch = 16;
  b->spec.exec.precision = Precision::Bf16;
  b->device = "CPU";
  const QString all = compare_runs(*a, *b).warnings.join(" / ");
  for (const char* part : {"models differ", "data sets differ", "batches differ", "NVIDIA H200 and CPU",
                           "400 and 150 steps", "precision differs"})
    QVERIFY2(all.contains(part), part);
  Run bare;
  bare.summary = Summary{};
  QVERIFY(!compare_runs(*a, bare).traced);
  QVERIFY(compare_runs(*a, bare).kernels.empty());
  QVERIFY(compare_runs(*a, bare).warnings.join(' ').contains("not traced"));
}

void CompareTest::noiseComesFromTheRunsOwnSpread() {
  std::vector<double> calm, rough, drifting;
  for (int i = 0; i < 2000; ++i) {
    calm.push_back(100 + (i % 2));
    rough.push_back(100 + 20 * ((i * 7919) % 13) / 13.0);
    drifting.push_back(100 + i / 100);  // neighbours are alike: the spread between single steps would not show it
  }
  QVERIFY(half_width(calm) < half_width(rough));
  QVERIFY(half_width(drifting) > 2);
  QVERIFY(half_width(drifting) > 5 * prof::estimate(drifting).half_width);
  QCOMPARE(half_width({}), 0.0);
}

void CompareTest::theTableKnowsEveryRun() {
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<Run*> ticked;
  for (int i = 0; i < 8; ++i) {
    runs.push_back(
        made(QString("run %1").arg(i), i % 2 ? test::StepStyle::GraphArena : test::StepStyle::EagerDirect, i));
    ticked.push_back(runs.back().get());
  }
  CompareTab tab;
  tab.resize(1300, 900);
  for (const size_t count : {2U, 3U, 8U}) {
    tab.setRuns({ticked.begin(), ticked.begin() + static_cast<std::ptrdiff_t>(count)});
    settle(tab);
    QCOMPARE(tab.ordered().size(), count);
    QCOMPARE(tab.ordered().front(), tab.baseline());
    QCOMPARE(tab.measures()->columnCount(), count == 2 ? 6 : 1 + int(count));
    QVERIFY(tab.measures()->rowCount() > 10);
    QVERIFY2(tab.measures()->columnWidth(0) >= 180, "names of measures are not cut");
  }
  // The widest name fits its column.
  const QFontMetrics metrics(ui_font(12));
  for (int row = 0; row < tab.measures()->rowCount(); ++row)
    QVERIFY(metrics.horizontalAdvance(tab.measures()->item(row, 0)->text()) <= tab.measures()->columnWidth(0) - 16);
  tab.setRuns({});
  settle(tab);
  QCOMPARE(tab.measures()->rowCount(), 0);
  tab.setRuns({ticked[0]});
  settle(tab);
  QVERIFY(!tab.baseline());
}

void CompareTest::timelinesZoomTogether() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  CompareTab tab;
  tab.resize(1300, 900);
  tab.show();
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  StepView* view = tab.timelines();
  const TimeRange whole = view->range();
  const StepWindowNs step = sample_of(*tab.baseline()).median_step;
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

void CompareTest::timelinesAlignAtAStep() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  StepView view;
  view.resize(900, 400);
  view.setRuns({{a.get(), sample_of(*a)}, {b.get(), sample_of(*b)}});
  view.setAlign(StepAlign::Step, 42);
  const Run* runs[] = {a.get(), b.get()};
  for (size_t i = 0; i < 2; ++i) {
    const prof::TimeNs begin = view.runRange(i, {0, 1}).begin;
    const StepWindowNs window = step_window(runs[i]->trace, 42);
    QCOMPARE(begin, window.begin);
    QVERIFY(window.end > window.begin);
    QCOMPARE(runs[i]->stepAt(window.begin), 42.0);
  }
  view.setAlign(StepAlign::Start);
  QCOMPARE(view.runRange(0, {0, 1}).begin, step_window(a->trace, 0).begin);
  QVERIFY(step_window(a->trace, 1'000'000).end > 0);  // beyond the last: the last
}

void CompareTest::onlyDifferentChoicesAreListed() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  a->spec = b->spec = {};
  b->spec.exec.allocator = Allocator::Caching;
  const auto rows = differing_choices({a.get(), b.get()});
  QCOMPARE(rows.size(), size_t(1));
  QCOMPARE(rows[0].key, std::string("exec.allocator"));
  QCOMPARE(rows[0].values[1], std::string("caching"));
  CompareTab tab;
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  QCOMPARE(tab.choices()->rowCount(), 1);
}

void CompareTest::aRunThatGoesAwayIsForgotten() {
  auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  CompareTab tab;
  tab.resize(1000, 800);
  tab.show();
  tab.setRuns({a.get(), b.get()});
  settle(tab);
  b.reset();
  QTest::qWait(20);
  tab.grab();
  tab.setRuns({a.get()});
  settle(tab);
  QVERIFY(!tab.candidate() || tab.candidate() == a.get());
}

// Processor time, so that a busy machine does not decide. The limits are those of the window: no turn of the event loop
// over 50 ms, repaints at 60 a second.
void CompareTest::eightRunsOfAMillionSpansStayQuick() {
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<Run*> ticked;
  for (int i = 0; i < 8; ++i) {
    runs.push_back(made(QString("run %1").arg(i), test::StepStyle::EagerDirect, i, 0));
    test::add_many_spans(runs.back()->trace, 1'000'000, 0);
    QVERIFY(runs.back()->trace.span_count() > 1'000'000);
    ticked.push_back(runs.back().get());
  }
  const auto now = [] { return 1000.0 * double(std::clock()) / CLOCKS_PER_SEC; };
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
  QVERIFY2(longest < 50 * 2, "a turn of the event loop takes long");  // a factor for slow test machines
  QVERIFY2(frames[36] < 16 * 2, "zooming is not smooth");
}

QTEST_MAIN(CompareTest)
#include "compare_test.moc"
