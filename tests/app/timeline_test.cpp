// The timeline: what its pure parts say, and the widget driven as a person would.
#include <QAbstractItemModelTester>
#include <QLineEdit>
#include <QSignalSpy>
#include <QtTest>

#include "app/panels/theme.h"
#include "app/timeline/timeline_pane.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;

namespace {

// Two runs of one network, the second thirteen times as slow a step.
struct TwoRuns {
  Run fast, slow;
  TimeCursor cursor;
  Selection selection;
  TimelinePane pane{&cursor, &selection};

  explicit TwoRuns(QSize size = {1240, 674}) {
    fast.id = "fast", fast.title = "graph · arena", fast.slot = 0, fast.summary = Summary{};
    slow.id = "slow", slow.title = "eager · direct", slow.slot = 1, slow.summary = Summary{};
    test::add_steps(fast.trace, test::StepStyle::GraphArena, 100, 400);
    test::add_steps(slow.trace, test::StepStyle::EagerDirect, 100, 200);
    pane.resize(size);
    pane.show();
    pane.setRuns({&fast, &slow});
  }
  TimelineView& view() { return *pane.view(); }
  TimelineModel& model() { return *pane.model(); }
  TimeRange range() { return model().range(); }

  const Lane& lane(int run, prof::TrackKind kind) {
    for (const Lane& lane : model().lanes())
      if (lane.run == run && lane.kind == LaneKind::Spans && lane.track_kind == kind) return lane;
    throw std::runtime_error("no such lane");
  }
  QPoint middleOf(const Lane& lane, int x) { return {x, view().timelineGeometry().laneY(lane) + lane.height / 2}; }
  // A pixel of that lane where a single block stands.
  QPoint blockIn(const Lane& lane) {
    for (int x = 400; x < view().width(); ++x)
      if (const auto hit = view().hitAt(middleOf(lane, x));
          hit && hit->rect.count == 1 && hit->rect.x1 - hit->rect.x0 > 8)
        return middleOf(lane, x + 2);
    return {};
  }
};

double measure(const QString& text) { return 7.0 * static_cast<double>(text.size()); }

}  // namespace

class TimelineTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }

  void zoomKeepsItsAnchor();
  void zoomStopsAtItsLimits();
  void rulerTicksAreRoundAndInOrder();
  void longestLabelThatFits();
  void ellipsisKeepsSixLetters();
  void kernelNamesAreShortened();
  void lanesStandInOrder();
  void filterFoldPinAndOrder();
  void memoryTakesTheRest();
  void manyBlocksShowSome();
  void allocationsBecomeCurves();
  void cardNeverCoversItsLane();

  void callAndKernelArePartners();
  void graphKernelsLeadToTheirLaunch();
  void gpuDuringACallIsIdleOrBusy();
  void sameNameIsCountedInTheStep();
  void stepsAreFound();
  void longestGapIsAGap();
  void copyKeepsIdsAndTimes();

  void runsAreAlignedByStep();
  void keysMoveTheRange();
  void wheelZoomsAtThePointer();
  void zoomIsUndone();
  void aPanStopsFollowing();
  void clickSelectsAndEscapeClears();
  void dragSumsARange();
  void nextOfTheSameName();
  void findGoesRound();
  void marksHaveNotes();
  void jumpsToStepSlowestAndGap();
  void hoverShowsACardAfterAWhile();
  void foldedSpansSayTheirCount();
  void groupsFoldOnClick();
  void followStandsStill();
  void freezeOutlivesTheRun();
  void changingRunsDropsTheOld();
  void aTraceThatComesLaterIsShown();
  void everyPixelIsPainted();
};

void TimelineTest::zoomKeepsItsAnchor() {
  const TimeRange range{1000, 101000};
  for (prof::TimeNs anchor : {1000, 26000, 101000})
    for (double factor : {0.5, 2.0}) {
      const TimeRange after = zoomed(range, anchor, factor);
      const double before_share = double(anchor - range.begin) / double(range.length()),
                   after_share = double(anchor - after.begin) / double(after.length());
      QVERIFY(std::abs(before_share - after_share) < 1e-3);
      QCOMPARE(after.length(), static_cast<prof::TimeNs>(100000 * factor));
    }
}

void TimelineTest::zoomStopsAtItsLimits() {
  TimeRange range{0, 1000};
  for (int i = 0; i < 60; ++i) range = zoomed(range, 500, 0.5);
  QCOMPARE(range.length(), kShortestRange);
  for (int i = 0; i < 120; ++i) range = zoomed(range, 500, 2);
  QCOMPARE(range.length(), kLongestRange);
}

void TimelineTest::rulerTicksAreRoundAndInOrder() {
  for (prof::TimeNs length : {300LL, 140'000LL, 7'000'000LL, 90'000'000'000LL}) {
    const TimeScale scale{{1'078'412'000, 1'078'412'000 + length}, 150, 1000};
    const Ruler r = ruler(scale, 78);
    QVERIFY2(r.ticks.size() >= 3 && r.ticks.size() <= 14, qPrintable(QString::number(r.ticks.size())));
    for (size_t i = 0; i < r.ticks.size(); ++i) {
      QCOMPARE(r.ticks[i].time % r.step, 0);
      if (i) QVERIFY(scale.x(r.ticks[i].time) - scale.x(r.ticks[i - 1].time) >= 77.9);
    }
    QVERIFY(r.ticks[0].text.contains('s'));  // the first one has the unit
  }
  QCOMPARE(span_time(96), QString("96 ns"));
  QCOMPARE(span_time(6900), QString("6.90 µs"));
  QCOMPARE(span_time(1'840'000), QString("1.84 ms"));
}

void TimelineTest::longestLabelThatFits() {
  const BlockNames names{"cudaMalloc", "malloc", ""};
  QCOMPARE(fitting_label(names, 78, measure), QString("cudaMalloc"));
  QCOMPARE(fitting_label(names, 77, measure), QString("malloc"));
  QCOMPARE(fitting_label({"cudaMalloc", "", ""}, 77, measure), QString("cudaMall…"));
  QCOMPARE(fitting_label(names, 60, measure), QString("malloc"));
  QCOMPARE(fitting_label(names, 40, measure), QString());
  QCOMPARE(fitting_label({"softmax cross entropy", "", "fc1"}, 30, measure), QString("fc1"));
}

void TimelineTest::ellipsisKeepsSixLetters() {
  const BlockNames names{"broadcast_bias_relu", "", ""};
  for (int width = 0; width < 160; ++width) {
    const QString label = fitting_label(names, width, measure);
    QVERIFY2(label.isEmpty() || measure(label) + 8 <= width, qPrintable(label));
    if (label.endsWith(QChar(0x2026))) QVERIFY(width > 62 && label.size() >= 7);
  }
}

void TimelineTest::kernelNamesAreShortened() {
  QCOMPARE(short_kernel_name("void ws::softmax<float, 4>(float const*, int)"), QString("softmax"));
  QCOMPARE(short_kernel_name("void cutlass::Kernel<cutlass::gemm::sm90_gemm<int>>(Params)"), QString("sm90_gemm"));
  QCOMPARE(short_kernel_name("ampere_sgemm_64x64_nn"), QString("ampere_sgemm_64x64_nn"));
  QCOMPARE(short_call_name("cudaMallocAsync"), QString("malloc"));
  QCOMPARE(short_call_name("cudaDeviceSynchronize"), QString("sync"));
}

void TimelineTest::lanesStandInOrder() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 20);
  auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {});
  QStringList titles;
  for (const Lane& lane : lanes) titles << lane.title;
  QCOMPARE(titles, QStringList({"x", "step", "phase", "stream 7", "memcpy", "CUDA API", "Counters and memory",
                                "DRAM read", "SM active", "memory"}));
  QCOMPARE(lanes[0].height, 20);
  QCOMPARE(lanes[1].height, 19);
  QCOMPARE(lanes[3].height, 42);
  QCOMPARE(lanes[4].height, 20);
  QCOMPARE(lanes[5].height, 38);  // it allocates
  prof::Trace quiet;
  test::add_steps(quiet, test::StepStyle::GraphArena, 0, 20);
  lanes = build_lanes({{&quiet, "run/y", "y", 0}}, {});
  QCOMPARE(lanes[4].title, QString("CUDA API"));
  QCOMPARE(lanes[4].height, 24);
  LaneSettings small;
  small.small = true;
  lanes = build_lanes({{&trace, "run/x", "x", 0}}, small);
  QCOMPARE(lanes[3].tracks.size(), size_t{2});  // copies join the stream
  QCOMPARE(lanes[3].height, 30);
}

void TimelineTest::filterFoldPinAndOrder() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 20);
  const std::vector<LaneSource> sources{{&trace, "run/x", "x", 0}};
  LaneSettings settings;
  settings.filter = "stream";
  QCOMPARE(build_lanes(sources, settings).size(), size_t{2});
  settings = {};
  settings.folded.insert("run/x");
  QVERIFY(build_lanes(sources, settings)[0].folded);
  QCOMPARE(build_lanes(sources, settings)[1].title, QString("Counters and memory"));
  settings = {};
  const auto all = build_lanes(sources, settings);
  settings.pinned.insert(all[5].key);
  auto lanes = build_lanes(sources, settings);
  QCOMPARE(lanes[0].title, QString("Pinned"));
  QCOMPARE(lanes[1].title, QString("CUDA API"));
  QVERIFY(lanes[1].pinned);
  settings = {};
  settings.order = QStringList{all[5].key, all[3].key};
  lanes = build_lanes(sources, settings);
  QCOMPARE(lanes[3].title, QString("CUDA API"));
  QCOMPARE(lanes[5].title, QString("stream 7"));
  settings.hidden.insert(all[3].key);
  QCOMPARE(build_lanes(sources, settings).size(), all.size() - 1);
}

void TimelineTest::memoryTakesTheRest() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 5);
  auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {});
  QCOMPARE(place_lanes(lanes, 900), 900);
  QCOMPARE(lanes.back().bottom(), 900);
  for (size_t i = 1; i < lanes.size(); ++i) QCOMPARE(lanes[i].y, lanes[i - 1].bottom());
  for (int y = 0; y < 900; ++y) {
    const int at = lane_at(lanes, y);
    QVERIFY(at >= 0 && lanes[size_t(at)].y <= y && y < lanes[size_t(at)].bottom());
  }
  QCOMPARE(lane_at(lanes, 900), -1);
}

void TimelineTest::manyBlocksShowSome() {
  prof::Trace trace;
  prof::Span span;
  span.duration = 10, span.name = trace.intern("fc1");
  for (int block = 0; block < 132; ++block)
    trace.append(trace.track(prof::TrackKind::Inner, "block " + std::to_string(block), "GPU 0"), span);
  const auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {});
  QCOMPARE(lanes.size(), size_t{5});
  QVERIFY(lanes[1].title.contains("of 132"));
  LaneSettings settings;
  settings.filter = "block";
  QCOMPARE(build_lanes({{&trace, "run/x", "x", 0}}, settings).size(), size_t{133});
}

void TimelineTest::allocationsBecomeCurves() {
  using Kind = prof::MemoryEventKind;
  prof::Trace trace;
  MemoryCurves curves;
  curves.update(trace);
  QVERIFY(curves.empty());
  trace.append_memory({10, 0x100, 64, 1, 0, Kind::Allocate, 0});
  trace.append_memory({20, 0x200, 32, 1, 0, Kind::Allocate, 0});
  curves.update(trace);
  trace.append_memory({30, 0x100, 0, 1, 0, Kind::Free, 0});
  curves.update(trace);
  QCOMPARE(curves.used().points.size(), size_t{3});
  QCOMPARE(curves.used().points[1].value, 96.0);
  QCOMPARE(curves.used().points.back().value, 32.0);
  QCOMPARE(curves.reserved().points.back().value, 32.0);  // no pool: a block each
  trace.append_memory({40, 0x10000, 4096, 1, 0, Kind::Reserve, 0});
  curves.update(trace);
  QCOMPARE(curves.reserved().points.back().value, 4096.0);
  QCOMPARE(curves.used().points.back().value, 32.0);
}

void TimelineTest::cardNeverCoversItsLane() {
  const QRect viewport(150, 48, 1000, 600);
  for (int y = 48; y < 600; y += 20)
    for (int x = 150; x < 1150; x += 90) {
      const QRect lane(150, y, 1000, 38);
      const QRect card = card_place({kCardWidth, 140}, viewport, lane, {x, y + 10});
      QVERIFY(!card.intersects(lane));
      QVERIFY(!card.contains(QPoint(x, y + 10)));
      QVERIFY(card.left() >= viewport.left() && card.right() <= viewport.right());
    }
}

void TimelineTest::callAndKernelArePartners() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 30);
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    if (trace.tracks()[i].kind != prof::TrackKind::Stream) continue;
    for (const prof::Span& kernel : trace.tracks()[i].blocks.back().spans) {
      const auto call = partner(trace, i, kernel);
      QVERIFY(call);
      QCOMPARE(QString::fromStdString(trace.name(call->span.name)), QString("cudaLaunchKernel"));
      QVERIFY(call->span.start < kernel.start);
      const auto back = partner(trace, call->track, call->span);
      QVERIFY(back && back->span.start == kernel.start);
    }
  }
}

void TimelineTest::graphKernelsLeadToTheirLaunch() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::GraphArena, 0, 30);
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    if (trace.tracks()[i].kind != prof::TrackKind::Stream) continue;
    const auto& spans = trace.tracks()[i].blocks.back().spans;
    const auto launch = partner(trace, i, spans[12]);
    QVERIFY(launch);
    QCOMPARE(launch->span.span_kind(), prof::SpanKind::GraphLaunch);
    QCOMPARE(launch->span.step, spans[12].step);
  }
}

void TimelineTest::gpuDuringACallIsIdleOrBusy() {
  prof::Trace trace;
  const auto a = trace.track(prof::TrackKind::Stream, "stream 1", "GPU 0"),
             b = trace.track(prof::TrackKind::Stream, "stream 2", "GPU 0");
  const auto put = [&](prof::TrackId track, prof::TimeNs start, uint64_t ns) {
    prof::Span span;
    span.start = start, span.duration = ns, span.name = trace.intern("k");
    trace.append(track, span);
  };
  put(a, 100, 100), put(b, 150, 100), put(a, 400, 50);
  const Busy busy = gpu_during(trace, {0, 500});
  QCOMPARE(busy.busy, 200);  // 100…250 once, although two streams overlap, and 400…450
  QCOMPARE(busy.idle, 300);
  QCOMPARE(gpu_during(trace, {260, 390}).busy, 0);
}

void TimelineTest::sameNameIsCountedInTheStep() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 10);
  for (const prof::Track& track : trace.tracks()) {
    if (track.kind != prof::TrackKind::Api) continue;
    const prof::Span& span = track.blocks.front().spans[1];
    QCOMPARE(QString::fromStdString(trace.name(span.name)), QString("cudaMalloc"));
    uint64_t expected = 0;
    for (const auto& block : track.blocks)
      for (const auto& s : block.spans) expected += s.name == span.name && s.step == span.step;
    QCOMPARE(same_in_step(trace, track, span).count, expected);
  }
}

void TimelineTest::stepsAreFound() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::GraphArena, 40, 3000);
  QCOMPARE(span_of_step(trace, 40)->step, 41u);
  QCOMPARE(span_of_step(trace, 2999)->step, 3000u);
  QVERIFY(!span_of_step(trace, 39));
  QVERIFY(!span_of_step(trace, 3040));
  QCOMPARE(nearest_step(trace, 99999)->step, 3040u);
  const prof::Span* step = span_of_step(trace, 1234);
  QCOMPARE(step_at(trace, step->start + 5)->step, step->step);
  QVERIFY(!span_of_step(prof::Trace{}, 0));
}

void TimelineTest::longestGapIsAGap() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 50);
  const auto gap = longest_gap(trace);
  QVERIFY(gap && gap->length() > 0);
  for (const prof::Track& track : trace.tracks())
    if (track.kind == prof::TrackKind::Stream)
      for_each_span(track, gap->begin, gap->end, [](const prof::Span&) {
        return QTest::qVerify(false, "gap", "a span in the gap", __FILE__, __LINE__);
      });
}

void TimelineTest::copyKeepsIdsAndTimes() {
  prof::Trace from, to;
  test::add_steps(from, test::StepStyle::EagerDirect, 0, 60);
  const prof::TimeNs end = from.last_time(), begin = end - 3'000'000;
  copy_trace(from, {begin, end + 1}, to);
  QVERIFY(to.span_count() > 100 && to.span_count() < from.span_count());
  QCOMPARE(to.last_time(), from.last_time());
  for (size_t i = 0; i < to.name_count(); ++i) QCOMPARE(to.name(prof::NameId(i)), from.name(prof::NameId(i)));
  QCOMPARE(to.ops.size(), from.ops.size());
}

void TimelineTest::runsAreAlignedByStep() {
  TwoRuns t;
  for (int64_t step : {100, 150, 290}) {
    t.model().alignAtStep(step);
    QCOMPARE(span_of_step(t.fast.trace, step)->start, span_of_step(t.slow.trace, step)->start - t.model().offset(1));
  }
  t.model().setAlign(Align::RunStart);
  QCOMPARE(t.model().offset(1), t.slow.trace.first_time() - t.fast.trace.first_time());
  t.fast.created = QDateTime::fromMSecsSinceEpoch(1000), t.slow.created = QDateTime::fromMSecsSinceEpoch(1004);
  t.model().setAlign(Align::Wall);
  QCOMPARE(t.model().offset(1), -4'000'000);
  QCOMPARE(t.model().offset(0), 0);
}

void TimelineTest::keysMoveTheRange() {
  TwoRuns t;
  t.view().setFocus();
  const TimeRange before = t.range();
  QTest::keyClick(&t.view(), Qt::Key_W);
  QVERIFY(t.range().length() < before.length());
  QTest::keyClick(&t.view(), Qt::Key_S);
  QVERIFY(std::abs(t.range().length() - before.length()) < before.length() / 50);
  QTest::keyClick(&t.view(), Qt::Key_D);
  QVERIFY(t.range().begin > before.begin);
  QTest::keyClick(&t.view(), Qt::Key_A);
  QTest::keyClick(&t.view(), Qt::Key_F);
  QVERIFY(t.range().begin <= t.model().extent().begin && t.range().end >= t.model().extent().end);
}

void TimelineTest::wheelZoomsAtThePointer() {
  TwoRuns t;
  const QPoint at(700, 200);
  const prof::TimeNs under = t.view().timelineGeometry().scale().time(at.x());
  const TimeRange before = t.range();
  QWheelEvent zoom(at, t.view().mapToGlobal(at), {}, {0, 240}, Qt::NoButton, Qt::ControlModifier, Qt::NoScrollPhase,
                   false);
  QApplication::sendEvent(&t.view(), &zoom);
  QVERIFY(t.range().length() < before.length() * 0.7);
  const TimeScale scale{t.range(), double(t.view().timelineGeometry().gutter),
                        double(t.view().width() - t.view().timelineGeometry().gutter)};
  QVERIFY(std::abs(scale.x(under) - at.x()) < 1.5);
  QWheelEvent pan(at, t.view().mapToGlobal(at), {}, {0, -120}, Qt::NoButton, Qt::ShiftModifier, Qt::NoScrollPhase,
                  false);
  const prof::TimeNs begin = t.range().begin;
  QApplication::sendEvent(&t.view(), &pan);
  QVERIFY(t.range().begin > begin);
}

void TimelineTest::zoomIsUndone() {
  TwoRuns t;
  const TimeRange before = t.range();
  t.view().jumpToSlowestStep();
  QVERIFY(!(t.range() == before));
  QTest::keyClick(&t.view(), Qt::Key_Backspace);
  QCOMPARE(t.range(), before);
  t.view().redoZoom();
  QVERIFY(!(t.range() == before));
  QTest::keyClick(&t.view(), Qt::Key_Left, Qt::AltModifier);
  QCOMPARE(t.range(), before);
}

void TimelineTest::aPanStopsFollowing() {
  TwoRuns t;
  t.cursor.setFollow(true);
  QTest::mousePress(&t.view(), Qt::MiddleButton, {}, {600, 200});
  QTest::mouseMove(&t.view(), {500, 200});
  QTest::mouseRelease(&t.view(), Qt::MiddleButton, {}, {500, 200});
  QVERIFY(!t.cursor.follow());
}

void TimelineTest::clickSelectsAndEscapeClears() {
  TwoRuns t;
  t.view().jumpToStep(300);
  t.selection.clear();
  const QPoint at = t.blockIn(t.lane(0, prof::TrackKind::Stream));
  QVERIFY(!at.isNull());
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, at);
  const auto* chosen = t.selection.get<SpanChoice>();
  QVERIFY(chosen);
  QCOMPARE(chosen->span.span_kind(), prof::SpanKind::Kernel);
  QVERIFY(t.view().accessibleDescription().contains("stream 7"));
  QTest::keyClick(&t.view(), Qt::Key_Escape);
  QVERIFY(!t.selection.get<SpanChoice>());
}

void TimelineTest::dragSumsARange() {
  TwoRuns t;
  QTest::mousePress(&t.view(), Qt::LeftButton, {}, {500, 300});
  QTest::mouseMove(&t.view(), {560, 300});
  QTest::mouseMove(&t.view(), {700, 300});
  QTest::mouseRelease(&t.view(), Qt::LeftButton, {}, {700, 300});
  QCOMPARE(t.selection.ranges().size(), size_t{2});
  const TimeScale scale = t.view().timelineGeometry().scale();
  const TimeRange expected{scale.time(500), scale.time(700)};
  QVERIFY(std::abs(t.selection.ranges()[0].range.begin - expected.begin) < 200);
  QVERIFY(std::abs(t.selection.ranges()[0].range.end - expected.end) < 200);
  // The handle at its right edge moves that edge alone.
  QTest::mousePress(&t.view(), Qt::LeftButton, {}, {700, 300});
  QTest::mouseMove(&t.view(), {800, 300});
  QTest::mouseRelease(&t.view(), Qt::LeftButton, {}, {800, 300});
  QVERIFY(std::abs(t.selection.ranges()[0].range.end - scale.time(800)) < 200);
  QVERIFY(std::abs(t.selection.ranges()[0].range.begin - expected.begin) < 200);
}

void TimelineTest::nextOfTheSameName() {
  TwoRuns t;
  t.view().jumpToStep(120);
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, t.blockIn(t.lane(0, prof::TrackKind::Stream)));
  const prof::Span first = t.selection.get<SpanChoice>()->span;
  QTest::keyClick(&t.view(), Qt::Key_Period);
  const prof::Span next = t.selection.get<SpanChoice>()->span;
  QCOMPARE(next.name, first.name);
  QVERIFY(next.start > first.start);
  QTest::keyClick(&t.view(), Qt::Key_Comma);
  QCOMPARE(t.selection.get<SpanChoice>()->span.start, first.start);
}

void TimelineTest::findGoesRound() {
  TwoRuns t;
  QSignalSpy said(&t.view(), &TimelineView::said);
  QVERIFY(t.view().find("dW1", true));
  const auto* chosen = t.selection.get<SpanChoice>();
  QCOMPARE(QString::fromStdString(chosen->run->trace.ops[chosen->span.op].name).contains("dW1"), true);
  QVERIFY(t.range().contains(chosen->span.start - t.model().offset(t.model().indexOf(chosen->run))));
  QVERIFY(!t.view().find("no such kernel", true));
  QCOMPARE(said.size(), 1);
  QVERIFY(t.view().find("150", true));
  QCOMPARE(t.selection.get<SpanChoice>()->span.step, 151u);
}

void TimelineTest::marksHaveNotes() {
  TwoRuns t;
  t.view().addMark();
  t.cursor.setCursor(t.range().begin + 10);
  QTest::keyClick(&t.view(), Qt::Key_M);
  QCOMPARE(t.model().marks().size(), size_t{2});
  QVERIFY(t.model().marks()[0].time < t.model().marks()[1].time);
  t.model().setNote(0, "here");
  QCOMPARE(t.model().marks()[0].note, QString("here"));
  t.model().removeMark(1);
  QCOMPARE(t.model().marks().size(), size_t{1});
}

void TimelineTest::jumpsToStepSlowestAndGap() {
  TwoRuns t;
  QVERIFY(t.view().jumpToStep(333));
  QVERIFY(t.range().contains(span_of_step(t.fast.trace, 333)->start));
  QVERIFY(!t.view().jumpToStep(5));
  t.view().jumpToSlowestStep();
  QCOMPARE(t.selection.get<SpanChoice>()->span.duration, slowest_step(t.fast.trace)->span.duration);
  t.view().jumpToLongestGap();
  QCOMPARE(t.selection.ranges()[0].range, *longest_gap(t.fast.trace));
}

void TimelineTest::hoverShowsACardAfterAWhile() {
  TwoRuns t;
  t.view().jumpToStep(300);
  const QImage before = t.view().grab().toImage();
  QTest::mouseMove(&t.view(), t.blockIn(t.lane(0, prof::TrackKind::Stream)));
  QTest::qWait(260);
  const HoverCard card = span_card(t.fast.trace, 2, t.fast.trace.tracks()[2].blocks.front().spans[5]);
  QVERIFY(card.rows.size() >= 4);
  QCOMPARE(card.title, QString("dW1"));
  QVERIFY(t.view().grab().toImage() != before);
}

void TimelineTest::foldedSpansSayTheirCount() {
  TwoRuns t;
  t.view().fit();
  bool any = false;
  for (int x = 200; x < t.view().width() && !any; ++x)
    if (const auto hit = t.view().hitAt(t.middleOf(t.lane(1, prof::TrackKind::Api), x)); hit && hit->rect.count > 1) {
      const HoverCard card = folded_card(t.slow.trace, hit->track, hit->rect, {0, 1'000'000});
      QVERIFY(card.title.contains(QString::number(hit->rect.count)));
      QVERIFY(card.title.contains("% busy"));
      any = true;
    }
  QVERIFY(any);
}

void TimelineTest::groupsFoldOnClick() {
  TwoRuns t;
  const size_t before = t.model().lanes().size();
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, {60, t.view().timelineGeometry().top() + 8});
  QVERIFY(t.model().lanes().size() < before);
  QVERIFY(t.model().lanes()[0].folded);
  const QByteArray saved = t.model().saveLanes();
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, {60, t.view().timelineGeometry().top() + 8});
  QCOMPARE(t.model().lanes().size(), before);
  t.model().restoreLanes(saved);
  QVERIFY(t.model().lanes()[0].folded);
  t.model().restoreLanes("not a state");
  QVERIFY(t.model().lanes()[0].folded);
}

void TimelineTest::followStandsStill() {
  TwoRuns t;
  t.fast.summary.reset();  // it trains again
  t.cursor.setFollow(true);
  for (int i = 0; i < 5; ++i) {
    test::add_steps(t.fast.trace, test::StepStyle::GraphArena, 500 + i * 20, 20);
    t.fast.announce();
    const TimeRange range = t.range();
    QVERIFY(range.end > t.fast.trace.last_time() - range.length());
    const prof::Span* step = step_at(t.fast.trace, range.begin + range.length() / 50);
    QVERIFY(std::abs(step->start - range.begin) < range.length() / 50);  // it begins where a step does
  }
}

void TimelineTest::freezeOutlivesTheRun() {
  std::unique_ptr<Run> kept;
  size_t spans = 0;
  {
    TwoRuns t;
    kept = t.model().freeze(0, 0.004);
    spans = t.fast.trace.span_count();
  }
  QVERIFY(kept->trace.span_count() > 0 && kept->trace.span_count() < spans);
  QVERIFY(kept->trace.last_time() - kept->trace.first_time() < 4'200'000);
  QVERIFY(kept->title.contains("kept"));
}

void TimelineTest::changingRunsDropsTheOld() {
  TwoRuns t;
  t.pane.setRuns({&t.slow});
  QCOMPARE(t.model().runCount(), size_t{1});
  t.view().grab();
  t.pane.setRuns({});
  QCOMPARE(t.model().lanes().size(), size_t{0});
  t.view().grab();
  {
    Run gone;
    test::add_steps(gone.trace, test::StepStyle::Persistent, 0, 10);
    t.pane.setRuns({&gone});
    QVERIFY(t.model().lanes().size() > 2);
  }
  QCOMPARE(t.model().runCount(), size_t{0});
  t.view().grab();
}

void TimelineTest::aTraceThatComesLaterIsShown() {
  TwoRuns t;
  Run late;
  late.id = "late", late.summary = Summary{};
  t.pane.setRuns({&late});
  test::add_steps(late.trace, test::StepStyle::GraphArena, 7000, 500);
  late.announce();
  const TimeRange range = t.range();
  QVERIFY(range.begin > 0 && range.end <= late.trace.last_time() + range.length() / 2);
  QVERIFY(range.contains(late.trace.last_time() - range.length() / 2));
  t.pane.setRuns({});
}

void TimelineTest::everyPixelIsPainted() {
  TwoRuns t;
  QImage image(t.view().size(), QImage::Format_ARGB32);
  image.fill(Qt::transparent);
  t.view().render(&image, {}, {}, QWidget::RenderFlags{});
  for (int y = 0; y < image.height(); y += 3)
    for (int x = 0; x < image.width(); x += 3) QCOMPARE(qAlpha(image.pixel(x, y)), 255);
}

QTEST_MAIN(TimelineTest)
#include "timeline_test.moc"
