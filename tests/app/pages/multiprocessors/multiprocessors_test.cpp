// The page about the inside of kernels: it is there only for runs that show it, says what the report says, live and from
// a file, and moves the timeline. With WARPSIGHT_PICTURES=folder each state that is looked at leaves a picture there.
#include <QLabel>
#include <QPushButton>
#include <QSvgRenderer>
#include <QTableView>
#include <QTest>
#include <ctime>
#include <optional>

#include "app/core/report/multiprocessor_figure.h"
#include "app/core/report/report_sections.h"
#include "app/pages/details/range_details.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/multiprocessors/multiprocessor_view.h"
#include "app/pages/multiprocessors/multiprocessors_panel.h"
#include "app/report/drawing_painter.h"
#include "app/report/report_pages.h"
#include "app/text/units.h"
#include "app/widgets/pane.h"
#include "profiling/run_file/run_file.h"
#include "profiling/run_file/stored_spans.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_inside_run.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/sanitizers.h"

using namespace ws;
using namespace ws::app;

namespace {

struct ShownMultiprocessors {
  explicit ShownMultiprocessors(const test::MadeKernel& kernel = {}, QSize size = {1200, 760}, bool live = false)
      : run(test::made_inside_run(kernel, live)) {
    panel.resize(size);
    panel.show();
    panel.setRun(run.get());
    if (!QTest::qWaitFor([this] { return report().any(); }, 60'000)) qFatal("no report");
    QCoreApplication::processEvents();
  }
  ~ShownMultiprocessors() { panel.setRun(nullptr); }
  const prof::MultiprocessorReport& report() { return *panel.reader()->report(); }
  // The bar of this part in the chosen step.
  prof::InnerBar bar(size_t row, const std::string& part) {
    for (const prof::InnerBar& one : report().bars_of(panel.view()->step()))
      if (one.row == row && report().phases[one.part].name == part) return one;
    return {};
  }
  QColor colour(QPointF at) {
    return panel.view()->grab().toImage().pixelColor(static_cast<int>(at.x()), static_cast<int>(at.y()));
  }
  std::unique_ptr<Run> run;
  MultiprocessorsPanel panel;
};

QStringList words_of(QWidget& widget) {
  QStringList words;
  for (const PaintedText& text : painted_texts(widget)) words << text.text;
  return words;
}

}  // namespace

class MultiprocessorsTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void theFindingIsTheHeadline();
  void theTableHasTheNumbersOfTheReport();
  void aBarLiesWhereItsTimeIs();
  void theLateEndIsColoured();
  void hoverNamesPartAndTime();
  void stepsAreChosen();
  void aLiveRunGrows();
  void aFileReportsTheSame();
  void thePageIsThereForKernelsWithLanesOnly();
  void eachTimeReportsWhatItCounts();
  void aBusyGpuMayWait();
  void aClickMovesTheTimeline();
  void aSpanOfTheTimelineIsShown();
  void aCardNamesTheLateOneAndJumpsThere();
  void neighboursAreDistinct();
  void theReportHasASection();
  void aPictureIsDrawnInAFrame();
  void nothingIsCutOff();
};

void MultiprocessorsTest::theFindingIsTheHeadline() {
  ShownMultiprocessors shown;
  const QString said = shown.panel.headline();
  QCOMPARE(said.mid(1), QString::fromStdString(late_text(shown.report().late[0])).mid(1) + ".");
  QVERIFY2(said.startsWith(QString::fromUtf8("Multiprocessor 17 ends fc1 forward 0.40 µs later than the median in 90 %")),
           qPrintable(said));
  ShownMultiprocessors even(test::MadeKernel{.late = -1});
  const QString none = even.panel.headline();
  QVERIFY2(none == "A multiprocessor waits 10 % of a step for others. None is regularly late.", qPrintable(none));
  prof::MultiprocessorReport waits;
  QCOMPARE(QString::fromStdString(late_headline(waits)), QString("No multiprocessor is regularly late"));
  waits.step_us = 40;
  waits.phases = {{"wait for hidden units", prof::Meaning::Sync, 1, 13, 14, 15, ""}, {"fc1 forward", prof::Meaning::Matrix, 1, 19, 20, 21, ""}};
  QCOMPARE(QString::fromStdString(late_headline(waits)), QString::fromUtf8("A multiprocessor waits 35 % of a step for others. None is regularly late"));
}

void MultiprocessorsTest::theTableHasTheNumbersOfTheReport() {
  ShownMultiprocessors shown;
  const QAbstractItemModel& table = *shown.panel.parts()->model();
  QCOMPARE(table.rowCount(), static_cast<int>(shown.report().phases.size()));
  QCOMPARE(table.rowCount(), 10);
  QCOMPARE(table.columnCount(), 5);  // every part is on all multiprocessors, which its heading says once
  for (int row = 0; row < table.rowCount(); ++row) {
    const prof::InnerPhase& phase = shown.report().phases[static_cast<size_t>(row)];
    const auto cell = [&](int column) { return table.index(row, column).data().toString(); };
    QCOMPARE(cell(0), QString::fromStdString(phase.name));
    QCOMPARE(cell(2), fixed_text(phase.median, 2));
    QCOMPARE(cell(3), fixed_text(phase.most, 2));
    QCOMPARE("multiprocessor " + cell(4), QString::fromStdString(phase.slowest));
  }
}

void MultiprocessorsTest::aBarLiesWhereItsTimeIs() {
  ShownMultiprocessors shown;
  MultiprocessorView& view = *shown.panel.view();
  const auto& step = shown.report().steps[view.step()];
  const QRectF first = view.boxOf(shown.bar(0, "rows of the next step")), last = view.boxOf(shown.bar(131, "wait for gradient sums"));
  const double wide = last.right() - first.left();
  for (const prof::InnerBar& bar : shown.report().bars_of(view.step())) {
    const QRectF box = view.boxOf(bar);
    const double at = static_cast<double>(bar.begin - step.begin) / static_cast<double>(step.end - step.begin);
    QVERIFY(std::abs((box.left() - first.left()) / wide - at) < 0.01);
    QVERIFY(box.bottom() < view.height() && box.height() >= 2);
    QCOMPARE(view.barAt(box.center())->begin, bar.begin);
    QCOMPARE(view.barAt(box.center())->row, bar.row);
  }
  const FigureInk ink = window_ink();
  QCOMPARE(shown.colour(view.boxOf(shown.bar(40, "fc1 forward")).center()), QColor::fromRgb(ink.meaning[0]));
  QCOMPARE(shown.colour(view.boxOf(shown.bar(40, "fc1 update")).center()),
           QColor::fromRgb(ink.meaning[static_cast<size_t>(prof::Meaning::Optimizer)]));
  QVERIFY(shown.colour(view.boxOf(shown.bar(40, "fc2 forward")).center()) != QColor::fromRgb(ink.meaning[0]));
}

void MultiprocessorsTest::theLateEndIsColoured() {
  ShownMultiprocessors shown;
  MultiprocessorView& view = *shown.panel.view();
  const QRectF late = view.boxOf(shown.bar(17, "fc1 forward"));
  QCOMPARE(shown.colour({late.right() - 4, late.center().y()}), theme().late);
  const QRectF other = view.boxOf(shown.bar(60, "fc1 forward"));
  QVERIFY(shown.colour({other.right() - 4, other.center().y()}) != theme().worse);
  QVERIFY(words_of(view).filter(QRegularExpression(QString::fromUtf8("^0\\.(39|40|41|42) µs late$"))).size() == 1);
  QVERIFY(words_of(view).contains("17"));
  view.chooseStep(20);  // one in ten is in time
  QVERIFY(words_of(view).filter(QString::fromUtf8(" µs late")).isEmpty());
}

void MultiprocessorsTest::hoverNamesPartAndTime() {
  ShownMultiprocessors shown;
  MultiprocessorView& view = *shown.panel.view();
  const prof::InnerBar late = shown.bar(17, "fc1 forward"), wait = shown.bar(3, "wait for partial sums");
  const QString tip = view.tipAt(view.boxOf(late).center());
  QVERIFY2(tip.startsWith("multiprocessor 17: fc1 forward takes 1.3"), qPrintable(tip));
  QVERIFY2(tip.contains(QString::fromStdString(
               late_text(shown.report(), shown.report().steps[view.step()].late[0]))), qPrintable(tip));
  QVERIFY2(view.tipAt(view.boxOf(wait).center()).startsWith("multiprocessor 3: wait for partial sums"),
           "a wait says for what");
  const QString step = view.tipAt(view.stepBox(31).center());
  QVERIFY2(step.startsWith(QString::fromUtf8("step 31 of warpsight_persistent · ")), qPrintable(step));
  QVERIFY(view.tipAt({1, 1}).isEmpty());
}

void MultiprocessorsTest::stepsAreChosen() {
  ShownMultiprocessors shown;
  MultiprocessorView& view = *shown.panel.view();
  QCOMPARE(view.step(), shown.report().typical);
  QTest::mouseClick(&view, Qt::LeftButton, {}, view.stepBox(44).center().toPoint());
  QCOMPARE(view.step(), size_t{44});
  QTest::keyClick(&view, Qt::Key_Right);
  QCOMPARE(view.step(), size_t{45});
  QTest::keyClick(&view, Qt::Key_Home);
  QTest::keyClick(&view, Qt::Key_Left);
  QCOMPARE(view.step(), size_t{0});
  QTest::keyClick(&view, Qt::Key_End);
  QCOMPARE(view.step(), size_t{59});
}

// The chosen step stays while others come.
void MultiprocessorsTest::aLiveRunGrows() {
  ShownMultiprocessors shown({.steps = 20}, {1200, 760}, true);
  QCOMPARE(shown.report().steps.size(), size_t{20});
  shown.panel.view()->chooseStep(7);
  const prof::TimeNs begin = shown.report().steps[7].begin;
  test::MadeKernel{.steps = 20}.add_to(shown.run->trace, 20, shown.run->trace.last_time() + 5000);
  shown.run->announce();
  QTRY_COMPARE(shown.report().steps.size(), size_t{40});
  QCOMPARE(shown.report().steps[shown.panel.view()->step()].begin, begin);
  QVERIFY2(shown.panel.headline().startsWith("Multiprocessor 17 "), qPrintable(shown.panel.headline()));
}

void MultiprocessorsTest::aFileReportsTheSame() {
  QTemporaryDir folder;
  const QString path = folder.filePath("a.wsrun");
  ShownMultiprocessors live;
  {
    prof::RunFileWriter writer(path.toStdString(), {});
    writer.add(live.run->trace);
    writer.finish();
  }
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  window->openFile(path);
  QTRY_VERIFY(offers_tab(*window, "Multiprocessors"));
  QVERIFY(show_tab(*window, "Multiprocessors"));
  auto* panel = window->findChild<MultiprocessorsPanel*>();
  QTRY_VERIFY(panel->reader()->report()->any());
  QCOMPARE(panel->headline(), live.panel.headline());
  QCOMPARE(to_json(*panel->reader()->report()), to_json(live.report()));
  QCOMPARE(to_json(prof::StoredSpans(path.toStdString()).multiprocessors()), to_json(live.report()));
}

void MultiprocessorsTest::thePageIsThereForKernelsWithLanesOnly() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  takeIn(*window);
  QVERIFY(!offers_tab(*window, "Multiprocessors"));
  showOnly(*window, test::made_inside_run());
  QTRY_VERIFY(offers_tab(*window, "Multiprocessors"));
  window->workspace()->library()->tickOnly({});
  QTRY_VERIFY(!offers_tab(*window, "Multiprocessors"));
}

// A short run waits for its launches, so its step time is much longer than per step inside the kernel.
void MultiprocessorsTest::eachTimeReportsWhatItCounts() {
  auto run = test::made_inside_run();
  for (StepPoint& p : run->steps) p.wall_s = p.step * 24.7e-6;
  run->summary->us_per_step = 24.7;
  test::measure_steps(*run);
  MultiprocessorsPanel panel;
  panel.setRun(run.get());
  panel.show();
  QTRY_VERIFY(panel.reader()->report()->any());
  const QString inside = step_time_text(panel.reader()->report()->step_us), caption = panel.picture().caption;
  QVERIFY2(caption.contains(inside + " per step inside the kernel, without launches"), qPrintable(caption));
  QVERIFY2(caption.contains("With launches, the median of all ") && caption.contains(QString("steps of the run is %1.").arg(step_time_text(run->stepUs()))), qPrintable(caption));
  QVERIFY(run->stepUs() > 1.5 * panel.reader()->report()->step_us);
}

// The run has 938 steps. A part of them ran in short launches with time stamps inside: only of these it is known who waits.
void MultiprocessorsTest::aBusyGpuMayWait() {
  auto window = open();
  window->openFile(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-persistent.wsrun");
  Workspace& workspace = *window->workspace();
  QTRY_VERIFY(workspace.shownRun() && workspace.shownRun()->loaded);
  const Run& run = *workspace.shownRun();
  const QString details = step_details(run);
  for (const char* said : {"median of 160 of 938 steps", "744 in longer launches (no time stamps inside)", "GPU busy", "waits for other multiprocessors", " % of it"})
    QVERIFY2(details.contains(said), qPrintable(said + QString(": ") + details));
  QVERIFY(run.split.inner_wait_us() > 0.3 * run.split.wall_us && run.split.busy > 0.95);
  MultiprocessorsPanel panel;
  panel.resize(1200, 760);
  panel.show();
  panel.setRun(workspace.shownRun());
  QTRY_VERIFY(panel.reader()->report()->any());
  const QString caption = panel.picture().caption, share = fixed_text(100 * prof::waits_us(*panel.reader()->report()) / panel.reader()->report()->step_us, 0);
  QCOMPARE(share, fixed_text(100 * run.split.inner_wait_us() / (run.split.busy * run.split.wall_us), 0));  // Details says the same
  QVERIFY2(panel.headline().contains(share) && caption.contains("Time stamps inside make these steps longer: the median of all 938 steps of the run is " + step_time_text(run.stepUs())), qPrintable(caption));
  const QList<QLabel*> labels = panel.findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels, [](const QLabel* label) { return label->isVisible() && label->text().contains("The GPU counts as busy meanwhile"); }));
  panel.setRun(nullptr);
}

void MultiprocessorsTest::aClickMovesTheTimeline() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run* run = showOnly(*window, test::made_inside_run());
  QVERIFY(show_tab(*window, "Multiprocessors"));
  auto* panel = window->findChild<MultiprocessorsPanel*>();
  QTRY_VERIFY(panel->reader()->report()->any());
  settle();
  MultiprocessorView& view = *panel->view();
  view.chooseStep(33);
  const auto bars = panel->reader()->report()->bars_of(33);
  const prof::InnerBar bar = bars[20 * 10 + 1];
  QTest::mouseClick(&view, Qt::LeftButton, {}, view.boxOf(bar).center().toPoint());
  const auto* chosen = window->workspace()->focus()->get<SpanChoice>();
  QVERIFY(chosen && chosen->run == run);
  QCOMPARE(run->trace.tracks()[chosen->track].name, std::string("SM 020"));
  QCOMPARE(prof::TimeNs{chosen->span.start}, bar.begin);
  QCOMPARE(int64_t{chosen->span.step} - 1, int64_t{33});
  const TimeCursor& cursor = *window->workspace()->cursor();
  QVERIFY(!cursor.follow());
  QTRY_VERIFY(cursor.begin() <= bar.begin && cursor.end() >= bar.end && cursor.end() - cursor.begin() < 20'000);
  QVERIFY(panel->isVisible());
  QTest::keyClick(&view, Qt::Key_Return);
  QTRY_VERIFY(!panel->isVisible());
  QCOMPARE(window->tabs()->currentIndex(), 0);
}

void MultiprocessorsTest::aSpanOfTheTimelineIsShown() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run* run = showOnly(*window, test::made_inside_run());
  QVERIFY(show_tab(*window, "Multiprocessors"));
  auto* panel = window->findChild<MultiprocessorsPanel*>();
  QTRY_VERIFY(panel->reader()->report()->any());
  const prof::Track& lane = run->trace.tracks()[5];
  const prof::Span& span = lane.blocks[0].spans[12 * 10 + 3];
  window->workspace()->focus()->choose(SpanChoice{run, 5, span});
  QCOMPARE(panel->view()->step(), size_t{12});
  QVERIFY(panel->view()->chosenBar());
  QCOMPARE(panel->view()->chosenBar()->begin, prof::TimeNs{span.start});
  QCOMPARE(row_name(*panel->reader()->report(), panel->view()->chosenBar()->row), "multiprocessor 5");
}

void MultiprocessorsTest::aCardNamesTheLateOneAndJumpsThere() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Run* run = showOnly(*window, test::made_inside_run());
  window->resize(1600, 972);
  QVERIFY(show_tab(*window, "Suggestions") || show_tab(*window, "Suggestions  1"));
  auto* tab = window->findChild<InsightsTab*>();
  const auto card = [&]() -> InsightCard* {
    for (InsightCard* one : tab->cards())
      if (one->insight().rule == "late multiprocessor") return one;
    return nullptr;
  };
  QTRY_VERIFY(card());
  QVERIFY2(card()->insight().more.ends_with(late_text(prof::multiprocessor_report(run->trace).late[0]).substr(1) + "."), card()->insight().more.c_str());
  QVERIFY(card()->showButton()->isEnabled());
  settle();
  QStringList wrong;
  check(*window, "late card", wrong);
  QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  card()->showButton()->click();
  const auto* chosen = window->workspace()->focus()->get<SpanChoice>();
  QVERIFY(chosen && chosen->run == run);
  QCOMPARE(run->trace.tracks()[chosen->track].name, std::string("SM 017"));
  QCOMPARE(run->trace.name(chosen->span.name), std::string("fc1 forward"));
  QCOMPARE(window->tabs()->currentIndex(), 0);
}

// Parts of one meaning have one colour in the legend; their names above the picture and their shades tell them apart.
void MultiprocessorsTest::neighboursAreDistinct() {
  ShownMultiprocessors shown;
  const prof::MultiprocessorReport& report = shown.report();
  const QStringList words = words_of(*shown.panel.view());
  QCOMPARE(words.count("matrix product (neighbours in two shades)"), 1);
  QVERIFY2(words.contains("forward") && words.contains("fc1") && words.contains("fc2"), qPrintable(words.join(" | ")));
  const auto apart = [](uint32_t a, uint32_t b) {
    int most = 0;
    for (const int shift : {0, 8, 16})
      most = std::max(most, std::abs(static_cast<int>(a >> shift & 0xFF) - static_cast<int>(b >> shift & 0xFF)));
    return most;
  };
  for (const ThemeName name : {ThemeName::Dark, ThemeName::Light}) {
    set_theme(*qApp, name);
    std::optional<size_t> before;
    for (size_t part = 0; part < report.phases.size(); ++part) {
      if (report.phases[part].meaning != prof::Meaning::Matrix) continue;
      if (before)
        QVERIFY(apart(part_colour(report, *before, window_ink()), part_colour(report, part, window_ink())) > 50);
      before = part;
    }
    QVERIFY(before);
  }
  set_theme(*qApp, ThemeName::Dark);
}

void MultiprocessorsTest::theReportHasASection() {
  const auto run = test::made_inside_run();
  const ReportRun of_run = report_run(*run);
  const prof::MultiprocessorReport expected = prof::multiprocessor_report(run->trace);
  const std::string html = report_html({of_run});
  for (const std::string& words :
       {std::string("Inside the kernel"), late_text(expected.late[0]), step_caption(expected, expected.typical),
        std::string("fc1 backward"), std::string("wait for gradient sums"), caption(expected)})
    QVERIFY2(html.find(words) != html.npos, words.c_str());
  const std::vector<ReportFigure> figures = multiprocessor_figures({of_run});
  QCOMPARE(figures.size(), size_t{1});
  QSvgRenderer svg(QByteArray::fromStdString(to_svg(figures[0].drawing)));
  QVERIFY(svg.isValid());
  QImage picture(svg.defaultSize() * 2, QImage::Format_RGB32);
  picture.fill(Qt::white);
  QPainter painter(&picture);
  svg.render(&painter);
  painter.end();
  if (const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES"); !folder.isEmpty())
    picture.save(folder + "/report.png");
  const auto without = test::made("arena", test::StepStyle::GraphArena, 0);
  QVERIFY(report_html({report_run(*without)}).find("Inside the kernel") == std::string::npos);
}

void MultiprocessorsTest::aPictureIsDrawnInAFrame() {
  ShownMultiprocessors shown;
  QWidget& view = *shown.panel.view();
  QImage picture(view.size(), QImage::Format_RGB32);
  std::vector<double> ms;
  for (int turn = 0; turn < 15; ++turn) {
    shown.panel.view()->chooseStep(static_cast<size_t>(turn));
    const std::clock_t before = std::clock();
    view.render(&picture);
    ms.push_back(static_cast<double>(std::clock() - before) * 1000 / CLOCKS_PER_SEC);
  }
  std::ranges::sort(ms);
  qInfo("median repaint of a new step: %.2f ms", ms[7]);
  if (!ws::test::kSanitized) QVERIFY2(ms[7] <= 16, qPrintable(QString::number(ms[7])));
}

void MultiprocessorsTest::nothingIsCutOff() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  QStringList wrong;
  const std::pair<const char*, test::MadeKernel> states[] = {{"grid", {}}, {"cluster", {.multiprocessors = 16}},
                                                             {"even", {.multiprocessors = 3, .late = -1}}};
  for (const auto& [name, kernel] : states) {
    showOnly(*window, test::made_inside_run(kernel));
    QVERIFY(show_tab(*window, "Multiprocessors"));
    auto* panel = window->findChild<MultiprocessorsPanel*>();
    QTRY_COMPARE(panel->reader()->report()->rows.size(), static_cast<size_t>(kernel.multiprocessors));
    for (const QSize size : {QSize(1366, 768), QSize(1600, 972), QSize(1920, 1080)}) {
      window->resize(size);
      for (int turn = 0; turn < 2; ++turn, window->toggleTheme()) {
        settle(40);
        check(*window, QString("%1 %2 %3").arg(name).arg(size.width()).arg(theme().dark() ? "dark" : "light"), wrong);
      }
    }
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

WARPSIGHT_QTEST(MultiprocessorsTest)
#include "multiprocessors_test.moc"
