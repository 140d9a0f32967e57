// What the laboratory's chart draws of known figures: clocks, throughput, ceilings, crossovers, and what it says.
#include <QApplication>
#include <QTest>
#include <algorithm>

#include "app/pages/lab/lab_chart.h"
#include "app/pages/lab/lab_results.h"
#include "app/pages/lab/lab_sentences.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"
#include "engine/lab/correctness.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;
using lab::Way;

class LabChartTest : public QObject {
  Q_OBJECT
 private:
  static lab::LabPoint point(Way way, int64_t size, double host, double device = 0) {
    lab::LabPoint p;
    p.way = way, p.size = size, p.median_s = host, p.low_s = 0.9 * host, p.high_s = 1.2 * host;
    p.device_s = p.compute_s = device;
    if (device > 0) p.device_low_s = 0.8 * device, p.device_high_s = 1.5 * device;
    constexpr int64_t kLargestProduct = 1 << 20;  // other operations have longer vectors
    p.flops = size <= kLargestProduct ? 2 * size * size * size : size, p.bytes = 12 * size * size;
    return p;
  }
  // A CPU that takes a nanosecond for each of n³, a GPU that takes 64 µs and works for 50 of them, and the pitfall.
  static lab::LabResult products() {
    lab::LabResult r;
    for (const int64_t n : {10, 20, 40, 80, 160}) {
      r.points.push_back(point(Way::CpuLibrary, n, 1e-9 * static_cast<double>(n * n * n)));
      r.points.push_back(point(Way::GpuResident, n, 64e-6, 50e-6));
      r.points.push_back(point(Way::GpuUnsynced, n, 4e-6, 50e-6));
    }
    return r;
  }
  static std::unique_ptr<LabChart> chart_of(const lab::LabResult& result, LabAxis axis = LabAxis::Time) {
    auto chart = std::make_unique<LabChart>(axis);
    chart->resize(1200, 600);
    chart->setShown({{result, {}, {}}});
    return chart;
  }
  static const LabCurve* curve_of(const LabChart& chart, Way way) {
    const auto found = std::ranges::find(chart.curves(), way, &LabCurve::way);
    return found == chart.curves().end() ? nullptr : &*found;
  }
  static QStringList painted(LabChart& chart) {
    QStringList all;
    for (const PaintedText& text : painted_texts(chart)) all << text.text;
    return all;
  }
  static bool paints(LabChart& chart, const QString& words) { return !painted(chart).filter(words).isEmpty(); }
  static bool near(double a, double b) { return std::abs(a - b) < 1e-6 * std::abs(b); }
  static bool shows(const lab::LabResult& result, const QString& words) {
    return !lab_findings(result).filter(words).isEmpty();
  }

 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Light); }
  void eventsAreForWhatHasThem();
  void thePitfallReadsTheLaunchByEitherClock();
  void eachClockHasItsSpread();
  void throughputIsWorkOverTime();
  void aChartWithoutRatesIsNotThere();
  void ceilingsAreLinesOfTheirAxis();
  void crossoversAreDrawnWhereTheGpuTakesOver();
  void wrongPointsAreNotDrawn();
  void withoutAPointThereAreNoAxes();
  void findingsSayWhatTheFiguresAre();
};

// Before the first point, a scale would look like a result.
void LabChartTest::withoutAPointThereAreNoAxes() {
  LabChart chart(LabAxis::Time);
  chart.resize(900, 400);
  chart.setEmptyText("Press Measure");
  QCOMPARE(painted(chart), QStringList{"Press Measure"});
}

void LabChartTest::eventsAreForWhatHasThem() {
  auto chart = chart_of(products());
  QCOMPARE(curve_of(*chart, Way::GpuResident)->points[0].y(), 64e-6);
  chart->setClock(LabClock::Events);
  QCOMPARE(curve_of(*chart, Way::GpuResident)->points[0].y(), 50e-6);
  QVERIFY(near(curve_of(*chart, Way::CpuLibrary)->points[0].y(), 1e-6));
  chart->setClock(LabClock::Host);
  QCOMPARE(curve_of(*chart, Way::GpuResident)->points[0].y(), 64e-6);
}

// By events it would read the true time, and the label beside it would lie.
void LabChartTest::thePitfallReadsTheLaunchByEitherClock() {
  auto chart = chart_of(products());
  for (const LabClock clock : {LabClock::Host, LabClock::Events}) {
    chart->setClock(clock);
    const LabCurve* pitfall = curve_of(*chart, Way::GpuUnsynced);
    QVERIFY(pitfall && pitfall->pitfall);
    for (const QPointF& p : pitfall->points) QCOMPARE(p.y(), 4e-6);
    QVERIFY2(paints(*chart, "only the launch, 4"), qPrintable(painted(*chart).join("; ")));
    QCOMPARE(paints(*chart, "by the host's clock"), clock == LabClock::Events);
  }
}

void LabChartTest::eachClockHasItsSpread() {
  lab::LabResult result = products();
  auto chart = chart_of(result);
  QVERIFY(near(curve_of(*chart, Way::GpuResident)->spread.at(2).first, 0.9 * 64e-6));
  chart->setClock(LabClock::Events);
  QCOMPARE(curve_of(*chart, Way::GpuResident)->spread.size(), size_t(5));
  QVERIFY(near(curve_of(*chart, Way::GpuResident)->spread.at(2).first, 0.8 * 50e-6));
  QVERIFY(near(curve_of(*chart, Way::GpuResident)->spread.at(2).second, 1.5 * 50e-6));
  QVERIFY(near(curve_of(*chart, Way::CpuLibrary)->spread.at(0).second, 1.2e-6));
  for (lab::LabPoint& p : result.points) p.device_low_s = p.device_high_s = 0;  // as in files of before
  chart->setShown({{result, {}, {}}});
  QVERIFY(curve_of(*chart, Way::GpuResident)->spread.empty());
  QVERIFY(!curve_of(*chart, Way::CpuLibrary)->spread.empty());
}

void LabChartTest::throughputIsWorkOverTime() {
  auto chart = chart_of(products(), LabAxis::Flops);
  QVERIFY(near(curve_of(*chart, Way::CpuLibrary)->points[3].y(), 2e9));
  QVERIFY(near(curve_of(*chart, Way::GpuResident)->points[3].y(), 2 * 80.0 * 80 * 80 / 64e-6));
  const auto band = curve_of(*chart, Way::CpuLibrary)->spread.at(3);
  QVERIFY(near(band.first, 2e9 / 1.2) && near(band.second, 2e9 / 0.9));
  QVERIFY2(!curve_of(*chart, Way::GpuUnsynced), "work that was not waited for has no rate");
  chart->setAxis(LabAxis::Bytes);
  QVERIFY(near(curve_of(*chart, Way::GpuResident)->points[3].y(), 12 * 80.0 * 80 / 64e-6));
  chart->setClock(LabClock::Events);
  QVERIFY(near(curve_of(*chart, Way::GpuResident)->points[3].y(), 12 * 80.0 * 80 / 50e-6));
}

// A file may have times without counts of arithmetic and bytes. Pitfalls alone have no throughput either.
void LabChartTest::aChartWithoutRatesIsNotThere() {
  lab::LabResult counted = products(), bare = counted, pitfalls = counted;
  for (lab::LabPoint& p : bare.points) p.flops = p.bytes = 0;
  std::erase_if(pitfalls.points, [](const lab::LabPoint& p) { return p.way != Way::GpuUnsynced; });
  LabResults results;
  results.resize(1200, 700);
  results.show();
  const auto throughput = [&] {
    const auto panes = results.findChildren<Pane*>();
    return (*std::ranges::find(panes, QString("Throughput"), &Pane::title))->isVisible();
  };
  QVERIFY2(throughput(), "before the first point it says what will be there");
  for (const auto& [result, there] : {std::pair{&counted, true}, {&bare, false}, {&counted, true}, {&pitfalls, false}}) {
    results.setShown({{*result, {}, {}}}, false);
    QCOMPARE(throughput(), there);
    QCOMPARE(results.findChild<QPushButton*>("axis")->isVisible(), there);
    QVERIFY(!results.chart()->curves().empty());
  }
}

void LabChartTest::ceilingsAreLinesOfTheirAxis() {
  lab::LabResult result = products();
  result.ceilings.fp32_flops_s = 5e11, result.ceilings.tf32_flops_s = 3e12, result.ceilings.fp16_flops_s = 8e14;
  result.ceilings.read_write_bytes_s = 4.28e9, result.ceilings.pinned_bytes_s = 2e9;
  auto chart = chart_of(result, LabAxis::Flops);
  QVERIFY2(paints(*chart, "fp32, measured: 500 GFLOP/s"), qPrintable(painted(*chart).join("; ")));
  QVERIFY(paints(*chart, "tf32, measured: 3.00 TFLOP/s"));
  QVERIFY2(!paints(*chart, "fp16"), "so far above the curves that it would flatten them");
  QVERIFY(!paints(*chart, "device memory"));
  chart->setAxis(LabAxis::Bytes);
  QVERIFY2(paints(*chart, "device memory, measured: 4.28 GB/s"), qPrintable(painted(*chart).join("; ")));
  QVERIFY(paints(*chart, "pinned copy, measured: 2.00 GB/s"));
  QVERIFY(!paints(*chart, "FLOP/s"));
  chart->setAxis(LabAxis::Time);
  QVERIFY(!paints(*chart, "measured:"));
}

void LabChartTest::crossoversAreDrawnWhereTheGpuTakesOver() {
  auto chart = chart_of(products());
  QVERIFY2(paints(*chart, "N = 40"), qPrintable(painted(*chart).join("; ")));  // 40³ ns are 64 µs
  QVERIFY(paints(*chart, "GPU, resident data overtakes CPU, library"));
  chart->setClock(LabClock::Events);
  QVERIFY2(!paints(*chart, "overtakes"), "what a caller waits for decides, not the work alone");
  chart->setClock(LabClock::Host);
  chart->setAxis(LabAxis::Flops);
  QVERIFY(!paints(*chart, "overtakes"));
  lab::LabResult slow = products();
  std::erase_if(slow.points, [](const lab::LabPoint& p) { return p.size > 20; });
  QVERIFY(!paints(*chart_of(slow), "overtakes"));
}

void LabChartTest::wrongPointsAreNotDrawn() {
  lab::LabResult result = products();
  for (lab::LabPoint& p : result.points)
    if (p.way == Way::GpuResident && p.size >= 40) {
      p.ok = false;
      p.note = QString("The result is wrong: output 3 is 0.5 where float64 gives 0.25.").toStdString();
      QVERIFY(p.note.starts_with(lab::kWrong));
    }
  auto chart = chart_of(result);
  const LabCurve* curve = curve_of(*chart, Way::GpuResident);
  QCOMPARE(curve->points.size(), size_t(2));
  QCOMPARE(curve->end_note, QString("wrong at 40"));
  QVERIFY(!paints(*chart, "overtakes"));
  QVERIFY(shows(result, "GPU, resident data: The result is wrong: output 3 is 0.5"));
}

void LabChartTest::findingsSayWhatTheFiguresAre() {
  const lab::LabResult result = products();
  QVERIFY2(
      shows(result, "At N = 160, the clock without a sync shows 4.0 µs. The work takes 64.0 µs, 16.0×"),
      qPrintable(lab_findings(result).join("; ")));
  QCOMPARE(lab_headline(result), QString("The dashed curve is not the work"));
  lab::LabResult sines;
  sines.spec.operation = lab::Operation::Sine;
  sines.ceilings.read_write_bytes_s = 4e12;
  for (const int64_t n : {512, 1 << 28}) {
    const double fused = n == 512 ? 9e-6 : 600e-6;
    sines.points.push_back(point(Way::GpuOpByOp, n, n == 512 ? 20e-6 : 2400e-6));
    sines.points.push_back(point(Way::GpuGraphOps, n, n == 512 ? 12e-6 : 2398e-6));
    sines.points.push_back(point(Way::GpuResident, n, fused, fused));
    sines.points.back().bytes = 8 * n;
    sines.points.back().bound_s = 8 * static_cast<double>(n) / 4e12;
    sines.points.back().error = 2.5e-7;
    sines.points.push_back(point(Way::GpuPinned, n, 40e-3));
    sines.points.push_back(point(Way::GpuOverlap, n, 20e-3));
  }
  const QString all = lab_findings(sines).join("; ");
  for (const char* words :
       {"2.40 ms op by op, 600.0 µs as one kernel, 4.00× faster",
        "At N = 512, the operations take 20.0 µs if launched one by one, and 12.0 µs as one CUDA graph",
        "40.00 ms with copies one after another, 20.00 ms overlapped, 2.00× faster", "The kernel takes 600.0 µs: it reaches 89 %",
        "Checked against float64 on the CPU: largest error 2.5e-07"})
    QVERIFY2(all.contains(words), qPrintable(QString(words) + " is not in: " + all));
  QVERIFY(!all.contains("without a sync"));
  lab::LabResult cold;
  cold.points = {point(Way::GpuResident, 64, 11e-6), point(Way::GpuCold, 64, 0.163)};
  cold.points[1].note = "context 101 ms, first call 62.0 ms, second 0.011 ms";
  QVERIFY(shows(cold, "The first call of a process at N = 64: context 101 ms, first call 62.0 ms"));
}

WARPSIGHT_QTEST(LabChartTest)
#include "lab_chart_test.moc"
