// What the Compare tab is made of: samples of runs, and differences with their noise.
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "app/workspace/comparison_model.h"
#include "app/report/report_pages.h"
#include "app/workspace/run_loader.h"
#include "profiling/formats/convert.h"
#include "tests/app/made_run.h"
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
  void aReportSaysTheStepThatCompareShows();
  void mismatchesAreNamed();
  void noiseComesFromTheRunsOwnSpread();
  void runsWithoutATraceHaveNoiseToo();
  void eachFigureHasItsOwnNoise();
  void lossesThatComeTogetherAreNoSpeed();
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
  int64_t by_op = 0, ops = 0;
  for (const prof::Cause& cause : c.by_op.causes) by_op += cause.delta_ps(), ops += !cause.op.empty();
  QCOMPARE(by_op, sum);
  QVERIFY2(ops > 15, "each op of both runs is a cause");
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
  for (const prof::Waterfall* w : {&c.waterfall, &c.by_op})
    for (const prof::Cause& cause : w->causes) QCOMPARE(cause.delta_ps(), 0);
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
  QCOMPARE(there.by_op.causes.size(), back.by_op.causes.size());
  for (size_t i = 0; i < there.by_op.causes.size(); ++i) {
    QCOMPARE(there.by_op.causes[i].op, back.by_op.causes[i].op);
    QCOMPARE(there.by_op.causes[i].delta_ps(), -back.by_op.causes[i].delta_ps());
  }
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

// The mean of the whole run is another one, and named so.
void CompareTest::aReportSaysTheStepThatCompareShows() {
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
  const RunSample sample = sample_of(shown);
  const auto measures = measures_of(shown, sample, 0);
  const auto mean = std::ranges::find(measures, QString("step, mean"), &MeasureValue::name);
  QVERIFY(mean != measures.end() && sample.traced());
  const ReportRun of_file = report_run_of_file(path.toStdString()), of_window = report_run(shown);
  QCOMPARE(of_file.us_per_step, mean->value);
  QCOMPARE(of_window.us_per_step, mean->value);
  QVERIFY(mean->value < 1000);
  QCOMPARE(of_file.whole_us_per_step, 1234.5);
  QCOMPARE(of_window.whole_us_per_step, 1234.5);
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
  QVERIFY(interval_of_blocks(calm).half_width < interval_of_blocks(rough).half_width);
  QVERIFY(interval_of_blocks(drifting).half_width > 2);
  QVERIFY(interval_of_blocks(drifting).half_width > 5 * mean_with_interval(drifting).half_width);
  QCOMPARE(interval_of_blocks({}).half_width, 0.0);
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
    return run;
  };
  const auto a = untraced(100, 8), b = untraced(101, 8), c = untraced(150, 8);
  QVERIFY(compare_runs(*a, *b).half_width_us > 1);
  QVERIFY(!compare_runs(*a, *b).beyond_noise);
  QVERIFY(compare_runs(*a, *c).beyond_noise);
  QVERIFY(!compare_runs(*a, *c).traced);
  const auto verdict = [&](const Run& x, const Run& y) {
    return delta_of(measures_of(x, sample_of(x), 0)[0], measures_of(y, sample_of(y), 0)[0]).verdict;
  };
  QCOMPARE(verdict(*a, *b), Verdict::WithinNoise);
  QCOMPARE(verdict(*a, *c), Verdict::Worse);
  // Beside a run with a trace the noise of both counts.
  const auto traced = made("traced", test::StepStyle::EagerDirect, 1);
  const double own = compare_runs(*traced, *traced).half_width_us / std::sqrt(2.0);
  QVERIFY(compare_runs(*traced, *a).half_width_us > own);
}

void CompareTest::eachFigureHasItsOwnNoise() {
  const auto a = made("a", test::StepStyle::EagerDirect, 0), b = made("b", test::StepStyle::EagerDirect, 1);
  a->spec.data.name = b->spec.data.name = "mnist";  // 10 000 rows to test with
  const auto named = [](const Run& run, const RunSample& sample, const char* name) {
    for (const MeasureValue& m : measures_of(run, sample, 0))
      if (m.name == name) return m;
    return MeasureValue{};
  };
  const auto verdict = [&](double first, double second) {
    a->evals.back().accuracy = first, b->evals.back().accuracy = second;
    return delta_of(named(*a, sample_of(*a), "test accuracy, last"), named(*b, sample_of(*b), "test accuracy, last"))
        .verdict;
  };
  QCOMPARE(verdict(0.975, 0.977), Verdict::WithinNoise);
  QCOMPARE(verdict(0.975, 0.985), Verdict::Better);
  QCOMPARE(verdict(1.0, 0.9999), Verdict::WithinNoise);
  QCOMPARE(verdict(1.0, 0.99), Verdict::Worse);
  // Which evaluation was the first to reach an accuracy is as certain as its rows make it.
  const auto seconds = [](const Run& run, double accuracy) {
    for (const MeasureValue& m : measures_of(run, sample_of(run), accuracy))
      if (m.name.startsWith("time to")) return m;
    return MeasureValue{};
  };
  a->evals = {{100, 1.0, 1, 0.3, 0.949}, {200, 2.0, 2, 0.2, 0.951}, {300, 3.0, 3, 0.1, 0.98}};
  QCOMPARE(seconds(*a, 0.95).value, 2.0);
  QVERIFY2(std::abs(seconds(*a, 0.95).half_width - 1) < 0.1, qPrintable(QString::number(seconds(*a, 0.95).half_width)));
  QCOMPARE(seconds(*a, 0.97).value, 3.0);
  QVERIFY(seconds(*a, 0.97).half_width < 0.1);
  // A tail that comes and goes is less certain than the middle.
  RunSample sample = sample_of(*a);
  sample.step_us.clear();
  for (int i = 0; i < 2000; ++i) sample.step_us.push_back(i % 50 == 0 ? 200 + i % 700 : 100 + i % 3);
  const double middle = named(*a, sample, "step, median").half_width,
               tail = named(*a, sample, "step, 99th percentile").half_width;
  QVERIFY2(middle < 1 && tail > 20, qPrintable(QString("%1 %2").arg(middle).arg(tail)));
}

// A queue of steps is read now and then: 64 losses at once, a microsecond apart, are no 64 million samples a second.
void CompareTest::lossesThatComeTogetherAreNoSpeed() {
  QTemporaryDir folder;
  const QString path = folder.filePath("bulks.wsrun");
  {
    prof::RunSummary summary;
    RunSpec spec;
    spec.train.batch = 64;
    summary.spec = to_json(spec).dump();
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

QTEST_MAIN(CompareTest)
#include "compare_test.moc"
