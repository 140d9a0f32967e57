// The map of memory, memory over time, the driver's calls by op and by step, and where a step's time goes: what the
// panels say is what was recorded.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QTest>

#include "app/charts/curve_pane.h"
#include "app/charts/driver_calls.h"
#include "app/charts/plot.h"
#include "app/pages/details/details_panel.h"
#include "app/pages/memory/memory_map_panel.h"
#include "app/widgets/theme.h"
#include "engine/plan/op_tags.h"
#include "profiling/trace/code_places.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;
using prof::MemoryAction;

class MemoryTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void mapOfThePlanDoesNotOverlap();
  void layersStandBelowTheCurve();
  void mapOfTheEventsClosesBlocks();
  void reservedIsTheMostAtOnce();
  void blocksOfDirectCallsHaveTheirWriters();
  void mapOfEventsWithoutStepsReportsTimes();
  void blocksOfAProgramHaveThePhaseThatMadeThem();
  void thePeakIsSaidByItsParts();
  void shortBytesHaveThreeDigits();
  void aPeakThatGrowsIsSaid();
  void aLongFirstStepLeavesWidthToNormalSteps();
  void mapIsDrawnAndChosen();
  void holesAndSizesOverTime();
  void thePeaksOfTensorsAndOfTheDriverAreBothNamed();
  void eachDeviceHasAMapOfItsOwn();
  void aRecordedProgramIsNotOfferedAPlan();
  void theProgramsOwnAllocatorSpeaksFirst();
  void anArenaIsShownByItsPlan();
  void theLargestHoldersAtThePeakComeFirst();
  void callsByOpAreThoseThatWereCounted();
  void callsOfARecordedProgramHaveACurve();
  void callsHaveTheNumbersOfTheirSteps();
  void timeInTheAllocatorByStep();
  void detailsDoNotRepeatTheSplit();
  void aRangeHasPartsAndDelay();
  void aStoredRangeReportsHowBusyTheGpuWas();
};

namespace {

void remember(prof::Trace& trace, prof::TimeNs time, uint64_t address, uint64_t bytes, MemoryAction kind,
              uint8_t source = 0) {
  trace.append_memory({time, address, bytes, 1, prof::kNoOp, kind, source});
}

// A pool of 4 KiB: a block in its middle leaves two holes.
void fill_pool(prof::Trace& trace, uint8_t source) {
  remember(trace, 10, 4096, 4096, MemoryAction::Reserve, source);
  remember(trace, 20, 4096, 1024, MemoryAction::Allocate, source);
  remember(trace, 30, 5120, 1024, MemoryAction::Allocate, source);
  remember(trace, 40, 4096, 1024, MemoryAction::Free, source);
}

std::unique_ptr<Run> program(int64_t steps, int64_t first = 0) {
  auto run = std::make_unique<Run>();
  run->slot = 0, run->origin = RunOrigin::Imported, run->summary = Summary{};
  run->summary->steps = steps;
  const auto marks = run->trace.track(prof::TrackKind::Steps, "steps", ""),
             calls = run->trace.track(prof::TrackKind::Api, "thread 1 calls", "CPU");
  for (int64_t i = 0; i < steps; ++i) {
    prof::Span span;
    span.start = (i + 1) * 1'000'000, span.duration = 900'000, span.kind = static_cast<uint64_t>(prof::SpanKind::Step);
    span.step = static_cast<uint32_t>(first + i + 1);
    run->trace.append(marks, span);
    span.start += 1000, span.duration = 20'000, span.step = 0, span.kind = static_cast<uint64_t>(prof::SpanKind::Alloc);
    run->trace.append(calls, span);
  }
  return run;
}

}  // namespace

void MemoryTest::mapOfThePlanDoesNotOverlap() {
  const auto run = test::planned(Allocator::Arena, Fusion::Off);
  const MemoryMap map = plan_map(run->plan->plan);
  QVERIFY(!map.empty());
  QCOMPARE(map.reserved, static_cast<uint64_t>(run->plan->plan.arena_bytes));
  QVERIFY(map.peak <= map.reserved && map.peak > 0);
  for (const MapBlock& a : map.blocks)
    for (const MapBlock& b : map.blocks)
      if (&a != &b) QVERIFY(a.x1 <= b.x0 || b.x1 <= a.x0 || a.y1 <= b.y0 || b.y1 <= a.y0);
  for (const MapBlock& block : map.blocks) {
    QVERIFY(block.x0 + 0.5 < block.x1 && block.y0 < block.y1);
    QVERIFY(used_at(map, block.x0) >= block.bytes);
  }
  QVERIFY(plan_map(test::planned(Allocator::Direct, Fusion::Off)->plan->plan).empty());  // nothing has an offset
}

// Forward layers in order, then backward ones; what a layer keeps is what a backward op reads.
void MemoryTest::layersStandBelowTheCurve() {
  RunSpec spec;
  spec.model.layers = "conv 3x3 4 | relu | residual(conv 3x3 4 | relu) | linear";
  spec.exec.allocator = Allocator::Arena, spec.exec.fusion = Fusion::Off;
  const Model model = make_model(spec.model, LayerShape::picture(8, 8, 1), 10);
  const MemoryMap map = plan_map(compile(spec, model, 16).plan);
  QStringList names;
  for (const MapLayer& layer : map.layers) names << (layer.backward ? "d " : "") + layer.name;
  QCOMPARE(names, QStringList({"conv1", "residual 1", "fc3", "d fc3", "d residual 1", "d conv1"}));
  QCOMPARE(map.layers[0].kept, uint64_t{16 * 64 * 4 * 4});  // relu's output: its own slope and the next layer's input
  QCOMPARE(map.layers[5].kept, uint64_t{0});
  names.clear();
  for (const MapLayer& layer : plan_map(compile(spec, model, 16).plan, [](const std::string&) { return false; }).layers)
    names << QString::fromStdString(layer.block) + "/" + layer.name;
  QCOMPARE(names, QStringList({"/conv1", "residual 1/conv2", "/fc3", "/fc3", "residual 1/conv2", "/conv1"}));
  for (const MapBlock& block : map.blocks)
    if (block.name == "z1") QCOMPARE(block.layer, QString("conv1"));
  QVERIFY(plan_map(test::planned(Allocator::Arena, Fusion::Off)->plan->plan).layers.size() >= 2);
}

void MemoryTest::mapOfTheEventsClosesBlocks() {
  prof::Trace trace;
  using Kind = prof::MemoryAction;
  trace.append_memory({100, 0x1000, 64, 1, 0, Kind::Allocate, 0});
  trace.append_memory({150, 0x90000000, 128, 1, 0, Kind::Allocate, 0});
  trace.append_memory({200, 0x1000, 0, 1, 0, Kind::Free, 0});
  trace.append_memory({250, 0x5555, 0, 1, 0, Kind::Free, 0});  // of a block from before: left out
  trace.append_memory({300, 0x1000, 32, 1, 0, Kind::Allocate, 0});
  const MemoryMap map = event_map(trace, 2);
  QCOMPARE(map.blocks.size(), size_t{3});
  QCOMPARE(map.blocks[0].x1, 200.0);
  QCOMPARE(map.peak, uint64_t{192});
  QCOMPARE(map.seams.size(), size_t{1});
  QVERIFY(map.height < 4096);  // the empty addresses between are left out
  QCOMPARE(map.steps, int64_t{2});
  QVERIFY(event_map(prof::Trace{}, 2).empty());
}

// A program that returns each block to the driver has reserved one of them at a time.
void MemoryTest::reservedIsTheMostAtOnce() {
  prof::Trace trace;
  trace.append_memory({100, 0x1000, 512, 0, 0, MemoryAction::Reserve, 0});
  trace.append_memory({110, 0x1000, 512, 0, 0, MemoryAction::Allocate, 0});
  trace.append_memory({200, 0x1000, 0, 0, 0, MemoryAction::Free, 0});
  trace.append_memory({210, 0x1000, 0, 0, 0, MemoryAction::Release, 0});
  trace.append_memory({300, 0x9000, 256, 0, 0, MemoryAction::Reserve, 0});
  trace.append_memory({310, 0x9000, 256, 0, 0, MemoryAction::Allocate, 0});
  QCOMPARE(event_map(trace, 2).reserved, uint64_t{512});
}

// Allocation is no colour of what a block holds.
void MemoryTest::blocksOfDirectCallsHaveTheirWriters() {
  const auto run = test::planned(Allocator::Direct, Fusion::Off);
  const Plan& plan = run->plan->plan;
  prof::Trace trace;
  trace.ops.resize(1);
  for (const Op& op : plan.ops) trace.ops.push_back(op_info(plan, op));
  MemoryMap map;
  for (size_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].kind == OpKind::Alloc) map.blocks.push_back({.name = "alloc", .op = static_cast<prof::OpTag>(i + 1)});
  QVERIFY(map.blocks.size() > 4);
  name_contents(map, contents(plan, trace));
  for (const MapBlock& block : map.blocks) QVERIFY(block.name != "alloc" && block.buffer != BufferId::None);
  const auto gradient = std::ranges::find(map.blocks, QString("dW1"), &MapBlock::name);
  QVERIFY(gradient != map.blocks.end());
  QCOMPARE(gradient->content, MemoryContent::Gradients);
}

void MemoryTest::mapOfEventsWithoutStepsReportsTimes() {
  prof::Trace trace;
  for (int i = 0; i < 40; ++i)
    trace.append_memory({i * prof::TimeNs{100'000'000}, 0x1000u + 64u * static_cast<unsigned>(i), 64, 0, prof::kNoOp,
                         prof::MemoryAction::Allocate, 0});
  const MemoryMap map = event_map(trace, 2);
  QCOMPARE(map.blocks.size(), size_t{40});
  QCOMPARE(map.steps, int64_t{0});
  QCOMPARE(map.sections.size(), size_t{4});
  QCOMPARE(map.sections[2].second, QStringLiteral("2 s"));
  QCOMPARE(map.sections[2].first, 2e9);
}

void MemoryTest::blocksOfAProgramHaveThePhaseThatMadeThem() {
  Run run;
  run.origin = RunOrigin::Imported, run.summary = Summary{};
  const char* const phases[] = {"", "forward", "backward", "optimizer"};
  run.trace.ops.resize(1);
  for (const char* phase : phases) run.trace.ops.push_back({"aten::empty", "", "fc1", phase});
  run.trace.ops.push_back({"dW1", "", "fc1", "backward", prof::Meaning::Matrix});
  for (unsigned op = 1; op <= 5; ++op)
    run.trace.append_memory({100 * prof::TimeNs{op}, 0x1000u * op, 0x1000, 0, static_cast<prof::OpTag>(op), MemoryAction::Allocate, 0});
  const MemoryMap map = event_map(run.trace, 2);
  QCOMPARE(map.blocks.size(), size_t{5});
  // Also of an op whose kind is known: a colour has one meaning.
  const MemoryContent wanted[] = {MemoryContent::Other, MemoryContent::Activations, MemoryContent::Gradients, MemoryContent::Optimizer, MemoryContent::Gradients};
  for (size_t i = 0; i < 5; ++i) QCOMPARE(map.blocks[i].content, wanted[i]);
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.resize(1330, 700);
  panel.setRun(&run);
  panel.show();
  const QImage drawn = panel.view()->grab().toImage();
  for (size_t i = 1; i < 5; ++i) {
    const QColor edge = theme().of(meaning_of(wanted[i]));
    const QRectF box = panel.view()->boxOf(map.blocks[i]);
    const QColor seen = drawn.pixelColor(QPoint(static_cast<int>(box.center().x()), static_cast<int>(std::round(box.top()))));
    QVERIFY(std::abs(seen.hsvHue() - edge.hsvHue()) < 12);  // between two pixels a line is fainter
  }
  run.trace.memory_sources = {"PyTorch"};
  panel.setRun(&run);
  run.trace.ops[2].layer = "fc2", run.trace.ops[3].layer = "fc3";
  panel.refresh();
  std::map<QString, int> colours;
  for (int row = 0; row < panel.holders()->rowCount(); ++row) {
    const QModelIndex name = panel.holders()->index(row, MemoryMapPanel::Holder);
    colours[name.data().toString()] = name.data(kMeaningRole).toInt();
  }
  QCOMPARE(colours["fc2"], static_cast<int>(meaning_of(MemoryContent::Activations)));
  QCOMPARE(colours["fc3"], static_cast<int>(meaning_of(MemoryContent::Gradients)));
}

void MemoryTest::shortBytesHaveThreeDigits() {
  constexpr double kMiB = 1024 * 1024;
  QCOMPARE(short_bytes_text(524), QString("524 B"));
  QCOMPARE(short_bytes_text(5.824 * 1024), QString("5.82 KiB"));
  QCOMPARE(short_bytes_text(42.96 * kMiB), QString("43.0 MiB"));
  QCOMPARE(short_bytes_text(545.19 * kMiB), QString("545 MiB"));
}

// The parts make the peak, and what is kept between steps stands beside it.
void MemoryTest::thePeakIsSaidByItsParts() {
  const auto run = test::planned(Allocator::Arena, Fusion::Off);
  const Plan& plan = run->plan->plan;
  const MemoryMap map = plan_map(plan);
  uint64_t sum = 0, weights = 0;
  for (const MemoryPart& part : parts_at_peak(map)) sum += part.bytes;
  QCOMPARE(sum, map.peak);
  for (const Buffer& buffer : plan.buffers)
    if (buffer.role == Role::Parameter || buffer.role == Role::Shadow) weights += static_cast<uint64_t>(buffer.bytes());
  QCOMPARE(kept_parts(plan).front().name, QString("weights"));
  QCOMPARE(kept_parts(plan).front().bytes, weights);
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.resize(1100, 700);
  panel.show();
  panel.setRun(run.get());
  const QString said = panel.headline();
  for (const QString& text : {short_bytes_text(static_cast<double>(map.peak)) + " at the peak of a step", QString("gradients"), "weights " + short_bytes_text(static_cast<double>(weights))})
    QVERIFY2(said.contains(text), qPrintable(said));
  QVERIFY2(!panel.overTime()->isVisible(), "a plan that calls no allocator has nothing below its map");
}

// Events of another program know no step: its marks do.
void MemoryTest::aPeakThatGrowsIsSaid() {
  constexpr int64_t kSteps = 6;
  for (const auto& [growth, until] : {std::pair{uint64_t{0}, kSteps}, {uint64_t{1} << 20, kSteps}, {uint64_t{4} << 20, int64_t{1}}}) {
    const auto run = program(kSteps, 10);
    run->trace.memory_sources = {"PyTorch"};
    for (int64_t i = 0; i < kSteps; ++i) {
      const prof::TimeNs begin = (i + 1) * 1'000'000;
      const uint64_t bytes = (uint64_t{4} << 20) + growth * static_cast<uint64_t>(std::min(i, until));
      run->trace.append_memory({begin + 100'000, 4096, bytes, 0, prof::kNoOp, MemoryAction::Allocate, 0});
      run->trace.append_memory({begin + 800'000, 4096, bytes, 0, prof::kNoOp, MemoryAction::Free, 0});
    }
    Focus focus;
    MemoryMapPanel panel(&focus);
    panel.resize(1330, 700);
    panel.setRun(run.get());
    panel.show();
    const MemoryMap& map = panel.view()->map();
    QCOMPARE(map.sections.size(), static_cast<size_t>(kSteps));
    QCOMPARE(map.sections.back().second, QString("step 15"));
    QCOMPARE(peaks_of_steps(map).back().used, (uint64_t{4} << 20) + growth * static_cast<uint64_t>(std::min(kSteps - 1, until)));
    QVERIFY2(panel.headline().startsWith(until == kSteps && growth ? "Peak in step 15: " : "Peak in step "), qPrintable(panel.headline()));
    QCOMPARE(panel.notes().contains("The peak of a step grows from 4.00 MiB to 9.00 MiB: other blocks from 4.00 MiB to 9.00 MiB, in one block."), growth > 0 && until == kSteps);
    QCOMPARE(panel.notes().contains("grows"), growth > 0 && until == kSteps);  // a first step that is smaller is no growth
  }
}

void MemoryTest::aLongFirstStepLeavesWidthToNormalSteps() {
  for (const prof::TimeNs warm_up : {1'000'000, 50'000'000}) {
    prof::Trace trace;
    const auto steps = trace.track(prof::TrackKind::Steps, "steps", "CPU");
    for (int i = 0; i < 6; ++i) {
      prof::Span span;
      span.start = i == 0 ? 0 : warm_up + (i - 1) * 1'000'000, span.duration = static_cast<uint64_t>(i == 0 ? warm_up : 1'000'000);
      span.kind = static_cast<uint64_t>(prof::SpanKind::Step), span.step = static_cast<uint32_t>(i + 1);
      trace.append(steps, span);
      trace.append_memory({span.start + 1000, 4096, uint64_t{1000} + static_cast<uint64_t>(i), 0, prof::kNoOp, MemoryAction::Allocate, 0});
      trace.append_memory({span.start + 900'000, 4096, 0, 0, prof::kNoOp, MemoryAction::Free, 0});
    }
    const MemoryMap map = event_map(trace, 2);
    QVERIFY(map.by_step);
    QCOMPARE(map.x_normal, warm_up > 1'000'000 ? map.sections[1].first : map.x_begin);
    MemoryMapView view;
    view.resize(900, 500);
    view.setMap(map, 0, {});
    // One step of normal length is open, and all its memory with it.
    const size_t opened = 4;  // each has more in use than the one before, and the last one is open
    QCOMPARE(std::pair(map.x_from, map.x_until), std::pair(map.sections[opened].first, map.sections[opened + 1].first));
    QCOMPARE(std::pair(view.begin(), view.end()), std::pair(map.x_from, map.x_until));
    const double in_step = view.boxOf(map.blocks[opened]).width();
    QVERIFY2(in_step > 500, "it fills the view");
    view.showWhole(true);
    QCOMPARE(std::pair(view.begin(), view.end()), std::pair(map.x_begin, map.x_end));
    QVERIFY2(view.boxOf(map.blocks[opened]).width() < in_step / 3, "all steps");
  }
}

void MemoryTest::mapIsDrawnAndChosen() {
  const auto run = test::planned(Allocator::Arena, Fusion::Off);
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.resize(1400, 860);
  panel.show();
  panel.setRun(run.get());
  QVERIFY(!panel.view()->map().empty());
  const MapBlock& block = panel.view()->map().blocks.back();
  const QPoint centre = panel.view()->boxOf(block).center().toPoint();
  QTest::mouseClick(panel.view(), Qt::LeftButton, {}, centre);
  QVERIFY(focus.get<BufferChoice>());
  QCOMPARE(focus.get<BufferChoice>()->buffer, block.buffer);
  QHelpEvent asks(QEvent::ToolTip, centre, panel.view()->mapToGlobal(centre));
  QApplication::sendEvent(panel.view(), &asks);
  QVERIFY2(QToolTip::text().startsWith(block.name + ", ") && QToolTip::text().contains(", written by "), qPrintable(QToolTip::text()));
  panel.grab();
}

void MemoryTest::holesAndSizesOverTime() {
  Run run;
  run.slot = 1, run.summary = Summary{};
  run.trace.memory_sources = {"caching"};
  fill_pool(run.trace, 0);
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.resize(1000, 700);
  panel.setRun(&run);
  panel.show();
  const FragmentationCurve& curve = panel.overTime()->curve();
  QCOMPARE(curve.of, QString("caching"));
  QCOMPARE(curve.moments.size(), size_t{4});
  QCOMPARE(curve.moments[3].holes, 2u);
  QVERIFY(std::abs(curve.worst - (1 - 2048.0 / 3072)) < 1e-9);
  QCOMPARE(curve.at_peak, 0.0);  // one hole behind both blocks
  QCOMPARE(curve.moments[2].sizes.size(), size_t{1});
  QCOMPARE(curve.moments[2].sizes[0].count, uint64_t{2});
  QCOMPARE(panel.overTime()->accessibleDescription(),
           QString("fragmented: 0.0 % of the free bytes are outside the largest free block at the peak, 33.3 % at worst"));
  const QString tip = panel.overTime()->tipAt({panel.overTime()->width() - 12.0, 40});
  QVERIFY2(tip.contains("in 2 places") && tip.contains("33.3"), qPrintable(tip));
  QVERIFY(panel.overTime()->tipAt({2, 2}).isEmpty());
  const auto point_at = [view = panel.findChild<MemoryTimeView*>()](QPoint at) {
    QHelpEvent asks(QEvent::ToolTip, at, view->mapToGlobal(at));
    QApplication::sendEvent(view, &asks);
  };
  const QPoint inside(panel.overTime()->width() - 14, 40);
  point_at(inside);
  QVERIFY(!QToolTip::text().isEmpty());
  QCOMPARE(QToolTip::text(), panel.overTime()->tipAt(inside));
  point_at({2, 2});
  QTRY_VERIFY(!QToolTip::isVisible());
}

void MemoryTest::thePeaksOfTensorsAndOfTheDriverAreBothNamed() {
  Run run;
  run.summary = Summary{};
  run.trace.memory_sources = {"cudaMalloc", "PyTorch"};
  remember(run.trace, 1, 1 << 20, 3 << 20, MemoryAction::Allocate);
  remember(run.trace, 2, 8 << 20, 2 << 20, MemoryAction::Allocate);
  remember(run.trace, 3, 2 << 20, 1 << 20, MemoryAction::Allocate, 1);
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.resize(1330, 700);
  panel.setRun(&run);
  panel.show();
  const QString said = panel.headline() + '\n' + panel.notes();
  for (const char* text : {"Peak: 1.00 MiB allocated by PyTorch while recording", "From the driver: 5.00 MiB.", "4.00 MiB of it is unused: 2.00 MiB beside live blocks, 2.00 MiB in empty segments."})
    QVERIFY2(said.contains(text), qPrintable(said));
}

// PyTorch reports blocks of the CPU, too, where its own profiler records memory. Their addresses mean something else.
void MemoryTest::eachDeviceHasAMapOfItsOwn() {
  Run run;
  run.origin = RunOrigin::Imported, run.summary = Summary{};
  run.trace.memory_sources = {"PyTorch CPU", "cudaMalloc", "PyTorch"};
  remember(run.trace, 1, 0, 8 << 20, MemoryAction::Allocate, 1);
  remember(run.trace, 2, 1 << 20, 1 << 20, MemoryAction::Allocate, 0);
  remember(run.trace, 3, 1 << 20, 3 << 20, MemoryAction::Allocate, 2);
  remember(run.trace, 4, 5 << 20, 2 << 20, MemoryAction::Allocate, 2);
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.resize(1330, 700);
  panel.setRun(&run);
  panel.show();
  QPushButton* whose = nullptr;
  for (auto* button : panel.findChildren<QPushButton*>())
    if (button->menu() && button->text() == "PyTorch") whose = button;
  QVERIFY2(whose && whose->isVisible(), "the device that held the most");
  QCOMPARE(panel.view()->map().blocks.size(), size_t{2});
  QCOMPARE(panel.view()->map().peak, uint64_t{5 << 20});
  QCOMPARE(panel.overTime()->curve().of, QString("PyTorch"));
  QVERIFY2(panel.headline().startsWith("Peak: 5.00 MiB allocated by PyTorch while recording"), qPrintable(panel.headline()));
  if (const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES"); !folder.isEmpty())
    QVERIFY(panel.grab().save(folder + "/memory-devices.png"));
  QCOMPARE(whose->menu()->actions().size(), qsizetype{2});
  whose->menu()->actions().front()->trigger();
  QCOMPARE(whose->text(), QString("PyTorch CPU"));
  QCOMPARE(panel.view()->map().blocks.size(), size_t{1});
  QCOMPARE(panel.view()->map().peak, uint64_t{1 << 20});
  QVERIFY2(panel.headline().startsWith("Peak: 1.00 MiB allocated by PyTorch CPU while recording"), qPrintable(panel.headline()));
}

void MemoryTest::aRecordedProgramIsNotOfferedAPlan() {
  Run trained, recorded;
  recorded.origin = RunOrigin::Imported, recorded.summary = Summary{};
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.show();
  for (Run* run : {&trained, &recorded}) {
    panel.setRun(run);
    QCOMPARE(panel.headline() == "No allocation was recorded", run == &recorded);
    bool offers_a_plan = false;
    for (const auto* button : panel.findChildren<QPushButton*>()) offers_a_plan |= button->isVisible() && button->text() == "Plan";
    QCOMPARE(offers_a_plan, run == &trained);
  }
}

void MemoryTest::theProgramsOwnAllocatorSpeaksFirst() {
  Run run;
  run.summary = Summary{};
  run.trace.memory_sources = {"cudaMalloc", "caching"};
  remember(run.trace, 1, 1 << 20, 1 << 16, MemoryAction::Allocate);
  QCOMPARE(event_fragmentation(run.trace).of, QString("cudaMalloc and similar calls"));
  fill_pool(run.trace, 1);
  QCOMPARE(event_fragmentation(run.trace).of, QString("caching"));
  QVERIFY(event_fragmentation(prof::Trace()).empty());
}

void MemoryTest::anArenaIsShownByItsPlan() {
  MemoryMap map;
  map.x_end = 3, map.reserved = 300, map.height = 300, map.peak = 200;
  map.blocks = {{0, 2, 0, 100, "a", 100}, {1, 3, 100, 200, "b", 100}};
  const FragmentationCurve curve = plan_fragmentation(map);
  QVERIFY(curve.by_op);
  QCOMPARE(curve.moments.size(), size_t{3});
  QCOMPARE(curve.moments[1].live, uint64_t{200});
  QCOMPARE(curve.moments[2].holes, 2u);
  QCOMPARE(curve.worst, 0.5);
}

void MemoryTest::theLargestHoldersAtThePeakComeFirst() {
  const auto run = program(3);
  run->title = "net.py", run->trace.memory_sources = {"PyTorch"};
  run->trace.ops.push_back({"aten::mm", "", "encoder.fc1", "forward", prof::Meaning::Matrix, 0, 0, prof::stack_from_text("net.py:3 in forward")});
  run->trace.ops.push_back({"aten::relu", "", "encoder.act", "forward", prof::Meaning::Pointwise, 0, 0, prof::stack_from_text("net.py:4 in forward")});
  const auto mm = static_cast<prof::OpTag>(run->trace.ops.size() - 2), relu = static_cast<prof::OpTag>(mm + 1);
  run->trace.append_memory({10, 4096, 1 << 20, 1, mm, MemoryAction::Allocate, 0});
  run->trace.append_memory({20, 1 << 22, 3 << 20, 1, relu, MemoryAction::Allocate, 0});
  run->trace.append_memory({30, 4096, 0, 1, prof::kNoOp, MemoryAction::Free, 0});  // the peak comes again, and other holes
  run->trace.append_memory({40, 1 << 23, 1 << 20, 1, mm, MemoryAction::Allocate, 0});
  Focus focus;
  MemoryMapPanel panel(&focus);
  panel.resize(1000, 700);
  panel.setRun(run.get());
  panel.show();
  TableModel& holders = *panel.holders();
  QAbstractItemModelTester tester(&holders);
  QCOMPARE(holders.rowCount(), 2);
  const auto text = [&](int row, int column) { return holders.index(row, column).data().toString(); };
  QCOMPARE(text(0, MemoryMapPanel::Holder), QString("encoder.act"));
  QCOMPARE(text(0, MemoryMapPanel::Share), QString("75.00"));
  QCOMPARE(text(1, MemoryMapPanel::Bytes), bytes_text(1 << 20));
  QTableView* table = nullptr;
  for (auto* view : panel.findChildren<QTableView*>())
    if (view->model() == &holders) table = view;
  QVERIFY(table && table->isVisible());
  QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(holders.index(1, 0)).center());
  QVERIFY2(std::holds_alternative<OpChoice>(focus.choice()), "a row leads to its op");
  const auto* plan = panel.findChild<PlanPanel*>();
  QVERIFY2(plan && !plan->isVisible(), "another program has no plan");
  const prof::MemoryAccount account = prof::memory_accounts(run->trace)[0];
  QCOMPARE(panel.overTime()->curve().at_peak, account.at_peak.fragmentation());
  QCOMPARE(panel.overTime()->curve().worst, account.worst.fragmentation());
  QVERIFY2(panel.headline().contains("4.00 MiB") && !panel.notes().contains("driver"), qPrintable(panel.headline()));
  panel.setRun(nullptr);
  QCOMPARE(holders.rowCount(), 0);
}

void MemoryTest::callsByOpAreThoseThatWereCounted() {
  auto run = test::traced(test::StepStyle::EagerDirect);
  run->summary->steps = 4;
  for (uint32_t step = 1; step <= 4; ++step)
    run->allocator_calls.take(
        prof::StepAllocations{.step = step, .op = 1, .allocations = 1, .frees = 2, .time_ns = 6000, .bytes = 1024});
  run->allocator_calls.take(prof::StepAllocations{.step = 0, .op = 0, .allocations = 5, .time_ns = 900'000});
  Focus focus;
  MemoryMapPanel panel(&focus);
  QAbstractItemModelTester tester(panel.calls(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  panel.setRun(run.get());
  panel.refresh();
  QCOMPARE(panel.calls()->rowCount(), 2);
  const auto text = [&](int row, int column) { return panel.calls()->index(row, column).data().toString(); };
  QCOMPARE(text(0, MemoryMapPanel::Op), QString("(no op)"));
  QCOMPARE(text(0, MemoryMapPanel::CallsAStep), QString("0.00"));
  QCOMPARE(text(1, MemoryMapPanel::Op), QString::fromStdString(run->trace.ops[1].name));
  QCOMPARE(text(1, MemoryMapPanel::Calls), QString("12"));
  QCOMPARE(text(1, MemoryMapPanel::CallsAStep), QString("3.00"));
  QCOMPARE(text(1, MemoryMapPanel::UsAStep), QString("6.0"));
  QCOMPARE(text(1, MemoryMapPanel::UsACall), QString("2.0"));
}

// It marks no steps, so that the driver's counts name none: the calls that were recorded stand by the steps found.
void MemoryTest::callsOfARecordedProgramHaveACurve() {
  const auto run = program(20);
  run->allocator_calls.take(prof::StepAllocations{.step = 0, .allocations = 20, .time_ns = 400'000});
  CurvePane pane({Gauge::AllocatorCalls, Gauge::AllocatorTime});
  pane.resize(400, 200);
  pane.show();
  pane.setRuns({run.get()});
  QVERIFY(pane.plot()->graph(0)->data()->size() > 1);
  QCOMPARE(pane.plot()->graph(0)->data()->at(1)->value, 1.0);
  const auto buttons = pane.findChildren<QPushButton*>();
  const auto picker = std::ranges::find(buttons, QString("Gauge"), &QWidget::accessibleName);
  QVERIFY(picker != buttons.end() && (*picker)->text().startsWith("Driver"));
  pane.setMeasure(Gauge::AllocatorTime);
  QCOMPARE(pane.plot()->graph(0)->data()->at(1)->value, 20.0);
}

// Only the steps 10 to 15 were recorded: they keep these numbers, and each has its own calls.
void MemoryTest::callsHaveTheNumbersOfTheirSteps() {
  const auto points = driver_calls_over(*program(6, 10));
  QCOMPARE(points.size(), size_t{6});
  for (size_t i = 0; i < 6; ++i) {
    QCOMPARE(points[i].first, 10.0 + static_cast<double>(i));
    QCOMPARE(points[i].step, points[i].first + 1);
    QCOMPARE(points[i].calls, 1.0);
  }
}

void MemoryTest::timeInTheAllocatorByStep() {
  auto run = test::made("direct", test::StepStyle::EagerDirect, 0, 100);
  run->meters.push_back({100, 1, 15, 15, 0, 0, 0});
  for (uint32_t step = 1; step <= 50; ++step)
    run->allocator_calls.take(
        prof::StepAllocations{.step = step, .op = 1, .allocations = 1, .frees = 1, .time_ns = 8000});
  const auto points = driver_calls_over(*run);
  QCOMPARE(points.size(), size_t{100});
  QCOMPARE(points[10].us, 8.0);
  QCOMPARE(points[99].us, 0.0);  // nothing was called there
  CurvePane pane({Gauge::AllocatorCalls, Gauge::AllocatorTime});
  pane.resize(400, 200);
  pane.show();
  pane.setRuns({run.get()});
  QCOMPARE(pane.plot()->graph(0)->data()->at(1)->value, 30.0);  // our own runs: what the executor counts
  pane.setMeasure(Gauge::AllocatorTime);
  QCOMPARE(pane.plot()->graph(0)->data()->at(1)->value, 8.0);
}

// The parts of a step stand in the split, its loss and time in the tool bar. Details has what these do not show.
void MemoryTest::detailsDoNotRepeatTheSplit() {
  auto run = test::traced(test::StepStyle::EagerDirect);
  run->split.parts = {{prof::Meaning::Matrix, {}, 30}, {prof::Meaning::Idle, {}, 70}};
  run->split.wall_us = 100, run->split.steps = 10, run->split.gpu = prof::gpu_figures(run->trace, {}, {});
  run->tracing_cost = {0.038, 0.01};
  run->evals = {{50, 1, 1, 0.25, 0.9}};
  Focus focus;
  DetailsPanel panel(&focus);
  panel.setRun(run.get());
  for (const char* said : {"GPU busy", "launch delay", "≥ 3.8 ± 1.0 %"})
    QVERIFY2(panel.html().contains(said), said);
  for (const char* elsewhere : {"matrix product", "test loss", "step time"}) QVERIFY2(!panel.html().contains(elsewhere), elsewhere);
  run->tracing_cost = {-0.268, 0.3};  // faster with tracing: that is noise
  panel.setRun(run.get());
  QVERIFY(panel.html().contains("within noise, ± 30.0 %") && !panel.html().contains("≥"));
  focus.choose(OpChoice{run.get(), 1});
  QTRY_VERIFY(!panel.html().contains("GPU busy"));
  focus.clear();
  QTRY_VERIFY(panel.html().contains("GPU busy"));
  panel.setRun(nullptr);
  QVERIFY(!panel.html().contains("GPU busy"));
}

void MemoryTest::aRangeHasPartsAndDelay() {
  const auto run = test::traced(test::StepStyle::EagerDirect);
  const RunRange range{run.get(), {run->trace.first_time(), run->trace.last_time()}};
  const QString html = range_details({range}, 20);
  for (const char* said : {"allocator calls", "launch gaps", "launch delay", "GPU busy"})
    QVERIFY2(html.contains(said), said);
}

// Out of memory, a range is read from the file: the GPU was as busy as it is said to be of the same range in memory.
void MemoryTest::aStoredRangeReportsHowBusyTheGpuWas() {
  QTemporaryDir folder;
  const std::string path = folder.filePath("a.wsrun").toStdString();
  const auto run = test::traced(test::StepStyle::EagerDirect);
  prof::Span rest;
  rest.start = run->trace.last_time() - 3000, rest.duration = 2000;
  rest.kind = static_cast<uint64_t>(prof::SpanKind::Overhead), rest.name = run->trace.intern("untraced on purpose");
  run->trace.append(run->trace.track(prof::TrackKind::Untraced, prof::kUntracedTrack, "CPU"), rest);
  {
    prof::RunFileWriter writer(path, {});
    writer.add(run->trace);
    writer.finish();
  }
  const RunRange range{run.get(), {run->trace.first_time() + 500'000, run->trace.last_time()}};
  const QString here = range_details({range}, 20);
  prof::StoredSpans file(path);
  const StoredSums sums = sums_in(file, range.range);
  QVERIFY(sums.gpu && sums.gpu->busy > 0);
  run->trace.backed = true;
  run->trace.evict_spans(0);
  const QString there = range_details({range}, 20, {{range, sums, {}}});
  const auto said = [](const QString& html) {
    const qsizetype at = html.indexOf("GPU busy ");
    return at < 0 ? QString() : html.mid(at, html.indexOf("<", at) - at);
  };
  QVERIFY2(said(there).contains("not traced 2"), qPrintable(there));
  QCOMPARE(said(there), said(here));
  QVERIFY(there.contains("overlap"));
  QVERIFY(!range_details({range}, 20).contains("GPU busy"));  // not read yet
}

WARPSIGHT_QTEST(MemoryTest)
#include "memory_test.moc"
