// What the charts compute before they draw: extremes kept, smoothing, sums that add up.
#include <QAbstractItemModelTester>
#include <QMenu>
#include <QPushButton>
#include <QTemporaryDir>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "app/charts/curve_data.h"
#include "app/charts/curve_pane.h"
#include "app/charts/plot.h"
#include "app/charts/series.h"
#include "app/charts/split_pane.h"
#include "app/core/runs/data_shape.h"
#include "app/pages/library/runs_panel.h"
#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/workspace/run_library.h"
#include "app/workspace/run_loss.h"
#include "app/pages/live/live_page.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class ChartsTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    qputenv("WARPSIGHT_RESOURCES", WARPSIGHT_SOURCE_DIR "/resources");
    set_theme(*qApp, ThemeName::Dark);
  }
  void samplingKeepsEverySpike();
  void samplingAgreesWithEveryPoint();
  void aLongTrainingKeepsItsExtremesInBoundedMemory();
  void smoothingStartsAtTheFirstValue();
  void roundedPartsAddUp();
  void splitTableAddsUpAndMerges();
  void tickLabelsDoNotTouch();
  void numbersReadAsWritten();
  void estimateKnowsTheSets();
  void runsModelBehaves();
  void curvesOfEqualRunsAreBothSeen();
  void theTrainingCurveStaysInThePlot();
  void theRawLossIsQuieterThanItsSmoothedCurve();
  void theKeyOfTheLinesStandsBesideThem();
  void theAxisHasAName();
  void valuesOfManyRunsStandAtTheCursor();
  void textsOfASmallChartStandApart();
  void aPictureNamesAllItsRuns();
  void eightRunsFitIntoASmallSplit();
  void aWideSplitContinuesInTablesSideBySide();
  void aSmallWindowNamesTheColoursOfTheTimeline();
  void aPaneOffersItsMeasures();
  void theDotStandsAtTheValueOfTheTopBar();
  void eachLossHasItsName();
  void theHeightOfTheWindowPlacesTheTimeline();
  void aDeletedRunIsNotAsked();
};

void ChartsTest::samplingKeepsEverySpike() {
  MinMaxSeries series;
  std::vector<double> values(100'000);
  for (int i = 0; i < 100'000; ++i) values[i] = std::sin(i * 0.01);
  values[41'234] = 1e6;
  values[77'001] = -1e6;
  for (int i = 0; i < 100'000; ++i) series.append(i, values[i]);
  const auto points = series.sample(0, 99'999, 500);
  QVERIFY(points.size() <= 1002);
  const auto has = [&](double y) {
    return std::any_of(points.begin(), points.end(), [y](const Point& p) { return p.y == y; });
  };
  QVERIFY(has(1e6));
  QVERIFY(has(-1e6));
  QVERIFY(std::is_sorted(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
}

// The block sums must give what a walk over every point gives, on any range.
// Hours of a fast network in a moment: eight million steps.
void ChartsTest::aLongTrainingKeepsItsExtremesInBoundedMemory() {
  Run run;
  CurveData curve(&run, Gauge::Loss, XAxis::Step, 0.6, 1024);
  constexpr int64_t kSteps = 8'000'000, kAtOnce = 100'000, kSpike = 1'234'567;
  for (int64_t step = 0; step < kSteps;) {
    RunUpdate update;
    for (int64_t end = step + kAtOnce; step < end; ++step) {
      ws::StepResult result;
      result.step = step, result.loss = step == 0 ? 7.0f : step == kSpike ? 100.0f : 1.0f;
      result.finished_s = static_cast<double>(step) * 1e-6;
      update.steps.push_back(result);
    }
    run.apply(std::move(update));
    curve.take();
    QVERIFY(run.steps.size() <= Run::kMostSteps + kAtOnce);
    QCOMPARE(curve.raw().size(), run.steps.size());
  }
  QCOMPARE(run.steps.front().loss, 7.0f);
  QCOMPARE(run.steps.back().step, double(kSteps - 1));
  QVERIFY(std::ranges::is_sorted(run.steps, {}, &StepPoint::step));
  double low = 0, high = 0;
  QVERIFY(curve.raw().range(0, kSteps, low, high, false));
  QCOMPARE(high, 100.0);
}

void ChartsTest::samplingAgreesWithEveryPoint() {
  MinMaxSeries series;
  uint32_t state = 7;
  std::vector<double> values;
  for (int i = 0; i < 5000; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<double>(state >> 8));
    series.append(i, values.back());
  }
  for (const auto& [from, to] : {std::pair{0, 4999}, std::pair{1, 130}, std::pair{127, 129}, std::pair{300, 4711}}) {
    double low = 0, high = 0;
    QVERIFY(series.range(from, to, low, high, false));
    const auto [a, b] = std::minmax_element(values.begin() + from, values.begin() + to + 1);
    QCOMPARE(low, *a);
    QCOMPARE(high, *b);
  }
  QCOMPARE(series.nearest(17.9)->x, 17.0);
  QCOMPARE(series.nearest(-5)->x, 0.0);
}

void ChartsTest::smoothingStartsAtTheFirstValue() {
  Ema ema(0.9);
  QCOMPARE(ema.add(5), 5.0);
  double last = 0;
  for (int i = 0; i < 400; ++i) last = ema.add(1);
  QVERIFY(std::abs(last - 1) < 1e-6);
  QVERIFY(std::isnan(ema.add(std::nan(""))));
  Ema few(0.97);  // a short curve that falls: the smoothed one stays with it
  for (int i = 0; i < 50; ++i) last = few.add(1.0 / (1 + i));
  QVERIFY2(last < 2.0 / 50, qPrintable(QString::number(last)));
}

void ChartsTest::roundedPartsAddUp() {
  const std::vector<double> parts{1.04, 2.04, 3.04, 0.08};
  const auto rounded = round_to_sum(parts, 6.2, 1);
  double sum = 0;
  for (double value : rounded) sum += value;
  QVERIFY(std::abs(sum - 6.2) < 1e-9);
  for (size_t i = 0; i < parts.size(); ++i) QVERIFY(std::abs(rounded[i] - parts[i]) <= 0.1);
}

void ChartsTest::splitTableAddsUpAndMerges() {
  using ws::prof::Meaning;
  const StepSplit a{{{Meaning::Matrix, {}, 18.23}, {Meaning::Loss, {}, 2.31}, {Meaning::Idle, {}, 6.56}}, 27.1, 10};
  const StepSplit b{{{Meaning::Matrix, {}, 21.54}, {Meaning::Allocation, {}, 347.66}}, 369.2, 10};
  for (bool merged : {false, true}) {
    const SplitTable table = split_table({&a, &b}, merged);
    for (size_t column = 0; column < 2; ++column) {
      double sum = 0;
      for (const SplitRow& row : table.rows) sum += row.us[column];
      QVERIFY(std::abs(sum - table.wall[column]) < 0.051);
    }
    QCOMPARE(table.rows.size(), size_t(merged ? 3 : 4));
    QCOMPARE(table.rows.front().name, merged ? QString("computing") : ws::app::meaning_name(Meaning::Matrix));
  }
  const StepSplit rank{{{Meaning::Matrix, {}, 2}, {Meaning::Optimizer, {}, 1}, {Meaning::Communication, {}, 7}}, 10, 10};
  const std::vector<SplitRow> rows = split_table({&rank}, true).rows;
  QCOMPARE(rows.size(), size_t(2));
  QCOMPARE(rows[1].name, ws::app::meaning_name(Meaning::Communication));
  QCOMPARE(rows[1].us.front(), 7.0);
  const StepSplit collectives{{{Meaning::Communication, {}, 5}, {Meaning::Idle, "not recorded", 2}}, 7, 10};
  const SplitRow only = split_table({&collectives}, true).rows.front();
  QCOMPARE(only.name, ws::app::meaning_name(Meaning::Communication));
  QCOMPARE(only.meaning, Meaning::Communication);
  const StepSplit long_step{{{Meaning::Matrix, {}, 1972.9}, {Meaning::Idle, {}, 9650.4}}, 11'623.3, 10};
  const SplitRow in_ms = split_table({&long_step}, false).rows.front();
  QCOMPARE(in_ms.us[0], 1.97);  // as many decimals as the step time
  QCOMPARE(std::lround(in_ms.share * 1000), 170L);  // not of 1.97 and 11.62
  const StepSplit short_ms{{{Meaning::Matrix, {}, 723.4}, {Meaning::Idle, {}, 4000}}, 4723.4, 10}, us{{{Meaning::Matrix, {}, 307.2}}, 307.2, 10}, tiny{{{Meaning::Matrix, {}, 12.5}}, 12.5, 10};
  QVERIFY2(split_table({&short_ms}, false).in_ms, "ms from 1000 µs on, as the top bar");
  const SplitTable both = split_table({&short_ms, &us}, false);
  QVERIFY2(both.in_ms, "one unit for both runs");
  QCOMPARE(both.rows.front().us[1], 0.307);
  QVERIFY2(!split_table({&short_ms, &tiny}, false).in_ms, "12.5 µs would lose its digits");
  const StepSplit waits{{{Meaning::Matrix, {}, 6757.4}, {Meaning::Communication, "waits for a rank", 3555.2}, {Meaning::Other, {}, 67.4}, {Meaning::Launch, {}, 1577.1}}, 11'957.1, 10};
  const SplitTable rounded = split_table({&waits}, false);  // 6.76 + 3.56 + 0.07 + 1.58 are 0.01 too much
  double sum = 0;
  for (const SplitRow& row : rounded.rows) {
    sum += row.us[0];
    if (row.name == "waits for a rank") QCOMPARE(row.us[0], 3.56);  // as on the page Ranks
    if (row.meaning == Meaning::Other) QCOMPARE(row.us[0], 0.06);
  }
  QVERIFY(std::abs(sum - 11.96) < 1e-9);
}

void ChartsTest::tickLabelsDoNotTouch() {
  for (const int width : {90, 110, 150, 240, 400})
    for (const double most : {37.0, 1500.0, 1742.0, 250'000.0}) {
      Plot plot;
      plot.resize(width, width < 200 ? 70 : 120);
      plot.xAxis->setRange(0, most), plot.yAxis->setRange(0, most);
      plot.replot();
      plot.replot();
      QStringList wrong = unreadable(plot);
      wrong.removeIf([](const QString& what) { return !what.contains("lies on"); });
      QVERIFY2(wrong.isEmpty(), qPrintable(QString("%1 pixels to %2: %3").arg(width).arg(most).arg(wrong.join("; "))));
    }
}

void ChartsTest::numbersReadAsWritten() {
  const QString thin(QChar(0x202F)), minus(QChar(0x2212));
  QCOMPARE(count_text(56280), "56" + thin + "280");
  QCOMPARE(fixed_text(-0.31, 2), minus + "0.31");
  QCOMPARE(fixed_text(-0.001, 1), QString("0.0"));
  QCOMPARE(significant_text(0.01934), QString("0.0193"));
  QCOMPARE(significant_text(2360000), QString("2.36 M"));
  QCOMPARE(significant_text(3.24e-5), QString::fromUtf8("3.2·10⁻⁵"));
  QCOMPARE(significant_text(-1.5e-12), QString::fromUtf8("−1.5·10⁻¹²"));
  QCOMPARE(duration_text(725), QString("12 min 5 s"));
  QCOMPARE(duration_text(28 * 60 + 20), QString("28 min"));
  QCOMPARE(duration_text(3599), QString("60 min"));
  QCOMPARE(bytes_text(671089), QString("655.4 KiB"));
  QCOMPARE(us_text(1842.3), "1" + thin + "842");
}

void ChartsTest::estimateKnowsTheSets() {
  ws::data::DataSpec spec;
  QCOMPARE(data_shape(spec).train, int64_t(60000));
  spec.limit = 1000;
  QCOMPARE(data_shape(spec).train, int64_t(1000));
  spec = {};
  spec.name = "csv";
  QVERIFY(!data_shape(spec).known());
  ws::RunSpec run;
  QVERIFY(!relevant(run, "data.slope"));
  run.data.name = "line";
  QVERIFY(relevant(run, "data.slope"));
}

void ChartsTest::runsModelBehaves() {
  QTemporaryDir folder;
  RunLibrary library(folder.path());
  RunsModel model(&library);
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  connect(&library, &RunLibrary::changed, &model, &RunsModel::reload);
  for (int i = 0; i < 10; ++i) {
    auto* run = new Run(&library);
    run->title = QString("run %1").arg(i);
    run->created = QDateTime::currentDateTime().addDays(-i / 3);
    library.adopt(run);
    library.setTicked(run, true);
  }
  QCOMPARE(library.ticked().size(), size_t(8));  // eight letters, no more
  QCOMPARE(model.rowCount(), 10 + 1);            // and a heading for their data set
  model.setOrder(RunOrder::Newest);
  QCOMPARE(model.rowCount(), 10 + 4);            // and one for each of four days
  model.setFilter("run 7");
  QCOMPARE(model.rowCount(), 2);
  model.setFilter({});
  Run* first = library.ticked().front();
  QVERIFY(model.setData(model.indexOf(first), Qt::Unchecked, Qt::CheckStateRole));
  QCOMPARE(first->slot, -1);
}

namespace {

// Runs with the first letters, of which nothing is known yet.
std::vector<Run*> lettered(int count, QObject* owner) {
  std::vector<Run*> runs;
  for (int slot = 0; slot < count; ++slot) {
    runs.push_back(new Run(owner));
    runs.back()->slot = slot;
  }
  return runs;
}

// Losses that fall, accuracies that rise from `lowest` on, an evaluation every hundred steps.
void fill(Run& run, int slot, double lowest) {
  run.slot = slot;
  for (int i = 0; i < 1000; ++i) {
    const double share = 1 - std::exp(-i / 200.0);
    run.steps.push_back(
        {double(i), i * 1e-3, 0, float(2.3 * (1 - share) + 0.1), float(lowest + (0.9 - lowest) * share)});
    if (i % 100 == 99) run.evals.push_back({double(i), i * 1e-3, (i + 1) / 100.0, 0.3, 0.85 + i * 5e-5});
    if (i % 10 == 0) run.meters.push_back({double(i), i * 1e-3, 3, 3, 1e5, 512.0 * 1024, 1024.0 * 1024});
  }
}

std::vector<Qt::PenStyle> lines(const Plot& plot) {
  std::vector<Qt::PenStyle> styles;
  for (int i = 0; i < plot.graphCount(); ++i)
    if (plot.graph(i)->lineStyle() != QCPGraph::lsNone && plot.graph(i)->pen().color().alphaF() > 0.9F)
      styles.push_back(plot.graph(i)->pen().style());
  return styles;
}

}  // namespace

void ChartsTest::curvesOfEqualRunsAreBothSeen() {
  Run a, b, c;
  fill(a, 0, 0.1), fill(b, 1, 0.1), fill(c, 2, 0.1);
  for (StepPoint& p : c.steps) p.loss *= 2;
  CurvePane pane({Gauge::Loss});
  pane.resize(500, 240);
  pane.show();
  pane.setRuns({&a, &b, &c});
  QCOMPARE(lines(*pane.plot()), (std::vector<Qt::PenStyle>{Qt::SolidLine, Qt::CustomDashLine, Qt::SolidLine}));
}

void ChartsTest::theTrainingCurveStaysInThePlot() {
  Run a;
  fill(a, 0, 0.4);
  CurvePane pane({Gauge::Accuracy});
  pane.resize(400, 240);
  pane.show();
  pane.setRuns({&a});
  const QCPRange y = pane.plot()->yAxis->range();
  QVERIFY2(y.lower < 45 && y.lower > 30, qPrintable(QString::number(y.lower)));
  QVERIFY(y.upper > 90);
}

void ChartsTest::theRawLossIsQuieterThanItsSmoothedCurve() {
  Run a;
  fill(a, 0, 0.4);
  CurvePane pane({Gauge::Loss});
  pane.resize(400, 240);
  pane.show();
  pane.setRuns({&a});
  int faint = 0, clear = 0;
  for (int i = 0; i < pane.plot()->graphCount(); ++i) {
    const QColor ink = pane.plot()->graph(i)->pen().color();
    if (pane.plot()->graph(i)->pen().style() == Qt::NoPen) continue;
    ++(ink.alphaF() < 0.3F ? faint : clear);
  }
  QVERIFY(faint == 1 && clear >= 1);
}

void ChartsTest::theKeyOfTheLinesStandsBesideThem() {
  Plot plot;
  plot.resize(300, 200);
  plot.show();
  plot.setEmptyText({});
  plot.addGraph();
  plot.xAxis->setRange(0, 100), plot.yAxis->setRange(0, 100);
  plot.setCaption("line test, faint train", Qt::AlignRight | Qt::AlignBottom);
  plot.replot();
  const QRect area = plot.axisRect()->rect();
  QVERIFY(plot.captionBox().bottom() > area.center().y() && plot.captionBox().right() > area.center().x());
  // Two points only: the line between them counts too.
  plot.graph(0)->setData({0, 100}, {6, 6});
  plot.replot();
  QVERIFY(plot.captionBox().bottom() < area.center().y());
  plot.addGraph();
  plot.graph(1)->setData({0, 100}, {96, 96});
  plot.replot();
  const QRectF box = plot.captionBox();
  for (double y : {6.0, 96.0}) {
    const double at = plot.yAxis->coordToPixel(y);
    QVERIFY(at < box.top() || at > box.bottom());
  }
}

void ChartsTest::theAxisHasAName() {
  QObject owner;
  CurvePane pane({Gauge::Loss});
  pane.resize(320, 200);
  pane.show();
  pane.setRuns(lettered(1, &owner));
  auto* plot = pane.findChild<Plot*>();
  for (const auto& [axis, name] : {std::pair{XAxis::Step, "step"}, {XAxis::Epoch, "epoch"}, {XAxis::Wall, "time, s"}}) {
    pane.setXAxis(axis);
    plot->replot(QCustomPlot::rpImmediateRefresh);
    const auto texts = painted_texts(*plot);
    const auto found = std::ranges::find(texts, QString(name), &PaintedText::text);
    QVERIFY2(found != texts.end(), name);
    QVERIFY(found->box.left() >= 0 && found->box.right() < plot->axisRect()->left() && found->box.top() > plot->axisRect()->bottom());
  }
}

void ChartsTest::valuesOfManyRunsStandAtTheCursor() {
  QObject owner;
  const std::vector<Run*> shown = lettered(5, &owner);
  for (Run* run : shown)
    for (int step = 0; step < 50; ++step)
      run->steps.push_back({double(step), step * 1e-3, 0, float(5 - run->slot), 0.5F});
  CurvePane pane({Gauge::Loss});
  pane.resize(500, 260);
  pane.setRuns({shown[0], shown[1]});
  pane.show();
  QVERIFY(QTest::qWaitForWindowExposed(&pane));
  auto* plot = pane.findChild<Plot*>();
  pane.setCursorStep(20);
  QTRY_VERIFY(pane.legend()->showsValues());
  QVERIFY(plot->values().empty());
  pane.setRuns(shown);
  pane.setCursorStep(21);
  QTRY_COMPARE(plot->values().size(), size_t{5});
  QCOMPARE(plot->values()[4].text, QString("1.00"));
  QSignalSpy left(&pane, &CurvePane::pointerLeft);
  QEvent leave(QEvent::Leave);
  QCoreApplication::sendEvent(plot, &leave);
  QCOMPARE(left.count(), 1);
  pane.setCursorStep(21, false);  // the pointer is elsewhere: nothing covers the chart
  QVERIFY(plot->values().empty());
}

// A change during the run, the best test and the key of the lines share a small chart. A mark names its run.
void ChartsTest::textsOfASmallChartStandApart() {
  Run a, b;
  fill(a, 0, 0.1), fill(b, 1, 0.1);
  a.changes.push_back({950, "exec.allocator", "arena", "direct"});
  CurvePane pane({Gauge::Accuracy});
  pane.resize(220, 150);
  pane.show();
  const auto shows = [&](const QString& text) {
    const auto all = painted_texts(*pane.plot());
    return std::ranges::find(all, text, &PaintedText::text) != all.end();
  };
  for (const std::vector<Run*>& runs : {std::vector<Run*>{&a}, {&a, &b}}) {
    pane.setRuns(runs);
    pane.redraw();
    QTRY_VERIFY(shows(runs.size() > 1 ? "A: allocator direct" : "allocator direct"));
    for (const PaintedText& one : painted_texts(*pane.plot()))
      if (one.text == "90.00") QVERIFY2(one.box.bottom() <= pane.plot()->axisRect()->top() + 1, "the values stand above the curves");
    QVERIFY2(unreadable(*pane.plot()).isEmpty(), qPrintable(unreadable(*pane.plot()).join('\n')));
  }
}

void ChartsTest::aPictureNamesAllItsRuns() {
  struct Sheet : QWidget {
    CurvePane* pane = nullptr;
    void paintEvent(QPaintEvent*) override {
      QPainter painter(this);
      pane->renderTo(painter, rect());
    }
  };
  QObject owner;
  const std::vector<Run*> shown = lettered(4, &owner);
  for (Run* run : shown) run->title = QString("MNIST 784-128-10 · 30 epochs, direct from step %1").arg(6000 + run->slot), fill(*run, run->slot, 0.1);
  CurvePane pane({Gauge::Loss});
  pane.setRuns(shown);
  Sheet sheet;
  sheet.pane = &pane;
  sheet.resize(900, 420);
  const auto all = painted_texts(sheet);
  QCOMPARE(std::ranges::count_if(all, [](const PaintedText& text) { return text.text.startsWith("MNIST"); }), 4);
  for (const PaintedText& text : all) QVERIFY2(text.box.right() <= 900, qPrintable(text.text));
}

void ChartsTest::eightRunsFitIntoASmallSplit() {
  QObject owner;
  const std::vector<Run*> shown = lettered(8, &owner);
  for (Run* run : shown)
    run->split = {{{ws::prof::Meaning::Matrix, {}, 50.5},
                   {ws::prof::Meaning::Allocation, {}, 30.0},
                   {ws::prof::Meaning::Sync, {}, 10.0},
                   {ws::prof::Meaning::Idle, {}, 9.5}},
                  100,
                  7};
  SplitPane pane;
  pane.setCompact(true);
  pane.resize(236, 190);
  for (size_t count : {2, 4, 8}) {
    pane.setRuns({shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(count)});
    const auto all = painted_texts(pane);
    size_t letters = 0;
    for (const PaintedText& text : all) {
      letters += text.text.size() == 1 && text.box.left() < 30 && text.box.bottom() <= pane.height();
      QVERIFY2(text.box.bottom() <= pane.height() + 1, qPrintable(text.text));
      QVERIFY2(text.text.count('.') <= 1, qPrintable(text.text));  // numbers do not run into each other
    }
    QCOMPARE(letters, count);
    QVERIFY2(unreadable(pane).isEmpty(), qPrintable(unreadable(pane).join('\n')));
  }
}

// In a window of 1366 × 768, blocks of the timeline have these colours, and nothing else there names them.
void ChartsTest::aSmallWindowNamesTheColoursOfTheTimeline() {
  QObject owner;
  const std::vector<Run*> shown = lettered(2, &owner);
  using ws::prof::Meaning;
  for (Run* run : shown)
    run->split = {{{Meaning::Matrix, {}, 21.0}, {Meaning::Pointwise, {}, 13.0}, {Meaning::Loss, {}, 8.0}, {Meaning::Optimizer, {}, 9.0},
                   {Meaning::Allocation, {}, 101.0}, {Meaning::Sync, {}, 6.0}, {Meaning::Launch, {}, 110.0}}, 268, 7};
  SplitPane pane;
  pane.setCompact(true);
  pane.resize(486, 210);
  pane.setRuns(shown);
  const auto all = painted_texts(pane);
  for (const char* name : {"matrix product", "pointwise", "loss", "optimizer", "allocator calls", "sync", "launch gaps", "step time"})
    QVERIFY2(std::ranges::any_of(all, [&](const PaintedText& text) { return text.text == name && text.box.bottom() <= pane.height(); }), name);
  QVERIFY2(unreadable(pane).isEmpty(), qPrintable(unreadable(pane).join('\n')));
}

// Far apart, a name and its number cannot be read together.
void ChartsTest::aWideSplitContinuesInTablesSideBySide() {
  Run run;
  run.slot = 0;
  run.split = {{{ws::prof::Meaning::Matrix, {}, 100},
                {ws::prof::Meaning::Loss, {}, 45},
                {ws::prof::Meaning::Copy, {}, 17},
                {ws::prof::Meaning::Sync, {}, 18},
                {ws::prof::Meaning::Idle, {}, 20}},
               200,
               7};
  SplitPane pane;
  pane.setRuns({&run});
  pane.resize(300, 250);
  const int narrow = pane.wantedHeight();
  pane.resize(1000, 250);
  QVERIFY(pane.wantedHeight() < narrow);
  pane.resize(1000, pane.wantedHeight());
  const auto all = painted_texts(pane);
  const auto box = [&all](const QString& text) {
    const auto found = std::ranges::find(all, text, &PaintedText::text);
    return found == all.end() ? QRectF() : found->box;
  };
  for (const auto& [name, share] : {std::pair("matrix product", "50.0"), std::pair("loss", "22.5"), std::pair("step time", "200.0")}) {
    QVERIFY2(!box(name).isNull() && !box(share).isNull(), name);
    QCOMPARE_LT(box(share).right() - box(name).left(), 300);
    QCOMPARE_LT(std::abs(box(share).center().y() - box(name).center().y()), 4);
  }
  QVERIFY(box("step time").left() > 300);
  QVERIFY2(unreadable(pane).isEmpty(), qPrintable(unreadable(pane).join('\n')));
}

void ChartsTest::aPaneOffersItsMeasures() {
  Run a;
  fill(a, 0, 0.1);
  CurvePane pane({Gauge::AllocatorCalls, Gauge::Throughput, Gauge::Memory});
  pane.resize(300, 200);
  pane.show();
  pane.setRuns({&a});
  QPushButton* picker = nullptr;
  for (QPushButton* button : pane.findChildren<QPushButton*>())
    if (button->accessibleName() == "Gauge") picker = button;
  QVERIFY(picker && picker->isVisible() && picker->menu());
  QCOMPARE(picker->text(), QString("Allocator calls"));
  QCOMPARE(picker->menu()->actions().size(), 3);
  picker->menu()->actions()[2]->trigger();
  QCOMPARE(pane.measure(), Gauge::Memory);
  QCOMPARE(picker->text(), QString("Memory"));
  QCOMPARE(lines(*pane.plot()), (std::vector<Qt::PenStyle>{Qt::SolidLine, Qt::DotLine}));  // reserved, used
  QCOMPARE(pane.plot()->graph(1)->data()->at(5)->value, 0.5);
  Run small;
  fill(small, 0, 0.1);
  for (MeterPoint& p : small.meters) p.used = 200 * 1024, p.reserved = 400 * 1024;
  pane.setRuns({&small});
  QVERIFY(pane.findChild<QLabel*>("note")->text().startsWith("KiB"));  // as the timeline writes so little
  QCOMPARE(pane.plot()->graph(1)->data()->at(5)->value, 200.0);
  Run quiet;
  fill(quiet, 0, 0.1);
  for (MeterPoint& p : quiet.meters) p.used = p.reserved = 0;  // no one measured it
  pane.setRuns({&quiet});
  QCOMPARE(pane.plot()->graph(0)->data()->size(), 0);
}

// The top bar has the one loss of a run. A dot on the smoothed curve would be another number.
void ChartsTest::theDotStandsAtTheValueOfTheTopBar() {
  Run run;
  fill(run, 0, 0.1);
  run.steps.back().loss = 0.25F;
  CurvePane pane({Gauge::Loss});
  pane.resize(300, 200);
  pane.show();
  pane.setRuns({&run});
  const double shown = loss_of(run).value;
  QVERIFY(shown > 0.25);
  QCOMPARE(pane.legend()->items().front().value, QString());
  QCOMPARE(pane.plot()->dots().front().y, shown);
}

// The same three words stand in the header, in the key, in the file and in the glossary.
void ChartsTest::eachLossHasItsName() {
  Run run;
  fill(run, 0, 0.1);
  CurvePane pane({Gauge::Loss});
  pane.resize(900, 300);
  pane.show();
  pane.setRuns({&run});
  const QString key = pane.lineKey();
  for (const char* name : {"line: running mean", "batch loss", "test loss"}) QVERIFY2(key.contains(name), qPrintable(key));
  Run few;
  few.slot = 0, few.steps = {{10, 1, 0, 0.5F, 0}, {20, 2, 0, 0.4F, 0}, {30, 3, 0, 0.3F, 0}};
  CurvePane losses({Gauge::Loss}), tests({Gauge::Accuracy});
  losses.setRuns({&few}), tests.setRuns({&few});
  QCOMPARE(losses.lineKey(), QString("line: running mean · faint: batch loss"));
  QCOMPARE(tests.lineKey(), QString("faint: batch"));
  QVERIFY2(pane.csv().startsWith("run,step,batch_loss\n"), pane.csv().left(60).constData());
  for (const char* name : {"batch loss", "mean loss", "test loss"}) QVERIFY2(word_of(name), name);
  pane.setSmoothing(0);
  QVERIFY2(!pane.lineKey().contains("mean") && pane.lineKey().contains("line: batch loss"), qPrintable(pane.lineKey()));
}

void ChartsTest::theHeightOfTheWindowPlacesTheTimeline() {
  TimeCursor cursor;
  LivePage page(&cursor, nullptr);
  auto* timeline = new QWidget;
  page.setTimeline(timeline, [](const auto&) {});
  page.resize(1200, 1000);
  page.show();
  const int usual = timeline->y();
  QVERIFY(usual >= 262);
  const int head = page.accuracy()->mapTo(&page, QPoint()).x();
  Run run, other;
  for (const std::vector<Run*>& runs : {std::vector<Run*>{&run}, {&run, &other}, {}}) {
    page.setRuns(runs);
    QCoreApplication::processEvents();
    QCOMPARE(timeline->y(), usual);
    QCOMPARE(page.accuracy()->mapTo(&page, QPoint()).x(), head);
  }
  page.resize(1200, 1400);
  QCoreApplication::processEvents();
  QVERIFY(timeline->y() > usual + 100);
}

// A page that is not in front still has the runs that it showed when they are deleted.
void ChartsTest::aDeletedRunIsNotAsked() {
  TimeCursor cursor;
  LivePage page(&cursor, nullptr);
  page.setTimeline(new QWidget, [](const auto&) {});
  auto run = std::make_unique<Run>();
  fill(*run, 0, 0.1);
  page.setRuns({run.get()});
  run.reset();
  cursor.setCursor(1000);
  emit page.loss()->cursorMoved(1);
  QCOMPARE(*cursor.cursor(), 1000);
}

WARPSIGHT_QTEST(ChartsTest)
#include "charts_test.moc"
