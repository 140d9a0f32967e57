// The ranks page: it is there only for runs of several ranks, shows the numbers of the report, and moves the timeline.
// With WARPSIGHT_PICTURES=folder each state that is looked at leaves a picture there.
#include <QLabel>
#include <QHeaderView>
#include <QPainter>
#include <QSvgRenderer>
#include <QTableView>
#include <QTest>
#include <ctime>

#include "profiling/analysis/collective_waits.h"
#include "app/widgets/theme.h"
#include "app/timeline/timeline_painter.h"
#include "app/timeline/hover_card.h"
#include "app/pages/details/details_panel.h"
#include "app/core/report/report_sections.h"
#include "app/pages/ranks/lateness_view.h"
#include "app/pages/ranks/rank_figure_view.h"
#include "app/pages/ranks/ranks_panel.h"
#include "app/report/drawing_painter.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/timeline/timeline_pane.h"
#include "app/widgets/pane.h"
#include "profiling/base/text.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_ranks.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/sanitizers.h"

using namespace ws;
using namespace ws::app;

namespace {

QString cell(const QTableView& table, int row, int column) {
  return table.model()->index(row, column).data().toString();
}

int column_named(const QTableView& table, const QString& name) {
  for (int c = 0; c < table.model()->columnCount(); ++c)
    if (table.model()->headerData(c, Qt::Horizontal).toString() == name) return c;
  return -1;
}

QString at_name(const QTableView& table, int row, const QString& name) {
  return cell(table, row, column_named(table, name));
}

struct ShownRanks {
  explicit ShownRanks(prof::RankReport report = test::made_report(), QSize size = {1300, 860}) {
    panel.resize(size);
    panel.show();
    panel.showReport(std::move(report));
    QCoreApplication::processEvents();
  }
  QColor colour(size_t rank, size_t step) {
    const QPointF at = panel.map()->cellOf(rank, step).center();
    return panel.map()->grab().toImage().pixelColor(static_cast<int>(at.x()), static_cast<int>(at.y()));
  }
  RanksPanel panel;
};

QColor colour_of(uint32_t rgb) { return QColor::fromRgb(rgb); }

double processor_ms(const std::function<void()>& work) {
  const std::clock_t before = std::clock();
  work();
  return static_cast<double>(std::clock() - before) * 1000 / CLOCKS_PER_SEC;
}

QByteArray file_text(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

std::vector<prof::CollectiveRow> kernels_of_nccl() {
  return {{"AllReduce_Sum_f32_RING_LL", 26'000'000, 1, 19, 164, 164, 160},
          {"ReduceScatter_Sum_bf16_RING_LL128", 4'000'000, 1, 0, 90, 90, 22.4},
          {"AllGather_RING_LL", 2'000'000, 1, 0, 60, 60, 16.7},
          {"Broadcast_RING_SIMPLE", 128, 1, 0, 12, 12, 0.011},
          {"AllReduce_TREE_LL_Max_u32", 4, 1, 0, 11, 11, 0.0004},
          {"mean_of_LLM", 64, 1, 0, 9, 9, 0}};
}

}  // namespace

class RanksTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void theFindingIsTheHeadline();
  void tablesHaveTheNumbersOfTheReport();
  void aSortedTableKeepsItsSum();
  void onlyLatenessAboveTheClockErrorIsColoured();
  void hoverNamesRankStepAndLateness();
  void oneLateCellOfAThousandRanksIsSeen();
  void aLargeMapIsDrawnInAFrame();
  void bandwidthIsThereIfItIsKnown();
  void namesOfKernelsAreShort();
  void theCaptionNamesTheMeasureOfTheBars();
  void aRankWithoutAFileIsNamed();
  void picturesAndTablesAreWritten();
  void theReportHasASection();
  void thePageIsThereForRanksOnly();
  void aClickMovesTheTimeline();
  void ranksAreLanesThatOpen();
  void aCollectiveShowsWhatItWaits();
  void pagesShareTheReportOfARun();
  void fewRanksFillThePage();
  void nothingIsCutOff();
};

void RanksTest::theFindingIsTheHeadline() {
  prof::RankReport report = test::made_report();
  ShownRanks shown(report);
  QCOMPARE(shown.panel.headline().toLower().toStdString(),
           QString::fromStdString(straggler_text(report)).toLower().toStdString());
  QVERIFY(shown.panel.headline().startsWith("Rank 5 "));
  report.straggler = {};
  shown.panel.showReport(report);
  QVERIFY(shown.panel.headline().startsWith("A rank waits 0.30 ms of a mean step"));
  report.wait_us = 0;
  shown.panel.showReport(report);
  QCOMPARE(shown.panel.headline(),
           QString("No rank is late by more than the usual spread."));
  QVERIFY(!shown.panel.ranks()->isHidden() && shown.panel.ranks()->isVisibleTo(&shown.panel));
  report.steps.clear(), report.lateness.clear(), report.collectives.clear();
  shown.panel.showReport(report);
  QVERIFY2(!shown.panel.ranks()->isVisibleTo(&shown.panel), "no table of zeros");
  const auto reasons = [&] {
    QString all;
    for (const QLabel* label : shown.panel.findChildren<QLabel*>())
      if (label->isVisibleTo(&shown.panel)) all += label->text() + '\n';
    return all;
  };
  QVERIFY2(reasons().contains("No collective was found"), qPrintable(reasons()));
  report.notes = {"No collective of two ranks was recorded."};
  shown.panel.showReport(report);
  QVERIFY2(reasons().contains("Lateness is not known. No collective of two ranks was recorded."), qPrintable(reasons()));
}

// Two ranks: a bar for each step, as high as the rank is late, and the median step of each rank.
void RanksTest::fewRanksFillThePage() {
  prof::RankReport report = test::made_report(2, 20, 2);
  for (size_t s = 0; s < 20; ++s) report.lateness[s] = 0, report.lateness[20 + s] = s < 10 ? 500 : 2000;
  report.straggler = {1, 1500, 20, 1, 300, 0.12};
  report.median_step_us = 2400;
  for (prof::RankRow& row : report.ranks) row.step = 2400, row.computes = 1500, row.wait = row.rank == 0 ? 600 : 0, row.exposed = 100;
  ShownRanks shown(report, {940, 810});
  QVERIFY2(shown.panel.map()->height() > 250 && shown.panel.map()->cellOf(0, 0).height() < 30, qPrintable(QString::number(shown.panel.map()->height())));
  QCOMPARE(shown.panel.map()->cellOf(0, 0).height(), 0.0);
  const std::vector<PaintedText> words = painted_texts(*shown.panel.map());
  QVERIFY2(std::ranges::any_of(words, [](const PaintedText& one) { return one.text.endsWith("Rank 0 is never late."); }), "the caption has what the row said");
  QVERIFY(std::ranges::none_of(words, [](const PaintedText& one) { return one.text == "rank 0" || one.text == "never late"; }));
  const QImage drawn = shown.panel.map()->grab().toImage();
  const auto bar = [&](size_t step) {  // height of its colour
    const QRectF cell = shown.panel.map()->cellOf(1, step);
    int high = 0;
    for (int y = static_cast<int>(cell.top()); y < cell.bottom() - 1; ++y) high += drawn.pixelColor(static_cast<int>(cell.center().x()), y) != theme().base;
    return high;
  };
  QVERIFY2(bar(15) > 3 * bar(5) && bar(15) > shown.panel.map()->cellOf(1, 15).height() * 0.7, qPrintable(QString("%1 %2").arg(bar(5)).arg(bar(15))));
  const ChartPicture picture = shown.panel.arrivalsPicture();
  QCOMPARE(picture.name, QString("rank-steps"));
  QImage steps(600, 160, QImage::Format_RGB32);
  QPainter painter(&steps);
  picture.paint(painter, QRectF(steps.rect()));
  int computes = 0;
  for (int x = 0; x < steps.width(); ++x) computes += steps.pixelColor(x, 120) == theme().of(prof::Meaning::Matrix);
  QVERIFY2(computes > 200 && computes < 420, qPrintable(QString::number(computes)));
}

void RanksTest::tablesHaveTheNumbersOfTheReport() {
  const prof::RankReport report = test::made_report();
  ShownRanks shown(report);
  const QTableView& ranks = *shown.panel.ranks();
  QCOMPARE(ranks.model()->rowCount(), 8);
  for (int r = 0; r < 8; ++r) {
    const prof::RankRow& row = report.ranks[static_cast<size_t>(r)];
    QCOMPARE(at_name(ranks, r, "rank"), QString::number(row.rank));
    QCOMPARE(at_name(ranks, r, "host"), QString::fromStdString(row.host));
    for (const auto& [name, value] : {std::pair{"waits", row.wait}, {"others wait", row.caused}})
      QCOMPARE(at_name(ranks, r, name), text(unit_of(report).text(value)));
  }
  const QTableView& calls = *shown.panel.collectives();
  QCOMPARE(calls.model()->rowCount(), 6);
  double wait = 0, transfer = 0, exposed = 0;
  for (int i = 0; i < 5; ++i) {
    const prof::CollectiveRow& row = report.collectives[static_cast<size_t>(i)];
    QCOMPARE(at_name(calls, i, "collective"), QString::fromStdString(row.name));
    QCOMPARE(at_name(calls, i, "bytes"), ws::app::bytes_text(static_cast<double>(row.bytes)));
    QCOMPARE(at_name(calls, i, "waits"), text(unit_of(report).text(row.wait)));
    wait += row.wait, transfer += row.transfer, exposed += row.exposed;
  }
  QCOMPARE(at_name(calls, 5, "collective"), QString("all"));
  QCOMPARE(at_name(calls, 5, "transfer"), text(unit_of(report).text(transfer)));
  QCOMPARE(at_name(calls, 5, "waits"), text(unit_of(report).text(wait)));
  QCOMPARE(at_name(calls, 5, "exposed"), text(unit_of(report).text(exposed)));
}

void RanksTest::aSortedTableKeepsItsSum() {
  ShownRanks shown;
  QTableView& calls = *shown.panel.collectives();
  for (const auto order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
    calls.sortByColumn(column_named(calls, "waits"), order);
    QCOMPARE(at_name(calls, 5, "collective"), QString("all"));
    QCOMPARE(at_name(calls, order == Qt::AscendingOrder ? 4 : 0, "collective"), QString("bucket 0"));
  }
  QTableView& ranks = *shown.panel.ranks();
  ranks.sortByColumn(column_named(ranks, "others wait"), Qt::DescendingOrder);
  QCOMPARE(at_name(ranks, 0, "rank"), QString("5"));
}

void RanksTest::onlyLatenessAboveTheClockErrorIsColoured() {
  prof::RankReport report = test::made_report();
  report.lateness[0] = 13.9F, report.lateness[1] = 14.1F, report.lateness[2] = 0;
  ShownRanks shown(report);
  const FigureInk ink = window_ink();
  QCOMPARE(shown.colour(0, 0), colour_of(ink.grid));
  QCOMPARE(shown.colour(0, 2), colour_of(ink.grid));
  QVERIFY(shown.colour(0, 1) != colour_of(ink.grid));
  QCOMPARE(shown.colour(5, 59), colour_of(ink.late));
}

void RanksTest::hoverNamesRankStepAndLateness() {
  prof::RankReport report = test::made_report();
  report.lateness[3] = 9;
  ShownRanks shown(report);
  const auto tip = [&](size_t rank, size_t step) {
    return shown.panel.map()->tipAt(shown.panel.map()->cellOf(rank, step).center());
  };
  const QString late = tip(5, 59), early = tip(0, 3);
  QVERIFY2(late.startsWith(QString::fromUtf8("rank 5 · node-2 · step 60\n3.00 ms after the first rank\n")),
           qPrintable(late));
  QVERIFY2(late.contains(QString::fromUtf8("clock error ± 14.0 µs\n")), qPrintable(late));
  QVERIFY2(early.contains(QString::fromUtf8("step 4\n9.0 µs after the first rank\nclock error ± 14.0 µs: not late")),
           qPrintable(early));
  QVERIFY(shown.panel.map()->tipAt({1, 1}).isEmpty());
}

void RanksTest::oneLateCellOfAThousandRanksIsSeen() {
  prof::RankReport report = test::made_report(1024, 200, 8);
  report.straggler = {};
  std::fill(report.lateness.begin(), report.lateness.end(), 1.0F);
  report.lateness[777 * 200 + 123] = 500;
  ShownRanks shown(report, {700, 600});
  QVERIFY(shown.panel.map()->height() < 1024);
  report.straggler.rank = 777;
  shown.panel.showReport(test::made_report());
  shown.panel.showReport(report);
  const QModelIndex chosen = shown.panel.ranks()->currentIndex();
  QCOMPARE(chosen.siblingAtColumn(0).data().toString(), QString("777"));
  QCOMPARE(shown.colour(777, 123), colour_of(window_ink().late));
  const QString tip = shown.panel.map()->tipAt(shown.panel.map()->cellOf(777, 123).center());
  QVERIFY2(tip.startsWith(QString::fromUtf8("rank 777 · node-98 · step 124\n500.0 µs")), qPrintable(tip));
  QVERIFY2(tip.contains("the latest of"), qPrintable(tip));
}

// New data, layout and picture of 1,024 ranks × 200 steps.
void RanksTest::aLargeMapIsDrawnInAFrame() {
  const prof::RankReport report = test::made_report(1024, 200, 8);
  LatenessView view;
  view.resize(1600, 500);
  QWidget& widget = view;
  QImage picture(view.size(), QImage::Format_RGB32);
  std::vector<double> repaint, update;
  for (int turn = 0; turn < 15; ++turn) {
    prof::RankReport next = report;
    update.push_back(processor_ms([&] {
      view.setReport(std::move(next));
      widget.render(&picture);
    }));
    repaint.push_back(processor_ms([&] { widget.render(&picture); }));
  }
  std::ranges::sort(repaint), std::ranges::sort(update);
  qInfo("median: repaint %.2f ms, with new data %.2f ms", repaint[7], update[7]);
  constexpr double kFrame = 16;
  if (ws::test::kSanitized) return;
  QVERIFY2(repaint[7] <= kFrame, qPrintable(QString::number(repaint[7])));
  QVERIFY2(update[7] <= kFrame, qPrintable(QString::number(update[7])));
}

void RanksTest::namesOfKernelsAreShort() {
  prof::RankReport report = test::made_report(2, 12, 2);
  report.collectives = kernels_of_nccl();
  using Names = std::vector<std::string>;
  QVERIFY(short_collective_names(report) == (Names{"AllReduce f32", "ReduceScatter bf16", "AllGather", "Broadcast", "AllReduce Max u32", "mean_of_LLM"}));
  QCOMPARE(std::get<std::string>(collectives_table(report, true).rows[0].cells[0].value), report.collectives[0].name);
  ShownRanks shown(report);
  QCOMPARE(at_name(*shown.panel.collectives(), 1, "collective"), QString("ReduceScatter bf16"));
  QStringList said;
  for (const PaintedText& t : painted_texts(*shown.panel.bandwidth())) said << t.text;
  QVERIFY2(said.contains("AllReduce f32: 160"), qPrintable(said.join('\n')));
  report.collectives[4] = {"AllReduce_Sum_f32_TREE_LL", report.collectives[0].bytes, 1, 0, 20, 20, 100};
  QVERIFY2(short_collective_names(report)[0] == report.collectives[0].name, "another one would have the same name");
}

void RanksTest::bandwidthIsThereIfItIsKnown() {
  prof::RankReport report = test::made_report();
  ShownRanks shown(report);
  QVERIFY(shown.panel.bandwidthPane()->isVisible());
  const auto said = [&] {
    QStringList all;
    for (const PaintedText& t : painted_texts(*shown.panel.bandwidth())) all << t.text;
    return all.join('\n');
  };
  QVERIFY(!said().contains("peak"));
  std::vector<BusRate> measured;
  for (double bytes = 4096; bytes < 1e9; bytes *= 4) measured.push_back({8, bytes, 300 * bytes / (bytes + 2e6)});
  add_peak(report, measured);
  QVERIFY2(report.peak.empty(), "other links connect hosts");
  for (prof::RankRow& row : report.ranks) row.host.clear();
  add_peak(report, measured);
  shown.panel.showReport(report);
  QVERIFY2(said().contains("peak when nothing else runs"), qPrintable(said()));
  const prof::CollectiveRow& first = report.collectives[0];
  QVERIFY2(said().contains(QString(": %1 of %2").arg(text(significant(first.bus_gb_s)), text(significant(first.peak_gb_s)))), qPrintable(said()));
  QCOMPARE(collectives_table(report, true).columns.back().name, std::string("% of peak"));
  if (const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES"); !folder.isEmpty()) {
    shown.panel.resize(1366, 700);
    shown.panel.grab().save(folder + "/ranks-peak.png");
  }
  for (prof::CollectiveRow& row : report.collectives) row.bus_gb_s = 0;
  shown.panel.showReport(report);
  QVERIFY(!shown.panel.bandwidthPane()->isVisible());
}

void RanksTest::theCaptionNamesTheMeasureOfTheBars() {
  prof::RankReport report = test::made_report();
  const auto caption = [](const ShownRanks& shown) {
    for (const PaintedText& one : painted_texts(*shown.panel.map()))
      if (one.text.startsWith("How late each rank comes to its latest collective")) return one.text;
    return QString();
  };
  QVERIFY(caption(ShownRanks(report)).endsWith(", by step"));
  report.straggler.of_median = true, report.straggler.cost_us = 3560;  // the headline has the wait at all collectives
  std::ranges::find(report.ranks, report.straggler.rank, &prof::RankRow::rank)->late = 2790;  // and the table how late it comes to one
  QVERIFY2(caption(ShownRanks(report)).contains(": 2.79 ms in the median step. The waits at its ") && caption(ShownRanks(report)).endsWith(" collectives add up to 3.56 ms."), qPrintable(caption(ShownRanks(report))));
}

void RanksTest::aRankWithoutAFileIsNamed() {
  prof::RankReport report = test::made_report();
  report.ranks[2].recorded = false;
  for (size_t s = 0; s < report.steps.size(); ++s)
    report.lateness[2 * report.steps.size() + s] = std::numeric_limits<float>::quiet_NaN();
  ShownRanks shown(report);
  QCOMPARE(at_name(*shown.panel.ranks(), 2, "waits"), QString::fromUtf8("—"));
  QVERIFY(shown.panel.map()->tipAt(shown.panel.map()->cellOf(2, 7).center()).contains("not recorded"));
  const auto texts = painted_texts(*shown.panel.map());
  QVERIFY(std::ranges::any_of(texts, [](const PaintedText& t) { return t.text == "not recorded"; }));
}

void RanksTest::picturesAndTablesAreWritten() {
  const prof::RankReport report = test::made_report();
  ShownRanks shown(report);
  QTemporaryDir folder;
  write_chart(shown.panel.mapPicture(), folder.filePath("map.svg"));
  QVERIFY(QSvgRenderer(folder.filePath("map.svg")).isValid());
  QVERIFY(file_text(folder.filePath("map.svg")).contains("rank 5"));
  for (const ChartPicture& picture : {shown.panel.arrivalsPicture(), shown.panel.bandwidthPicture()}) {
    write_chart(picture, folder.filePath(picture.name + ".png"));
    QVERIFY(!QImage(folder.filePath(picture.name + ".png")).isNull());
  }
  write_chart(shown.panel.mapPicture(), folder.filePath("map.csv"));
  const QList<QByteArray> lines = file_text(folder.filePath("map.csv")).trimmed().split('\n');
  QCOMPARE(lines.size(), 101);
  QCOMPARE(lines[60].split(',').value(6), QByteArray("3000"));
  const std::string csv = to_csv(ranks_table(report, true));
  QVERIFY(csv.starts_with(
      "rank,host,late_us,step_us,wait_us,transfer_us,exposed_us,caused_us\n0,node-1,10,2430,301.5,"));
}

void RanksTest::theReportHasASection() {
  std::vector<ReportRun> runs(2);
  QVERIFY(ranks_html(runs).empty());
  QVERIFY(report_html(runs).find("Ranks of") == std::string::npos);
  runs[1].ranks = test::made_report();
  const std::string html = report_html(runs);
  for (const char* words : {"Ranks of B", "B: Rank 5 ", "not recorded", "bucket 1", "exposed", "node-2"})
    QCOMPARE(html.find(words) != html.npos, words != std::string("not recorded"));
  QCOMPARE(rank_figures(runs).size(), size_t{3});
}

void RanksTest::thePageIsThereForRanksOnly() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  QVERIFY(!offers_tab(*window, "Ranks"));
  takeIn(*window);
  QVERIFY(!offers_tab(*window, "Ranks"));
  Run* run = showOnly(*window, test::made_rank_run());
  QTRY_VERIFY(offers_tab(*window, "Ranks"));
  QVERIFY(show_tab(*window, "Ranks"));
  auto* panel = window->findChild<RanksPanel*>();
  QTRY_VERIFY(panel->report().any());
  const prof::RankReport expected = prof::rank_report(run->trace);
  QCOMPARE(panel->report().ranks.size(), size_t{4});
  QCOMPARE(panel->report().steps, expected.steps);
  QCOMPARE(panel->report().straggler.rank, 1);
  QVERIFY(std::abs(panel->report().straggler.late_us - expected.straggler.late_us) < 1e-9);
  QVERIFY2(panel->headline().startsWith("Rank 1 "), qPrintable(panel->headline()));
  window->workspace()->library()->tickOnly({});
  QTRY_VERIFY(!offers_tab(*window, "Ranks"));
}

void RanksTest::aClickMovesTheTimeline() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run* run = showOnly(*window, test::made_rank_run());
  QVERIFY(show_tab(*window, "Ranks"));
  auto* panel = window->findChild<RanksPanel*>();
  QTRY_VERIFY(panel->report().any());
  settle();
  constexpr size_t kColumn = 24;
  QTest::mouseClick(panel->map(), Qt::LeftButton, {}, panel->map()->cellOf(2, kColumn).center().toPoint());
  QCOMPARE(panel->map()->chosenStep(), static_cast<int>(kColumn));
  const auto shows = [panel](const QString& words) {
    const auto labels = panel->findChildren<QLabel*>();
    return std::ranges::any_of(labels, [&](const QLabel* label) { return label->text().contains(words); });
  };
  QVERIFY2(shows("Step 24: rank 1 comes last, 201.0 µs after rank 0."), "rank 1 is late in each fifth step");
  const prof::TimeNs begin = panel->report().step_begins[kColumn], end = begin + 1'000'000;
  const TimeCursor& cursor = *window->workspace()->cursor();
  QVERIFY(!cursor.follow());
  QTRY_VERIFY(cursor.begin() <= begin && cursor.end() >= end - 10'000);
  QVERIFY2(cursor.end() - cursor.begin() < 3'000'000, "not much more than the step");
  const auto* chosen = window->workspace()->focus()->get<SpanChoice>();
  QVERIFY(chosen && chosen->run == run);
  QCOMPARE(int64_t{chosen->span.step} - 1, panel->report().steps[kColumn]);
  QTest::keyClick(panel->map(), Qt::Key_Right);
  QCOMPARE(panel->map()->chosenStep(), static_cast<int>(kColumn) + 1);
  QVERIFY(panel->isVisible());
  QTest::keyClick(panel->map(), Qt::Key_Return);
  QTRY_VERIFY(!panel->isVisible());
  QCOMPARE(window->tabs()->currentIndex(), 0);
  window->resize(1600, 1000);
  settle();
  const prof::TimeNs next = panel->report().step_begins[kColumn + 1];
  QVERIFY2(cursor.begin() <= next && cursor.end() > next && cursor.end() - cursor.begin() < 3'000'000,
           "the timeline still shows the chosen step");
  QStringList wrong;
  check(*window, "ranks timeline", wrong);
  QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
}

// One lane a rank that opens; with two ranks both are open.
void RanksTest::ranksAreLanesThatOpen() {
  const auto run = test::made_rank_run(4, 10);
  const auto titles = [](const std::vector<Lane>& lanes) {
    QStringList all;
    for (const Lane& lane : lanes) all << lane.title;
    return all;
  };
  const std::vector<LaneSource> sources{{&run->trace, "run/x", "x", 0}};
  LaneSettings settings;
  const std::vector<Lane> folded = build_lanes(sources, settings);
  QCOMPARE(titles(folded), QStringList({"x", "step", "rank 0", "rank 1", "rank 2", "rank 3"}));
  for (size_t i = 2; i < 6; ++i) {
    QVERIFY(folded[i].kind == LaneKind::Spans && folded[i].folded && folded[i].upper > 0);
    QCOMPARE(folded[i].tracks.size(), size_t{2});
    for (const size_t track : folded[i].tracks) QCOMPARE(run->trace.tracks()[track].rank, static_cast<int>(i) - 2);
    QCOMPARE(run->trace.tracks()[folded[i].tracks[0]].name, std::string("stream 7"));  // computation is above
  }
  settings.folded.insert(folded[3].key);
  QCOMPARE(titles(build_lanes(sources, settings)),
           QStringList({"x", "step", "rank 0", "rank 1", "step", "stream 7", "stream 13", "rank 2", "rank 3"}));
  settings.folded.insert("run/x");
  QCOMPARE(titles(build_lanes(sources, settings)), QStringList({"x"}));
  const auto two = test::made_rank_run(2, 10);
  QCOMPARE(titles(build_lanes({{&two->trace, "run/y", "y", 0}}, {})),
           QStringList({"y", "step", "rank 0", "stream 7", "stream 13", "rank 1", "step", "stream 7", "stream 13"}));
}

void RanksTest::aCollectiveShowsWhatItWaits() {
  const auto run = test::made_rank_run(2, 10, 300);
  TimeCursor cursor;
  TimelineModel model(&cursor);
  model.setRuns({run.get()});
  model.setViewport(600, false);
  TimelinePainter painter(model);
  TimelineGeometry geometry;
  geometry.size = {1200, 600}, geometry.range = {4'000'000, 5'000'000};
  QImage image(geometry.size, QImage::Format_ARGB32);
  {
    QPainter on(&image);
    painter.paint(on, geometry);
  }
  for (size_t track = 0; track < run->trace.tracks().size(); ++track) {
    const prof::Track& stream = run->trace.tracks()[track];
    if (stream.name != "stream 13") continue;
    const prof::Span& span = stream.blocks.front().spans[4];  // rank 1 comes late
    const auto parts = prof::parts_of_collective(run->trace, stream, span, 0);
    QVERIFY(parts);
    QCOMPARE(parts->wait, stream.rank == 0 ? prof::TimeNs{301'000} : prof::TimeNs{0});
    const QRectF box = painter.spanBox(0, track, span, geometry);
    const double share = static_cast<double>(parts->wait) / static_cast<double>(span.duration);
    const auto colour = [&](double at) { return image.pixel(static_cast<int>(box.left() + at * box.width()), static_cast<int>(box.bottom()) - 3); };
    const QRgb transfer = theme().of(prof::Meaning::Communication).rgb();
    QCOMPARE(colour(1 - (1 - share) / 2), transfer);
    if (stream.rank == 0) QVERIFY(colour(share / 2) != transfer);
    if (stream.rank == 1) QCOMPARE(colour(0.1), transfer);
    const HoverCard card = span_card(run->trace, track, span);
    const auto row = std::ranges::find(card.rows, QString("ranks"), [](const auto& each) { return each.first; });
    QVERIFY(row != card.rows.end());
    if (stream.rank == 0) QVERIFY2(row->second.startsWith("waits 301.0 µs, transfers "), qPrintable(row->second));
    QVERIFY(span_details(*run, track, span).contains("waits "));
  }
}

void RanksTest::pagesShareTheReportOfARun() {
  const auto run = test::made_rank_run(2, 10), other = test::made_rank_run(2, 20);
  RankReader ranks, insights;
  ranks.setRun(run.get()), insights.setRun(run.get());
  ranks.refresh();
  QVERIFY2(insights.reading(), "the run is read once for both");
  QTRY_VERIFY(insights.report()->any());
  QCOMPARE(insights.report(), ranks.report());
  RankReader late;
  late.setRun(run.get());
  QCOMPARE(late.report(), ranks.report());
  late.setRun(other.get());
  QVERIFY(!late.report()->any());
  late.refresh();
  QTRY_COMPARE(late.report()->steps.size(), size_t{20});
  QCOMPARE(ranks.report()->steps.size(), size_t{10});
}

void RanksTest::nothingIsCutOff() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  showOnly(*window, test::made_rank_run());
  QVERIFY(show_tab(*window, "Ranks"));
  auto* panel = window->findChild<RanksPanel*>();
  QTRY_VERIFY(panel->report().any());
  QStringList wrong;
  prof::RankReport two = test::made_report(2, 12, 2);
  two.straggler = {}, two.collectives = kernels_of_nccl(), two.clock_error_us = 0.8;
  two.notes = {"Rank 1 stopped before rank 0, so the last steps of rank 0 are left out."};
  for (prof::RankRow& row : two.ranks) row.host.clear();
  const std::pair<const char*, prof::RankReport> states[] = {
      {"ranks", test::made_report()}, {"two ranks", two}, {"many ranks", test::made_report(1024, 200, 8)}};
  for (const QSize size : {QSize(1366, 768), QSize(1600, 1000), QSize(1920, 1080)}) {
    window->resize(size);
    settle();
    for (int turn = 0; turn < 2; ++turn, window->toggleTheme())
      for (const auto& [name, report] : states) {
        panel->showReport(report);
        settle(40);
        check(*window, QString("%1 %2 %3").arg(name).arg(size.width()).arg(theme().dark() ? "dark" : "light"), wrong);
      }
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

WARPSIGHT_QTEST(RanksTest)
#include "ranks_test.moc"
