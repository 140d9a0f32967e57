// The panels about one run: their models, what they show of a run, and how they lead to each other.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QMenuBar>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBrowser>
#include <QToolTip>

#include <algorithm>
#include <numeric>

#include "app/network/attention_view.h"
#include "app/network/tile_view.h"
#include "app/widgets/command_palette.h"
#include "app/pages/details/details_panel.h"
#include "app/pages/details/range_details.h"
#include "app/pages/kernels/kernels_panel.h"
#include "app/pages/memory/memory_map_panel.h"
#include "app/pages/plan/plan_panel.h"
#include "app/pages/roofline/roofline_panel.h"
#include "app/text/units.h"
#include "app/timeline/timeline_pane.h"
#include "app/widgets/theme.h"
#include "app/window/top_bar.h"
#include "app/pages/weights/weights_panel.h"
#include "app/core/runs/run_ceilings.h"
#include "engine/cpu/cpu_executor.h"
#include "engine/lab/ceilings.h"
#include "engine/plan/model.h"
#include "engine/plan/op_tags.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;
using test::iris_spec;
using test::planned;

namespace {

// A CPU executor with the weights as the init made them.
std::unique_ptr<Executor> ready(const RunSpec& spec, const Model& model, const data::Dataset& data) {
  auto executor = make_cpu_executor();
  executor->load(model, data, spec);
  TrainState state;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    state.parameters.push_back(initial_values(model, spec.model, static_cast<ParamId>(i), spec.train.seed));
  if (spec.train.optimizer != Optimizer::Sgd)
    for (const auto& p : state.parameters) state.moments[0].emplace_back(p.size(), 0.0F);
  executor->set_state(state);
  return executor;
}

const prof::Span& some_kernel(const Run& run, size_t& track) {
  for (track = 0; run.trace.tracks()[track].kind != prof::TrackKind::Stream; ++track) {
  }
  return run.trace.tracks()[track].blocks.front().spans[3];
}

}  // namespace

class PanelsTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }

  void planShowsEveryOpOnce();
  void planBeforeAndAfterDiffer();
  void thePlanShowsWhatWasChanged();
  void planShowsTheBudgetBeforeATraining();
  void planAndTimelineSelectEachOther();
  void tagsFollowTheNewestRegistration();
  void anArrowInTheTimelineFoldsABlockInEveryView();
  void aHeadingInThePlanOpensABlock();
  void kernelsFoldABlockAndMemoryOpensIt();
  void partsOfAResidentKernelAreTimesOfThePlan();
  void anOpOfTwoKernelsTakesTheTimeOfBoth();
  void detailsOfARunSayWhichStepsDoNotCount();
  void detailsOfSpanOpBufferAndRange();
  void detailsEscapeNames();
  void detailsShowTheEndOfARunAtOnce();
  void aStartReportsWhatTakesLong();
  void detailsFollowTheSplitOfALiveRun();
  void rooflineStaysUnderTheRoof();
  void eachPointOfACrowdHasItsName();
  void theRoofIsWhatWasMeasured();
  void theRoofOfAFileBelongsToItsCard();
  void weightsOfARealRun();
  void anAnswerAboutARunThatWasLeftIsDropped();
  void weightsOfALineAndAPlane();
  void aNetworkOfPicturesAtWork();
  void aNetworkOfTextAtWork();
  void writtenTextsAreKeptAtGrowingSteps();
  void paletteFindsAndRuns();
  void panelsLiveWithoutARun();
};

void PanelsTest::planShowsEveryOpOnce() {
  const auto run = planned(Allocator::Direct, Fusion::Off);
  Focus focus;
  PlanPanel panel(&focus);
  TableModel& model = *panel.model();
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  panel.setRun(run.get());
  std::vector<int> seen;
  for (int row = 0; row < model.rowCount(); ++row)
    if (panel.opAt(row) >= 0) seen.push_back(panel.opAt(row));
  QCOMPARE(seen.size(), run->plan->plan.ops.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    QCOMPARE(seen[i], static_cast<int>(i));
    QCOMPARE(panel.opAt(panel.rowOf(static_cast<int>(i))), static_cast<int>(i));
  }
  bool alloc = false;
  for (const Op& op : run->plan->plan.ops) alloc = alloc || op.kind == OpKind::Alloc;
  QVERIFY(alloc);  // allocations are ops that the person sees
  panel.setRun(nullptr);
  QCOMPARE(model.rowCount(), 0);
}

void PanelsTest::planBeforeAndAfterDiffer() {
  const auto run = planned(Allocator::Arena, Fusion::Pointwise);
  Focus focus;
  PlanPanel panel(&focus);
  panel.setRun(run.get());
  const size_t after = run->plan->plan.ops.size(), before = run->plan->before.ops.size();
  QVERIFY(after < before);
  QVERIFY(panel.plan() == &run->plan->plan);
  panel.setStage(PlanStage::Before);
  QVERIFY(panel.plan() == &run->plan->before);
}

// Before a training the plan page says where a persistent kernel would keep the network.
void PanelsTest::planShowsTheBudgetBeforeATraining() {
  Focus focus;
  PlanPanel panel(&focus);
  const auto shows = [&panel](const QString& part) {
    const auto labels = panel.findChildren<QLabel*>();
    return std::ranges::any_of(labels, [&](const QLabel* l) { return !l->isHidden() && l->text().contains(part); });
  };
  QVERIFY(!shows("residency cluster"));
  panel.setBudget("One kernel trains many steps: residency cluster");
  QVERIFY(shows("No plan yet") && shows("residency cluster"));
  const auto run = planned(Allocator::Arena, Fusion::Off);
  panel.setRun(run.get());
  QVERIFY(!shows("residency cluster"));
}

void PanelsTest::planAndTimelineSelectEachOther() {
  auto run = planned(Allocator::Arena, Fusion::Off);
  const Plan& plan = run->plan->plan;
  run->trace.ops.resize(1);
  for (const Op& op : plan.ops)
    run->trace.ops.push_back({op.name, describe(plan, op), "", std::string(to_string(op.phase)), meaning_of(op), 0, 0});
  Focus focus;
  PlanPanel panel(&focus);
  panel.setRun(run.get());
  panel.table()->setCurrentIndex(panel.model()->index(panel.rowOf(2), 0));
  QVERIFY(focus.get<OpChoice>());
  QCOMPARE(focus.get<OpChoice>()->op, prof::OpTag{3});
  focus.choose(OpChoice{run.get(), 5});
  QCOMPARE(panel.opAt(panel.table()->currentIndex().row()), 4);
}

void PanelsTest::tagsFollowTheNewestRegistration() {
  const auto run = planned(Allocator::Arena, Fusion::Off);
  const Plan& plan = run->plan->plan;
  prof::Trace trace;
  for (int round = 0; round < 2; ++round)
    for (const Op& op : plan.ops) trace.ops.push_back({op.name, "", "", "", prof::Meaning::Other, 0, 0});
  const auto tags = op_tags(plan, trace);
  for (size_t i = 0; i < tags.size(); ++i) QCOMPARE(tags[i], static_cast<prof::OpTag>(1 + plan.ops.size() + i));
  QVERIFY(op_tags(plan, prof::Trace{}).front() == prof::kNoOp);
}

namespace {

// A run of two blocks whose ops ran one after another, on the CPU, in three steps.
std::unique_ptr<Run> run_of_two_blocks() {
  auto run = std::make_unique<Run>();
  run->title = "two blocks", run->slot = 0, run->summary = Summary{}, run->device = "CPU";
  run->spec.data.name = "sentences", run->spec.model.layers = "embed 8 | 2 x block(heads 2) | layernorm | linear";
  run->spec.exec.fusion = Fusion::Off;
  run->plan = compile(run->spec, make_model(run->spec.model, LayerShape::symbols(6), 5), 4);
  prof::Trace& trace = run->trace;
  trace.ops.resize(1);
  for (const Op& op : run->plan->plan.ops) trace.ops.push_back(op_info(run->plan->plan, op));
  const auto steps = trace.track(prof::TrackKind::Steps, "steps", ""), work = trace.track(prof::TrackKind::CpuThread, "CPU ops", "CPU");
  for (uint32_t step = 1; step <= 3; ++step) {
    const auto begin = static_cast<int64_t>(step) * 1'000'000;
    prof::Span span{.start = begin, .duration = 900'000, .step = step};
    span.kind = static_cast<uint64_t>(prof::SpanKind::Step);
    trace.append(steps, span);
    for (size_t i = 1; i < trace.ops.size(); ++i) {
      prof::Span one{.start = begin + static_cast<int64_t>(i) * 5'000, .duration = 4'900, .step = step};
      one.kind = static_cast<uint64_t>(prof::SpanKind::Op), one.op = static_cast<prof::OpTag>(i), one.name = trace.intern(trace.ops[i].name);
      trace.append(work, one);
    }
  }
  return run;
}

QStringList named(const TimelinePane& pane, const QString& title) {
  QStringList all;
  for (const Lane& lane : const_cast<TimelinePane&>(pane).model()->lanes())
    if (lane.title == title)
      for (const LayerBlock& block : layer_blocks(const_cast<TimelinePane&>(pane).model()->traceOf(lane), lane.tracks, {1'000'000, 2'000'000}, lane.grouping, 1000))
        all << QString::fromStdString(block.name);
  return all;
}

// The views of a run of two blocks. One choice for the run folds a block in each of them.
struct FoldedViews {
  std::unique_ptr<Run> run = run_of_two_blocks();
  Focus focus;
  TimeCursor cursor;
  PlanPanel plan{&focus};
  KernelsPanel kernels{&focus};
  MemoryMapPanel memory{&focus};
  TimelinePane pane{&cursor, &focus};
  int ops = 0;

  FoldedViews() {
    for (QWidget* view : {static_cast<QWidget*>(&plan), static_cast<QWidget*>(&kernels), static_cast<QWidget*>(&memory), static_cast<QWidget*>(&pane)})
      view->resize(1240, 700), view->show();
    plan.setRun(run.get()), kernels.setRun(run.get()), memory.setRun(run.get()), pane.setRuns({run.get()});
    kernels.groupBy(prof::GroupBy::Layer);
    ops = plan.model()->rowCount();
  }
  QStringList keys() const {
    QStringList all;
    for (const prof::KernelRow& row : kernels.rows()) all << QString::fromStdString(row.key);
    return all;
  }
  QStringList layers() const {
    QStringList all;
    for (const MapLayer& layer : memory.view()->map().layers) all << layer.name;
    return all;
  }
};

}  // namespace

void PanelsTest::anArrowInTheTimelineFoldsABlockInEveryView() {
  FoldedViews shown;
  QVERIFY(shown.keys().contains("attn3") && !shown.keys().contains("block 1"));
  QVERIFY(named(shown.pane, "layer").contains("attn3"));
  QVERIFY2(shown.layers().contains("block 1") && !shown.layers().contains("attn3"), "Memory folds blocks at first");
  shown.cursor.setRange(1'000'000, 1'400'000);
  TimelineView& view = *shown.pane.view();
  const auto& lanes = shown.pane.model()->lanes();
  const auto blocks = std::ranges::find(lanes, QString("block"), &Lane::title);
  QVERIFY(blocks != lanes.end());
  const LayerBlock first = layer_blocks(shown.pane.model()->traceOf(*blocks), blocks->tracks, {0, 4'000'000}, blocks->grouping, 1000).front();
  QCOMPARE(first.name, std::string("block 1"));
  const TimelineGeometry& geometry = view.timelineGeometry();
  const QPoint arrow(static_cast<int>(geometry.scale().x(first.start - shown.pane.model()->offset(0))) + 8, geometry.laneY(*blocks) + blocks->height / 2);
  QTest::mouseClick(&view, Qt::LeftButton, {}, arrow);
  QVERIFY(shown.run->folded("block 1") && !shown.run->folded("block 2"));
  QVERIFY(named(shown.pane, "layer").contains("block 1") && !named(shown.pane, "layer").contains("attn3"));
  QVERIFY(named(shown.pane, "layer").contains("attn8") || named(shown.pane, "layer").filter("attn").size() > 0);
  QVERIFY(shown.keys().contains("block 1") && !shown.keys().contains("attn3"));
  QVERIFY(shown.plan.model()->rowCount() < shown.ops);
  QVERIFY(shown.layers().contains("block 1"));
}

void PanelsTest::aHeadingInThePlanOpensABlock() {
  FoldedViews shown;
  shown.run->setFolded("block 1", true);
  QTRY_VERIFY(shown.plan.model()->rowCount() < shown.ops);
  int heading = 0;
  while (heading < shown.plan.model()->rowCount() && shown.plan.blockAt(heading) != "block 1") ++heading;
  QVERIFY(shown.plan.model()->table().rows[static_cast<size_t>(heading)].cells[0].text.starts_with("▸ forward · block 1: "));
  QTest::mouseClick(shown.plan.table()->viewport(), Qt::LeftButton, {}, shown.plan.table()->visualRect(shown.plan.model()->index(heading, 0)).center());
  QVERIFY(!shown.run->folded("block 1"));
  QCOMPARE(shown.plan.model()->rowCount(), shown.ops);
  QVERIFY2(shown.layers().contains("attn3") && shown.layers().contains("block 2"), "a setting of the user counts for Memory, too");
}

// The arrow of a layer's row in Kernels folds its block, and a click on the strip in Memory opens it.
void PanelsTest::kernelsFoldABlockAndMemoryOpensIt() {
  FoldedViews shown;
  KernelsPanel& kernels = shown.kernels;
  shown.run->setFolded("block 1", false);
  const QAbstractItemModel& rows = *kernels.table()->model();
  int of_layer = 0;
  while (of_layer < rows.rowCount() && rows.index(of_layer, 0).data().toString() != "▾ block 1 · attn3") ++of_layer;
  QVERIFY(of_layer < rows.rowCount());
  kernels.table()->scrollTo(rows.index(of_layer, 0));
  const QRect cell = kernels.table()->visualRect(rows.index(of_layer, 0));
  QTest::mouseClick(kernels.table()->viewport(), Qt::LeftButton, {}, {cell.left() + 60, cell.center().y()});
  QVERIFY2(!shown.run->folded("block 1"), "only the arrow folds");
  QTest::mouseClick(kernels.table()->viewport(), Qt::LeftButton, {}, {cell.left() + 10, cell.center().y()});
  QVERIFY(shown.run->folded("block 1") && shown.keys().contains("block 1"));
  const double sum = std::accumulate(kernels.rows().begin(), kernels.rows().end(), 0.0, [](double all, const auto& row) { return all + row.share; });
  QVERIFY(std::abs(sum - 1) < 1e-9);
  MemoryMapView* memory = shown.memory.view();
  const MemoryMap& map = memory->map();
  const auto strip = std::ranges::find(map.layers, QString("block 1"), &MapLayer::name);
  constexpr int kLeft = 54, kRight = 14, kStripFromBelow = 12, kPlaced = 300;
  QTRY_VERIFY(memory->height() > kPlaced);
  const double middle = (strip->x0 + strip->x1) / 2 / map.x_end * (memory->width() - kLeft - kRight) + kLeft;
  QTest::mouseClick(memory, Qt::LeftButton, {}, {static_cast<int>(middle), memory->height() - kStripFromBelow});
  QVERIFY(!shown.run->folded("block 1") && shown.layers().contains("attn3"));
}

void PanelsTest::anOpOfTwoKernelsTakesTheTimeOfBoth() {
  prof::Trace trace;
  trace.ops = {{}, {"db1", "", "fc1", "backward", prof::Meaning::Reduction, 0, 0}};
  for (uint32_t step = 0; step < 4; ++step)
    for (const uint64_t ns : {1500, 1300}) {
      prof::Span span;
      span.start = step * 10'000 + ns, span.duration = ns, span.op = 1, span.step = step;
      span.kind = static_cast<uint64_t>(prof::SpanKind::Kernel);
      trace.append(trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0"), span);
    }
  const OpTime time = op_times(trace).at(1);
  QCOMPARE(time.us, 2.8);
  QCOMPARE(time.count, size_t{5});  // the two kernels without a step's number count one by one
}

// The parts of a resident kernel count for the plan's ops: by phase and layer, a gradient that is never stored for the
// update that makes it.
void PanelsTest::partsOfAResidentKernelAreTimesOfThePlan() {
  const auto run = planned(Allocator::Arena, Fusion::Epilogue);
  const Plan& plan = run->plan->plan;
  prof::Trace trace;
  trace.ops = {{}, {"forward", "", plan.layer_names[0], "forward", prof::Meaning::Matrix, 0, 0},
               {"backward", "", plan.layer_names[0], "backward", prof::Meaning::Matrix, 0, 0},
               {"wait", "", "", "", prof::Meaning::Sync, 0, 0}};
  const auto add = [&](prof::TrackKind kind, const char* row, prof::OpTag op, int64_t start, uint64_t ns) {
    prof::Span span;
    span.start = start, span.duration = ns, span.op = op, span.step = 1;
    span.kind = static_cast<uint64_t>(kind == prof::TrackKind::Inner ? prof::SpanKind::Inner : prof::SpanKind::Kernel);
    span.meaning = static_cast<uint64_t>(trace.ops[op].meaning);
    trace.append(trace.track(kind, row, "GPU 0"), span);
  };
  add(prof::TrackKind::Stream, "stream 7", 0, 0, 10'000);
  add(prof::TrackKind::Inner, "SM 000", 1, 1000, 2000);
  add(prof::TrackKind::Inner, "SM 000", 3, 3000, 500);
  add(prof::TrackKind::Inner, "SM 000", 2, 3500, 4000);
  const PlanTimes times = plan_times(plan, trace);
  QCOMPARE(times.waits_us, 0.5);
  double forward = 0, later = 0;
  for (size_t i = 0; i < plan.ops.size(); ++i)
    (plan.ops[i].phase == Phase::Forward ? forward : later) += times.us[i];
  QCOMPARE(forward, 2.0);
  QCOMPARE(later, 4.0);
  run->trace = std::move(trace);
  Focus focus;
  // Six µs of ops in a step of four overlap, and the page says so.
  run->step_time.us.value = 4;
  PlanPanel ops(&focus);
  ops.resize(1400, 500);
  ops.show();
  ops.setRun(run.get());
  const auto labels = ops.findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels, [](const QLabel* label) {
    return label->text().contains(QString::fromUtf8("times: means, together 6.0 µs; step time: 4.0 µs, median · ops of different streams overlap"));
  }));
  RooflinePanel panel(&focus);
  panel.show();
  panel.setRun(run.get());
  QCOMPARE(panel.view()->points().size(), size_t{2});  // forward and backward of the first layer
  for (const prof::RooflinePoint& point : panel.view()->points()) QVERIFY(point.flops_per_s > 0 && point.phase != "evaluate");
}

void PanelsTest::detailsOfARunSayWhichStepsDoNotCount() {
  Run run;
  run.split.steps = 38, run.split.wall_us = 4720, run.split.which = "steps 21–58";
  QVERIFY(!step_details(run).contains("Left out"));
  run.split.left_out = "Left out: the last step (no next step marks the end).";
  QVERIFY2(step_details(run).contains("median of steps 21–58") && step_details(run).contains(run.split.left_out), qPrintable(step_details(run)));
}

void PanelsTest::detailsOfSpanOpBufferAndRange() {
  const auto run = planned(Allocator::Arena, Fusion::Off);
  Focus focus;
  DetailsPanel panel(&focus);
  panel.resize(320, 400);
  panel.show();
  size_t track = 0;
  const prof::Span span = some_kernel(*run, track);
  focus.choose(SpanChoice{run.get(), track, span});
  QTRY_VERIFY(panel.html().contains("median"));
  for (const char* word : {"occupancy", "registers", "launched by", "backward", "step"})
    QVERIFY2(panel.html().contains(word), word);
  focus.choose(OpChoice{run.get(), 6});
  QTRY_VERIFY(panel.html().contains("median of"));
  focus.choose(BufferChoice{run.get(), run->plan->plan.find("h1")});
  QTRY_VERIFY(panel.html().contains("written by"));
  QVERIFY(panel.html().contains("alive"));
  focus.chooseRanges({{run.get(), {0, run->trace.last_time()}}});
  QTRY_VERIFY(panel.html().contains("cudaGraphLaunch"));
  QVERIFY(panel.html().contains("100 ×"));
  focus.clear();
  QTRY_VERIFY(panel.html().contains("Click a span"));
}

// Other views show the last figures at once: two values of one figure would stand on one screen.
void PanelsTest::detailsShowTheEndOfARunAtOnce() {
  const auto run = test::made("ended", test::StepStyle::GraphArena, 0);
  run->split.parts = {{prof::Meaning::Matrix, {}, 20}}, run->split.wall_us = 20, run->split.steps = 10;
  Focus focus;
  DetailsPanel panel(&focus);
  panel.setRun(run.get());
  panel.show();
  QVERIFY(panel.html().contains(time_axis_text(run->step_time.p95_us)));
  run->step_time.p95_us = 1234;
  run->announce();
  QCoreApplication::processEvents();
  QVERIFY2(panel.html().contains(time_axis_text(1234)), qPrintable(panel.html()));
  panel.setRun(nullptr);
}

void PanelsTest::detailsFollowTheSplitOfALiveRun() {
  const auto run = test::made("live", test::StepStyle::GraphArena, 0);
  run->origin = RunOrigin::Live, run->summary.reset();
  QVERIFY(run->live());
  run->split.parts = {{prof::Meaning::Matrix, {}, 20}}, run->split.wall_us = 20, run->split.steps = 10;
  Focus focus;
  DetailsPanel panel(&focus);
  panel.setRun(run.get());
  panel.show();
  run->split.parts[0].us = run->split.wall_us = 4321, run->step_time.p95_us = 1234;
  run->announce();
  QCoreApplication::processEvents();
  QVERIFY2(panel.html().contains(time_axis_text(1234)), qPrintable(panel.html()));
  panel.setRun(nullptr);
}

void PanelsTest::detailsEscapeNames() {
  Run run;
  const auto track = run.trace.track(prof::TrackKind::Stream, "stream <b>1</b>", "GPU 0");
  prof::Span span;
  span.start = 5, span.duration = 10, span.name = run.trace.intern("k<img src=x>(int)");
  run.trace.append(track, span);
  const QString html = span_details(run, 0, span);
  QVERIFY(!html.contains("<img") && !html.contains("<b>1</b>"));
}

void PanelsTest::rooflineStaysUnderTheRoof() {
  const auto run = test::traced(test::StepStyle::GraphArena);
  Focus focus;
  RooflinePanel panel(&focus);
  panel.resize(800, 500);
  panel.show();
  panel.setRun(run.get());
  QVERIFY(panel.view()->points().size() >= 5);
  for (const auto& point : panel.view()->points())
    QVERIFY(panel.view()->rect().contains(panel.view()->placeOf(point).toPoint()));
  // The ground of a name cuts no point.
  for (const PaintedText& text : painted_texts(*panel.view()))
    for (const auto& point : panel.view()->points()) {
      const auto named = std::ranges::any_of(panel.view()->points(), [&](const auto& p) { return text.text == QString::fromStdString(p.name); });
      const QRectF rim(panel.view()->placeOf(point) - QPointF(6, 6), QSizeF(12, 12));
      QVERIFY2(!named || !text.box.intersects(rim), qPrintable(text.text));
    }
  QTest::mouseClick(panel.view(), Qt::LeftButton, {}, panel.view()->placeOf(panel.view()->points()[0]).toPoint());
  QVERIFY(focus.get<OpChoice>());
  QCOMPARE(roof_of("a card nobody knows", Precision::Fp32).ceilings.flops_per_s, 0.0);
}

void PanelsTest::eachPointOfACrowdHasItsName() {
  Focus focus;
  RooflineView view(&focus);
  view.resize(800, 500);
  std::vector<prof::RooflinePoint> points;
  QStringList names;
  for (int i = 0; i < 18; ++i) {
    prof::RooflinePoint point;
    point.name = "layer" + std::to_string(i), point.phase = "forward", point.meaning = prof::Meaning::Matrix;
    point.intensity = 10 + 0.1 * i, point.flops_per_s = 1e11 * (1 + 0.02 * i);
    points.push_back(point), names << QString::fromStdString(point.name);
  }
  Run run;
  view.setPoints(&run, points, {{1e13, 1e12}, true, false, {}});
  const std::vector<PaintedText> texts = painted_texts(view);
  for (const QString& name : names) QCOMPARE(std::ranges::count(texts, name, &PaintedText::text), std::ptrdiff_t{1});
  QCOMPARE(unreadable(view), QStringList());
}

void PanelsTest::theRoofIsWhatWasMeasured() {
  QTemporaryDir cache;
  qputenv("XDG_CACHE_HOME", cache.path().toUtf8());
  const auto run = test::traced(test::StepStyle::GraphArena);
  run->device = "NVIDIA H200";
  const Roof of_sheet = roof_of(run->device, Precision::Tf32);
  QVERIFY(!of_sheet.measured && of_sheet.ceilings.flops_per_s > 0);
  Focus focus;
  RooflinePanel panel(&focus);
  panel.resize(800, 500);
  panel.show();
  panel.setRun(run.get());
  const QImage before = panel.view()->grab().toImage();
  lab::remember_ceilings(
      "NVIDIA H200", "580.1",
      {.read_write_bytes_s = 4.1e12, .l2_bytes_s = 8e12, .fp32_flops_s = 5e13, .tf32_flops_s = 3.6e14, .fp16_flops_s = 7e14});
  const Roof seen = roof_of(run->device, Precision::Tf32);
  QVERIFY(seen.measured);
  QCOMPARE(seen.ceilings.flops_per_s, 3.6e14);
  QCOMPARE(seen.ceilings.bytes_per_s, 4.1e12);
  QCOMPARE(roof_of(run->device, Precision::Bf16).ceilings.flops_per_s, 7e14);
  panel.refresh();
  QVERIFY(panel.view()->grab().toImage() != before);
  QStringList said;
  for (const PaintedText& text : painted_texts(*panel.view())) said << text.text;
  for (const char* ceiling : {"tf32 tensor cores", "fp16 and bf16 tensor cores", "L2"})
    QVERIFY2(said.join('\n').contains(ceiling), qPrintable(said.join('\n')));
  // Bytes that hardware counters saw stand beside the plan's bytes.
  const prof::TrackId dram = run->trace.counter("DRAM read", "%", prof::CounterKind::Dram);
  for (prof::TimeNs at = run->trace.first_time(); at < run->trace.last_time(); at += 100)
    run->trace.append_counter(dram, prof::CounterPoint{at, 30.0});
  panel.setRun(nullptr);
  panel.setRun(run.get());
  const auto& points = panel.view()->points();
  const auto counted = std::ranges::find_if(points, [](const auto& p) { return p.dram_share > 0.3; });
  QVERIFY(counted != points.end());
  const QPoint at = panel.view()->placeOf(*counted).toPoint();
  QHelpEvent asked(QEvent::ToolTip, at, panel.view()->mapToGlobal(at));
  QApplication::sendEvent(panel.view(), &asked);
  QVERIFY2(QToolTip::text().contains("DRAM as counted"), qPrintable(QToolTip::text()));
  if (const QByteArray folder = qgetenv("WARPSIGHT_PICTURES"); !folder.isEmpty())
    panel.grab().save(QString::fromUtf8(folder) + "/roofline-measured.png");
  qunsetenv("XDG_CACHE_HOME");
}

// A file says what its card reached, wherever it is opened; one of before says nothing.
void PanelsTest::theRoofOfAFileBelongsToItsCard() {
  QTemporaryDir folder;
  qputenv("XDG_CACHE_HOME", folder.path().toUtf8());
  const lab::Ceilings there{
      .read_write_bytes_s = 4.1e12, .fp32_flops_s = 5e13, .tf32_flops_s = 3.6e14, .fp16_flops_s = 7e14};
  lab::remember_ceilings("A card", "580.1", there);
  const std::string path = folder.filePath("a.wsrun").toStdString();
  const auto opened = [&](const DeviceInfo& here) {
    prof::RunSummary summary;
    summary.device = "A card";
    keep_ceilings(summary, here);
    prof::RunFileWriter(path, summary).finish();
    auto run = test::traced(test::StepStyle::GraphArena);
    run->device = "A card", run->spec.exec.precision = Precision::Tf32;
    run->reader = std::make_shared<prof::RunFileReader>(path);
    return run;
  };
  DeviceInfo card;
  card.cuda = true, card.name = "A card", card.driver = "580.1";
  const auto kept = opened(card);
  // Opened on a machine whose card of that name reaches less, and on one that knows none.
  lab::remember_ceilings("A card", "600", {.read_write_bytes_s = 1e12, .fp32_flops_s = 1e12, .tf32_flops_s = 1e12});
  for (const bool empty : {false, true}) {
    if (empty) qputenv("XDG_CACHE_HOME", folder.filePath("empty").toUtf8());
    const Roof roof = roof_of(*kept);
    QVERIFY(roof.measured && roof.recorded);
    QCOMPARE(roof.ceilings.flops_per_s, 3.6e14);
    QCOMPARE(roof.ceilings.bytes_per_s, 4.1e12);
    QVERIFY2(roof.whose.contains("recording machine") && roof.whose.contains("580.1"), qPrintable(roof.whose));
  }
  qputenv("XDG_CACHE_HOME", folder.path().toUtf8());
  card.driver = "580.1";  // whose ceilings the newer driver's replaced
  const auto without = opened(card);
  QVERIFY(!kept_ceilings(without->reader->summary()));
  const Roof here = roof_of(*without);
  QVERIFY(here.measured && !here.recorded);
  QCOMPARE(here.ceilings.flops_per_s, 1e12);
  QVERIFY2(here.whose.contains("this machine"), qPrintable(here.whose));
  for (const char* damaged : {"", "[]", "{", R"({"tf32_flops_s": "much", "driver": 5})", R"({"memory_bytes_s": -1})"}) {
    prof::keep_with_run(path, "ceilings", damaged);
    without->reader = std::make_shared<prof::RunFileReader>(path);
    QVERIFY2(!roof_of(*without).recorded, damaged);
  }
  card.driver = "600", card.name = "Another card";
  QVERIFY(!kept_ceilings(opened(card)->reader->summary()));
  qunsetenv("XDG_CACHE_HOME");
}

void PanelsTest::weightsOfARealRun() {
  const RunSpec spec = iris_spec();
  const auto data = std::make_shared<const data::Dataset>(data::load(spec.data));
  const Model model = make_model(spec.model, data->features, data->outputs);
  auto executor = ready(spec, model, *data);
  auto snapshot = std::make_shared<const WeightsSnapshot>(probe_weights(*executor, *data, spec));
  QCOMPARE(snapshot->layers[0].now, snapshot->layers[0].first);  // not a step was made
  int rows = 0;
  for (const auto& line : snapshot->confusion)
    for (int count : line) rows += count;
  QCOMPARE(rows, static_cast<int>(snapshot->confusion_rows));
  WeightsPanel panel([](const Run&, std::function<void(Executor&)>) { return false; });
  panel.resize(1200, 800);
  panel.show();
  panel.setSnapshot(snapshot, data);
  const auto histograms = panel.findChildren<HistogramView*>();
  QCOMPARE(static_cast<size_t>(histograms.size()), snapshot->layers.size());
  for (const auto* h : histograms) QCOMPARE(h->data().counts, h->data().ghost);
}

// The training thread answers after another run was shown, and this one again: its rows are still being read.
void PanelsTest::anAnswerAboutARunThatWasLeftIsDropped() {
  Run run, other;
  run.spec = other.spec = iris_spec();
  const data::Dataset data = data::load(run.spec.data);
  auto executor = ready(run.spec, make_model(run.spec.model, data), data);
  std::function<void(Executor&)> question;
  WeightsReader reader([&](const Run&, std::function<void(Executor&)> asked) {
    question = std::move(asked);
    return true;
  });
  int read = 0, without_rows = 0;
  connect(&reader, &WeightsReader::read, this, [&](const auto&, const auto& rows) {
    ++read;
    without_rows += rows == nullptr;
  });
  reader.setWatched(true);
  reader.setRun(&run);
  QTRY_VERIFY(question);
  const auto late = std::exchange(question, {});
  reader.setRun(&other);
  reader.setRun(&run);
  late(*executor);
  QCoreApplication::processEvents();
  QCOMPARE(without_rows, 0);
  QTRY_VERIFY(question);
  question(*executor);
  QTRY_COMPARE(read, 1);
  QCOMPARE(without_rows, 0);
}

// Weights as they are before the first step, and a look with them.
struct LookedAt {
  explicit LookedAt(RunSpec of) : spec(std::move(of)), data(std::make_shared<const data::Dataset>(data::load(spec.data))) {
    auto executor = ready(spec, make_model(spec.model, *data), *data);
    snapshot = std::make_shared<const WeightsSnapshot>(probe_weights(*executor, *data, spec));
    view.resize(1000, 640);
    view.show();
    view.setRun(spec);
    view.setWeights(snapshot, data);
  }
  template <class Widget>
  Widget* named(const QString& name) const {
    for (Widget* each : view.findChildren<Widget*>())
      if (each->accessibleName() == name) return each;
    return nullptr;
  }

  RunSpec spec;
  std::shared_ptr<const data::Dataset> data;
  std::shared_ptr<const WeightsSnapshot> snapshot;
  AtWorkView view;
};

void PanelsTest::aNetworkOfPicturesAtWork() {
  RunSpec spec;
  spec.data.name = "shapes", spec.data.points = 60;
  spec.model.layers = "conv 3x3 6 | relu | maxpool 2 | conv 3x3 8 | relu | avgpool | linear";
  spec.train.optimizer = Optimizer::Sgd;
  LookedAt at(spec);
  QVERIFY(!at.view.hasContent());
  QTRY_VERIFY(at.view.hasContent());
  auto* maps = at.named<TileView>("Feature maps");
  auto* filters = at.named<TileView>("Filters");
  auto* misread = at.named<TileView>("Misread pictures");
  auto* layers = at.named<QComboBox>("Layer");
  QCOMPARE(layers->count(), 7);
  QCOMPARE(maps->tiles().size(), size_t(6));
  QCOMPARE(maps->tiles()[0].image.size(), QSize(32, 32));
  QCOMPARE(filters->tiles().size(), size_t(6));
  QCOMPARE(filters->tiles()[0].image.size(), QSize(3, 3));
  layers->setCurrentIndex(3);
  emit layers->activated(3);
  QCOMPARE(maps->tiles().size(), size_t(8));
  QCOMPARE(maps->tiles()[0].image.size(), QSize(16, 16));
  QCOMPARE(filters->tiles().size(), size_t(8));
  // A click on a misread picture chooses it; the layer stays.
  QVERIFY(at.snapshot->wrong.size() > 2);
  QSignalSpy looked(&at.view, &AtWorkView::looked);
  emit misread->picked(2);
  QTRY_COMPARE(looked.count(), 1);
  QCOMPARE(at.view.look()->asked.row, at.snapshot->wrong[2].row);
  QCOMPARE(misread->chosen(), 2);
  QCOMPARE(layers->currentIndex(), 3);
  at.view.changeRow(-1);  // before the first comes the last
  QTRY_COMPARE(at.view.look()->asked.row, shown_part(*at.data).rows - 1);
}

void PanelsTest::aNetworkOfTextAtWork() {
  RunSpec spec;
  spec.data.name = "sentences", spec.data.points = 60, spec.data.context = 32;
  spec.model.layers = "embed 16 | 2 x block(heads 4) | layernorm | linear";
  spec.model.init = Init::Small;
  spec.train.optimizer = Optimizer::Sgd;
  LookedAt at(spec);
  QTRY_VERIFY(at.view.hasContent());
  auto* prompt = at.named<QLineEdit>("Prompt");
  auto* temperature = at.named<QLineEdit>("Temperature");
  auto* sentence = at.named<QLineEdit>("Sentence");
  auto* layer = at.named<QComboBox>("Layer of the heads");
  QVERIFY(!prompt->text().isEmpty() && !sentence->text().isEmpty());
  QCOMPARE(at.view.look()->written.size(), 160);
  QCOMPARE(layer->count(), 2);
  QCOMPARE(layer->itemText(1), QString("block 2"));
  QCOMPARE(at.named<TileView>("Heads")->tiles().size(), size_t(4));
  const auto type = [](QLineEdit* field, const QString& text) {
    field->selectAll();
    QTest::keyClicks(field, text);
    QTest::keyClick(field, Qt::Key_Return);
  };
  type(sentence, "the cat");
  QTRY_COMPARE(at.view.look()->symbols.size(), size_t(7));
  auto* map = at.view.findChild<AttentionView*>();
  QVERIFY(map->sentenceAt(QPointF(map->width() / 2.0, map->height() / 2.0 - 10)).contains("takes") ||
          map->sentenceAt(QPointF(map->width() / 2.0, map->height() / 2.0 - 10)).contains("hidden"));
  type(prompt, "a dog");
  QTRY_COMPARE(at.view.look()->prompt, QString("a dog"));
  type(temperature, "0");
  QTRY_COMPARE(at.view.look()->asked.temperature, 0.0);
  const QString likeliest = at.view.look()->written;
  at.named<QPushButton>("Write another text")->click();  // another draw, which temperature 0 does not need
  QTRY_COMPARE(at.view.look()->asked.seed, uint64_t{2});
  QCOMPARE(at.view.look()->written, likeliest);
  type(temperature, "many");
  QCOMPARE(temperature->text(), QString("0"));
  QVERIFY(at.view.findChild<QTextBrowser*>()->toPlainText().startsWith("now, step 0"));
}

void PanelsTest::writtenTextsAreKeptAtGrowingSteps() {
  std::vector<WrittenText> all;
  for (int64_t step = 1; step <= 1000; ++step) keep_text(all, {step, "a", QString::number(step)}, 5);
  QCOMPARE(all.size(), size_t(5));
  QCOMPARE(all.front().step, int64_t{1});
  QCOMPARE(all.back().step, int64_t{1000});
  for (size_t i = 2; i + 1 < all.size(); ++i) QVERIFY(all[i].step >= all[i - 1].step * 3 / 2);
  keep_text(all, {1000, "b", "again"}, 5);  // another prompt at the same step
  QCOMPARE(all.back().text, QString("again"));
  QCOMPARE(all.size(), size_t(5));
}

void PanelsTest::weightsOfALineAndAPlane() {
  for (const char* name : {"line", "spirals"}) {
    RunSpec spec = iris_spec();
    spec.data.name = name, spec.data.points = 200;
    const bool line = std::string_view(name) == "line";
    if (line)
      spec.model.kind = ModelKind::Linear, spec.model.hidden.clear(), spec.model.loss = LossKind::MeanSquared,
      spec.train.optimizer = Optimizer::Sgd;
    const auto data = std::make_shared<const data::Dataset>(data::load(spec.data));
    auto executor = ready(spec, make_model(spec.model, data->features, data->outputs), *data);
    const auto snapshot = std::make_shared<const WeightsSnapshot>(probe_weights(*executor, *data, spec));
    QCOMPARE(!snapshot->line_y.empty(), line);
    QCOMPARE(!snapshot->boundary.empty(), !line);
    QCOMPARE(straight_line(*snapshot).has_value(), line);
    LearnedView view(LearnedView::Kind::Plane, "plane");
    view.resize(420, 320);
    view.setContent(snapshot, data);
    QVERIFY(view.hasContent());
    view.grab();
  }
  WeightsSnapshot fitted;
  fitted.line_x = {-1, 0, 1, 3}, fitted.line_y = {3, 1, -1, -5};
  const auto line = straight_line(fitted);
  QVERIFY(line && line->slope == -2 && line->at_zero == 1);
  fitted.line_y = {3, 2, -1, -5};  // as hidden layers bend it
  QVERIFY(!straight_line(fitted));
  fitted.line_y[2] = NAN;
  QVERIFY(!straight_line(fitted));
}

void PanelsTest::paletteFindsAndRuns() {
  QMenuBar bar;
  int ran = 0;
  bar.addMenu("&Run")->addAction("&Train", [&] { ++ran; });
  bar.addMenu("&View")->addAction("Toggle theme", [] {});
  auto* palette = new CommandPalette(&bar, nullptr);
  QAbstractItemModelTester tester(palette->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  palette->show();
  QCOMPARE(palette->model()->rowCount(), 2);
  QTest::keyClicks(palette->line(), "trn");
  QCOMPARE(palette->model()->rowCount(), 1);
  QTest::keyClick(palette->line(), Qt::Key_Return);
  QTRY_COMPARE(ran, 1);
  QVERIFY(match_score("Run › Train", "train") > match_score("View › Toggle rain", "train"));
  QCOMPARE(match_score("Run › Train", "xyz"), 0);
}

// One sentence a pass, for people who do not know how a pass is named.
void PanelsTest::thePlanShowsWhatWasChanged() {
  const auto changes = [](Allocator allocator, Fusion fusion) {
    const auto run = planned(allocator, fusion);
    Focus focus;
    PlanPanel panel(&focus);
    panel.setRun(run.get());
    QStringList texts;
    for (const QLabel* label : panel.findChildren<QLabel*>()) texts << label->text();
    return texts.filter("wait").join(' ');
  };
  const QString fused = changes(Allocator::Arena, Fusion::Epilogue), plain = changes(Allocator::Direct, Fusion::Off);
  QVERIFY2(fused.contains(" fused into ") && fused.contains(" share one block of ") && !fused.contains('_'), qPrintable(fused));
  QVERIFY2(!plain.contains("fused") && plain.contains("are allocated and freed in each step."), qPrintable(plain));
}

void PanelsTest::panelsLiveWithoutARun() {
  Focus focus;
  PlanPanel plan(&focus);
  KernelsPanel kernels(&focus);
  MemoryMapPanel map(&focus);
  RooflinePanel roofline(&focus);
  WeightsPanel weights([](const Run&, std::function<void(Executor&)>) { return false; });
  for (QWidget* panel : std::initializer_list<QWidget*>{&plan, &kernels, &map, &roofline, &weights}) {
    panel->resize(700, 500);
    panel->show();
    QVERIFY(!panel->grab().isNull());
  }
  auto run = planned(Allocator::Arena, Fusion::Off);
  plan.setRun(run.get()), kernels.setRun(run.get()), map.setRun(run.get()), roofline.setRun(run.get());
  run.reset();
  plan.setRun(nullptr), kernels.setRun(nullptr), map.setRun(nullptr), roofline.setRun(nullptr);
}

// Such as a driver that compiles the kernels first: until the first step, the newest line of the log stands beside the word.
void PanelsTest::aStartReportsWhatTakesLong() {
  Run run;
  ProgressCell cell;
  cell.show(&run, 0, false);
  QCOMPARE(cell.accessibleDescription(), QString::fromUtf8("starting · loading data"));
  run.log.push_back({QStringLiteral("The driver compiles the kernels for this GPU."), false});
  cell.show(&run, 0, false);
  QCOMPARE(cell.accessibleDescription(), QString::fromUtf8("starting · The driver compiles the kernels for this GPU."));
  run.progress = Progress{};
  cell.show(&run, 0, false);
  QVERIFY(!cell.accessibleDescription().contains("starting"));
}

WARPSIGHT_QTEST(PanelsTest)
#include "panels_test.moc"
