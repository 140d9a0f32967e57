// What the Compare tab is made of: samples of runs, and differences with their noise.
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "app/core/comparison/comparison.h"
#include "app/workspace/compared_live_run.h"
#include "app/report/report_pages.h"
#include "app/workspace/run_loader.h"
#include "profiling/formats/convert.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/graph_run.h"

using namespace ws;
using namespace ws::app;
using prof::Meaning;
using test::made;

namespace {

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

Comparison compared(const Run& a, const Run& b) { return compare(compared_run(a), compared_run(b)); }

MeasureDelta step_time(const Comparison& c) { return c.of(MeasureKind::StepTime).delta; }
bool beyond_noise(const Comparison& c) { return step_time(c).verdict != Verdict::WithinNoise; }

}  // namespace

class CompareTest : public QObject {
  Q_OBJECT
 private slots:
  void partsSumToTheStep();
  void pausesAndEvaluationsAreNoPartOfAStep();
  void oneSpanMayStandForManySteps();
  void graphRunsAreComparedByTheGpusSteps();
  void aRunDoesNotDifferFromItself();
  void swappedBaselineFlipsTheSigns();
  void aReportHasTheStepThatCompareShows();
  void mismatchesAreNamed();
  void runsWithoutATraceHaveNoiseToo();
  void eachFigureHasItsOwnNoise();
  void lossesThatComeTogetherAreNoSpeed();
};

void CompareTest::partsSumToTheStep() {
  for (const auto style : {test::StepStyle::GraphArena, test::StepStyle::EagerDirect}) {
    const auto run = made("a", style, 0);
    const prof::StepSample sample = sample_of(*run);
    QVERIFY(sample.parts.steps > 100);
    int64_t sum = 0;
    for (const int64_t part : sample.parts.times) sum += part;
    QCOMPARE(sum, sample.parts.wall());
    double mean = 0;
    for (const double us : sample.step_us) mean += us / double(sample.step_us.size());
    QVERIFY2(std::abs(mean - sample.mean_step_us()) < 0.01 * mean, qPrintable(QString::number(mean)));
  }
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  const Comparison c = compared(*a, *b);
  int64_t sum = 0;
  for (const prof::Cause& cause : c.by_kind.causes) sum += cause.delta_ps();
  QCOMPARE(sum, c.by_kind.b_ps - c.by_kind.a_ps);
  int64_t by_op = 0, ops = 0;
  for (const prof::Cause& cause : c.by_op.causes) by_op += cause.delta_ps(), ops += !cause.op.empty();
  QCOMPARE(by_op, sum);
  QVERIFY2(ops > 15, "each op of both runs is a cause");
  const double mean = c.of(MeasureKind::SampleMean).a.value.value;
  QVERIFY(std::abs(double(c.by_kind.a_ps) * 1e-6 - mean) < 1e-3 * mean);
  QVERIFY(beyond_noise(c));
  QVERIFY(step_time(c).delta < 0);
}

void CompareTest::pausesAndEvaluationsAreNoPartOfAStep() {
  Run run;
  run.trace = with_breaks();
  for (const double per_epoch : {0.0, 50.0}) {
    run.setStepsPerEpoch(per_epoch);
    const prof::StepSample sample = sample_of(run);
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
  const prof::StepSample sample = sample_of(run);
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
  const Comparison c = compared(a, b);
  QCOMPARE(c.by_kind.a_ps, slow.step_ns() * 1000);
  QCOMPARE(c.by_kind.b_ps, fast.step_ns() * 1000);
  QCOMPARE(c.by_kind.causes.front().delta_ps(), -4'000'000);
  QCOMPARE(c.kernels.front().name, std::string("gemm"));
  QCOMPARE(c.kernels.front().a_count, 1.0);
  QVERIFY(std::abs(c.kernels.front().delta_us() + 4) < 1e-9);
  const auto value = [&](MeasureKind kind) { return c.of(kind).b.value.value; };
  for (const MeasureKind kind : {MeasureKind::StepTime, MeasureKind::SampleMean, MeasureKind::StepP95})
    QVERIFY(std::abs(value(kind) - 18) < 1e-9);
  QCOMPARE(value(MeasureKind::Kernels), 2.0);
  QVERIFY2(std::isnan(value(MeasureKind::TracingCost)), "not measured is not nothing");
  QVERIFY(std::abs(value(MeasureKind::Busy) - 100.0 * 16 / 18) < 1e-9);
}

void CompareTest::aRunDoesNotDifferFromItself() {
  const auto run = made("a", test::StepStyle::EagerDirect, 0);
  const Comparison c = compared(*run, *run);
  QVERIFY(!beyond_noise(c));
  QVERIFY(c.warnings.empty());
  QVERIFY(c.choices.empty());
  for (const prof::Waterfall* w : {&c.by_kind, &c.by_op})
    for (const prof::Cause& cause : w->causes) QCOMPARE(cause.delta_ps(), 0);
  for (const prof::KernelDelta& kernel : c.kernels) QCOMPARE(kernel.delta_us(), 0.0);
  for (const ComparedMeasure& m : c.measures)
    QVERIFY2(m.delta.verdict != Verdict::Better && m.delta.verdict != Verdict::Worse, m.a.name.c_str());
}

void CompareTest::swappedBaselineFlipsTheSigns() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::GraphArena, 1);
  const Comparison there = compared(*a, *b), back = compared(*b, *a);
  std::map<Meaning, int64_t> changes;
  for (const prof::Cause& cause : there.by_kind.causes) changes[cause.meaning] = cause.delta_ps();
  for (const prof::Cause& cause : back.by_kind.causes) QCOMPARE(cause.delta_ps(), -changes[cause.meaning]);
  QCOMPARE(there.by_op.causes.size(), back.by_op.causes.size());
  for (size_t i = 0; i < there.by_op.causes.size(); ++i) {
    QCOMPARE(there.by_op.causes[i].op, back.by_op.causes[i].op);
    QCOMPARE(there.by_op.causes[i].delta_ps(), -back.by_op.causes[i].delta_ps());
  }
  QCOMPARE(there.kernels.size(), back.kernels.size());
  QVERIFY(!there.kernels.empty());
  for (size_t i = 1; i < there.kernels.size(); ++i)
    QVERIFY(std::abs(there.kernels[i - 1].delta_us()) >= std::abs(there.kernels[i].delta_us()));
  QCOMPARE(there.measures.size(), back.measures.size());
  int decided = 0;
  for (size_t i = 0; i < there.measures.size(); ++i) {
    const MeasureDelta &x = there.measures[i].delta, &y = back.measures[i].delta;
    if (!x.known()) continue;
    QCOMPARE(x.delta, -y.delta);
    QCOMPARE(x.noise, y.noise);
    QCOMPARE(x.verdict == Verdict::Better, y.verdict == Verdict::Worse);
    decided += x.verdict == Verdict::Better || x.verdict == Verdict::Worse;
  }
  QVERIFY(decided >= 5);
}

// The mean of the whole run is another one, and named so.
void CompareTest::aReportHasTheStepThatCompareShows() {
  prof::RunData data;
  data.summary.name = "slow start", data.summary.status = "finished", data.summary.origin = "run";
  data.summary.steps = 60, data.summary.us_per_step = 1234.5;
  test::add_steps(data.trace, test::StepStyle::GraphArena, 0, 60);
  const QTemporaryDir folder;
  const QString path = folder.filePath("slow start.wsrun");
  prof::export_run(data, path.toStdString());
  Run shown;
  read_summary(shown, path);
  give_details(shown, std::move(*read_details(path)));
  const ComparedRun compared = compared_run(shown);
  QVERIFY(compared.sample.traced());
  for (const ReportRun& report : {report_run_of_file(path.toStdString()), report_run(shown)}) {
    QCOMPARE(report.run.time.us.value, compared.time.us.value);
    QCOMPARE(report.run.time.p95_us, compared.time.p95_us);
    QCOMPARE(report.run.whole_run_us, 1234.5);
  }
  QVERIFY(compared.time.us.value < 1000);
}

void CompareTest::mismatchesAreNamed() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0);
  const auto b = made("b", test::StepStyle::GraphArena, 1, 150);
  b->spec.model.hidden = {64, 64};
  b->spec.data.name = "iris";
  b->spec.train.batch = 16;
  b->spec.exec.precision = Precision::Bf16;
  b->device = "CPU";
  const auto joined = [](const Comparison& c) {
    QString all;
    for (const std::string& warning : c.warnings) all += QString::fromStdString(warning) + " / ";
    return all;
  };
  const QString all = joined(compared(*a, *b));
  for (const char* part : {"models differ", "data sets differ", "batches differ", "NVIDIA H200 and CPU",
                           "400 and 150 steps", "precision differs"})
    QVERIFY2(all.contains(part), part);
  Run bare;
  bare.summary = Summary{};
  QVERIFY(!compared(*a, bare).split);
  QVERIFY(compared(*a, bare).kernels.empty());
  QVERIFY(joined(compared(*a, bare)).contains("not traced"));
}

void CompareTest::runsWithoutATraceHaveNoiseToo() {
  const auto untraced = [](double us, double unrest) {
    auto run = made("untraced", test::StepStyle::GraphArena, 0, 0);
    run->steps.clear();
    run->summary->us_per_step = us;
    double wall = 0;
    for (int i = 0; i < 3000; ++i) {
      wall += (us + (i / 100 % 2 ? unrest : -unrest)) * 1e-6;
      run->steps.push_back({double(i), wall, 0, 0.3F, 0.5F});
    }
    test::measure_steps(*run);
    return run;
  };
  const auto a = untraced(100, 8), b = untraced(101, 8), c = untraced(150, 8);
  QVERIFY(step_time(compared(*a, *b)).noise > 1);
  QCOMPARE(step_time(compared(*a, *b)).verdict, Verdict::WithinNoise);
  QCOMPARE(step_time(compared(*a, *c)).verdict, Verdict::Worse);
  QVERIFY(!compared(*a, *c).split);
  // Beside a run with a trace the noise of both counts.
  const auto traced = made("traced", test::StepStyle::EagerDirect, 1);
  const double own = step_time(compared(*traced, *traced)).noise / std::sqrt(2.0);
  QVERIFY(step_time(compared(*traced, *a)).noise > own);
}

void CompareTest::eachFigureHasItsOwnNoise() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::EagerDirect, 1);
  a->spec.data.name = b->spec.data.name = "mnist";  // 10 000 rows to test with
  const auto verdict = [&](double first, double second) {
    a->evals.back().accuracy = first, b->evals.back().accuracy = second;
    return compared(*a, *b).of(MeasureKind::TestAccuracy).delta.verdict;
  };
  QCOMPARE(verdict(0.975, 0.977), Verdict::WithinNoise);
  QCOMPARE(verdict(0.975, 0.985), Verdict::Better);
  QCOMPARE(verdict(1.0, 0.9999), Verdict::WithinNoise);
  QCOMPARE(verdict(1.0, 0.99), Verdict::Worse);
  // Which evaluation was the first to reach an accuracy is as certain as its rows make it.
  const auto seconds = [](const Run& run, double accuracy) {
    return measure(measures_of(compared_run(run), accuracy), MeasureKind::TimeToAccuracy).value;
  };
  a->evals = {{100, 1.0, 1, 0.3, 0.949}, {200, 2.0, 2, 0.2, 0.951}, {300, 3.0, 3, 0.1, 0.98}};
  QCOMPARE(seconds(*a, 0.95).value, 2.0);
  QVERIFY2(std::abs(seconds(*a, 0.95).half_width - 1) < 0.1, qPrintable(QString::number(seconds(*a, 0.95).half_width)));
  QCOMPARE(seconds(*a, 0.97).value, 3.0);
  QVERIFY(seconds(*a, 0.97).half_width < 0.1);
  // A tail that comes and goes is less certain than the middle.
  ComparedRun run = compared_run(*a);
  run.sample.step_us.clear();
  for (int i = 0; i < 2000; ++i) run.sample.step_us.push_back(i % 50 == 0 ? 200 + i % 700 : 100 + i % 3);
  const double middle = prof::step_time(run.sample, {}, 0).us.half_width,
               tail = measure(measures_of(run), MeasureKind::StepP99).value.half_width;
  QVERIFY2(middle < 1 && tail > 20, qPrintable(QString("%1 %2").arg(middle).arg(tail)));
}

// A queue of steps is read now and then: 64 losses at once, a microsecond apart, are no 64 million samples per second.
void CompareTest::lossesThatComeTogetherAreNoSpeed() {
  QTemporaryDir folder;
  const QString path = folder.filePath("bulks.wsrun");
  {
    prof::RunSummary summary;
    RunSpec spec;
    spec.train.batch = 64;
    summary.spec = spec_text(spec);
    summary.us_per_step = 100;
    prof::RunFileWriter writer(path.toStdString(), summary);
    for (int64_t step = 0; step < 4096; ++step)
      writer.add(prof::Metric{step, 100e-6 * double(step / 64 + 1) * 64 + 1e-6 * double(step % 64), 1, 0.5});
    writer.finish();
  }
  const auto details = read_details(path);
  QVERIFY(details->meters.size() >= 30);
  for (const MeterPoint& m : details->meters)
    QVERIFY2(std::abs(m.samples_per_s - 640'000) < 20'000, qPrintable(QString::number(m.samples_per_s)));
}

WARPSIGHT_QTEST(CompareTest)
#include "compare_test.moc"
