// What the pure parts of the timeline say: scale, labels, lanes, curves, questions to a trace.
#include <QTest>
#include <numeric>

#include "app/widgets/theme.h"
#include "app/timeline/timeline_pane.h"
#include "profiling/trace/thread_names.h"
#include "profiling/trace/track_names.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;

namespace {
double seven_a_letter(const QString& text) { return 7.0 * static_cast<double>(text.size()); }
}  // namespace

class TimelinePartsTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void zoomKeepsItsAnchor();
  void zoomStopsAtItsLimits();
  void rulerTicksAreRoundAndInOrder();
  void rulerTicksAreSmall();
  void longestLabelThatFits();
  void aLongNameIsMeasuredAFewTimes();
  void ellipsisKeepsSixLetters();
  void kernelNamesAreShortened();
  void lanesStandInOrder();
  void twoRunsShareALowTimeline();
  void layersStandAboveTheirWork();
  void streamsStandByTheirNumbers();
  void callsOfTwoThreadsAreDistinct();
  void threadsAreNamedByWhatTheyDo();
  void aRowInsideAnotherNeedsNoName();
  void ranksThatDoNotNumberTheirSteps();
  void ranksComeBeforeTheCallsOfAll();
  void filterFoldPinAndOrder();
  void rowsGrowInOrder();
  void curvesThatDoNotFitGetLowOrFold();
  void poolsHaveALaneOfTheirOwn();
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
};

void TimelinePartsTest::zoomKeepsItsAnchor() {
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

void TimelinePartsTest::zoomStopsAtItsLimits() {
  TimeRange range{0, 1000};
  for (int i = 0; i < 60; ++i) range = zoomed(range, 500, 0.5);
  QCOMPARE(range.length(), kShortestRange);
  for (int i = 0; i < 120; ++i) range = zoomed(range, 500, 2);
  QCOMPARE(range.length(), kLongestRange);
}

void TimelinePartsTest::rulerTicksAreRoundAndInOrder() {
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

// Wherever the view lies, no tick is as much as 1000 of its unit: also where it crosses a round second.
void TimelinePartsTest::rulerTicksAreSmall() {
  const auto labels = [](prof::TimeNs begin, prof::TimeNs length) {
    const Ruler r = ruler({{begin, begin + length}, 150, 1000}, 78);
    QStringList all{r.base_text};
    for (const Ruler::Tick& tick : r.ticks) all << tick.text;
    return all.join(' ');
  };
  QCOMPARE(labels(7'965'000'000, 50'000'000), QString("t = 7.96 s 5 ms 10 15 20 25 30 35 40 45 50"));
  QCOMPARE(labels(7'120'000'000, 50'000'000), QString("t = 7.12 s 0 ms 5 10 15 20 25 30 35 40 45"));
  QCOMPARE(labels(7'120'000'000, 2'400'000), QString("t = 7.120 s 0.0 ms 0.2 0.4 0.6 0.8 1.0 1.2 1.4 1.6 1.8 2.0 2.2"));
  QCOMPARE(labels(7'300'000'000, 5'000'000'000), QString("t = 7 s 0.5 s 1.0 1.5 2.0 2.5 3.0 3.5 4.0 4.5 5.0"));
  for (const prof::TimeNs length : {350LL, 47'000LL, 880'000LL, 999'000LL, 3'300'000LL, 940'000'000LL, 999'000'000LL})
    for (prof::TimeNs begin = 999'999'000'000 - 3 * length; begin < 1'000'001'000'000 + length; begin += length / 3 + 1) {
      const Ruler r = ruler({{begin, begin + length}, 150, 1000}, 78);
      for (const Ruler::Tick& tick : r.ticks) QVERIFY2(QString(tick.text).remove(" ns").remove(" µs").remove(" ms").remove(" s").toDouble() < 1000, qPrintable(r.base_text + " " + tick.text));
    }
}

void TimelinePartsTest::longestLabelThatFits() {
  const BlockNames names{"cudaMalloc", "malloc", ""};
  QCOMPARE(fitting_label(names, 78, seven_a_letter), QString("cudaMalloc"));
  QCOMPARE(fitting_label(names, 77, seven_a_letter), QString("malloc"));
  QCOMPARE(fitting_label({"cudaMalloc", "", ""}, 77, seven_a_letter), QString("cudaMall…"));
  QCOMPARE(fitting_label(names, 60, seven_a_letter), QString("malloc"));
  QCOMPARE(fitting_label(names, 40, seven_a_letter), QString());
  QCOMPARE(fitting_label({"softmax cross entropy", "", "fc1"}, 30, seven_a_letter), QString("fc1"));
}

void TimelinePartsTest::aLongNameIsMeasuredAFewTimes() {
  int times = 0;
  const QString label = fitting_label({QString(5000, 'a'), "", ""}, 100, [&](const QString& s) { ++times; return seven_a_letter(s); });
  QCOMPARE(label, QString(12, 'a') + QChar(0x2026));
  QVERIFY2(times < 10, qPrintable(QString::number(times)));
}

void TimelinePartsTest::ellipsisKeepsSixLetters() {
  const BlockNames names{"broadcast_bias_relu", "", ""};
  for (int width = 0; width < 160; ++width) {
    const QString label = fitting_label(names, width, seven_a_letter);
    QVERIFY2(label.isEmpty() || seven_a_letter(label) + 8 <= width, qPrintable(label));
    if (label.endsWith(QChar(0x2026))) QVERIFY(width > 62 && label.size() >= 7);
  }
}

void TimelinePartsTest::kernelNamesAreShortened() {
  QCOMPARE(short_kernel_name("void ws::softmax<float, 4>(float const*, int)"), QString("softmax"));
  QCOMPARE(short_kernel_name("void cutlass::Kernel<cutlass::gemm::sm90_gemm<int>>(Params)"), QString("sm90_gemm"));
  QCOMPARE(short_kernel_name("ampere_sgemm_64x64_nn"), QString("ampere_sgemm_64x64_nn"));
  QCOMPARE(short_call_name("cudaMallocAsync"), QString("malloc"));
  QCOMPARE(short_call_name("cudaDeviceSynchronize"), QString("sync"));
}

void TimelinePartsTest::streamsStandByTheirNumbers() {
  prof::Trace trace;
  for (const int number : {100, 14, 7, 20, 0, 1}) {
    const prof::TrackId stream = trace.track(prof::TrackKind::Stream, "stream " + std::to_string(number), "GPU 0");
    for (int i = 0; i < 50; ++i) trace.append(stream, prof::Span{.start = i * 20'000, .duration = 9000});
  }
  QStringList titles;
  for (const Lane& lane : build_lanes({{&trace, "run/x", "x", 0}}, {.quiet_rows = true})) titles << lane.title;
  titles.removeFirst();
  QCOMPARE(titles, QStringList({"stream 0", "stream 1", "stream 7", "stream 14", "stream 20", "stream 100"}));
}

void TimelinePartsTest::callsOfTwoThreadsAreDistinct() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 20);
  const prof::TrackId second = trace.track(prof::TrackKind::Api, "thread 2 calls", "CPU");
  for (int i = 0; i < 200; ++i)
    trace.append(second, prof::Span{.start = 100'000 + i * 20'000,
                                    .duration = 9000,
                                    .kind = static_cast<uint64_t>(prof::SpanKind::Api)});
  QStringList titles;
  for (const Lane& lane : build_lanes({{&trace, "run/x", "x", 0}}, {})) titles << lane.title;
  QVERIFY2(titles.contains("CUDA API") && titles.contains("CUDA API · thread 2"), qPrintable(titles.join(", ")));
}

namespace {

// A main thread, whose backward pass runs on a thread without a known name, and a third thread with calls.
prof::Trace made_threads() {
  prof::Trace trace;
  for (const char* phase : {"forward", "backward"}) {
    prof::OpInfo op;
    op.name = "fc1", op.phase = phase;
    trace.ops.push_back(op);
  }
  const auto backward = static_cast<prof::OpTag>(trace.ops.size() - 1), forward = static_cast<prof::OpTag>(backward - 1);
  const auto add = [&trace](prof::TrackKind kind, const char* name, int depth, prof::OpTag op) {
    const prof::TrackId row = trace.track(kind, name, "CPU", depth);
    for (int i = 0; i < 200; ++i) trace.append(row, prof::Span{.start = 100'000 + i * 20'000, .duration = 9000, .op = op});
  };
  for (const int depth : {0, 1, 2}) add(prof::TrackKind::Ranges, "thread 4300 ranges", depth, forward);
  for (const int depth : {0, 1}) add(prof::TrackKind::Ranges, "thread 4322 ranges", depth, backward);
  add(prof::TrackKind::Api, "thread 4300 calls", 0, forward);
  add(prof::TrackKind::Api, "thread 4322 calls", 0, backward);
  add(prof::TrackKind::Api, "thread 4323 calls", 0, prof::kNoOp);
  return trace;
}

const Lane* titled(const std::vector<Lane>& lanes, const QString& title) {
  const auto found = std::ranges::find(lanes, title, &Lane::title);
  return found == lanes.end() ? nullptr : &*found;
}

}  // namespace

void TimelinePartsTest::threadsAreNamedByWhatTheyDo() {
  const prof::Trace trace = made_threads();
  const auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {.quiet_rows = true});
  for (const char* title : {"main thread", "inside main thread", "inside main thread, level 2", "backward thread", "inside backward thread", "CUDA API", "CUDA API · backward", "CUDA API · thread 3"})
    QVERIFY2(titled(lanes, QString::fromUtf8(title)), title);
  QVERIFY(titled(lanes, "backward thread")->tip.contains("autograd"));
  const std::pair<const char*, const char*> rows[] = {{"thread 4322 calls", "CUDA API · backward"}, {"thread 4300 calls", "CUDA API"}, {"thread 4323 calls", "CUDA API · thread 3"}};
  for (const prof::Track& track : trace.tracks())
    for (const auto& [name, title] : rows)
      if (track.name == name) QCOMPARE(prof::row_title(trace, track), std::string(title));
}

void TimelinePartsTest::aRowInsideAnotherNeedsNoName() {
  const prof::Trace trace = made_threads();
  const auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {.quiet_rows = true});
  for (const char* title : {"inside main thread", "inside main thread, level 2", "inside backward thread"}) QVERIFY2(titled(lanes, title)->nested, title);
  QVERIFY(!titled(lanes, "main thread")->nested && !titled(lanes, "backward thread")->nested);
  const auto some = build_lanes({{&trace, "run/x", "x", 0}}, {.filter = "inside level"});
  QVERIFY2(!titled(some, "inside main thread, level 2")->nested, "the row above it is another one");
}

// What two steps are compared by stays of each run.
void TimelinePartsTest::twoRunsShareALowTimeline() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 20);
  LaneSource baseline{&trace, "run/a", "baseline", 0}, current{&trace, "run/b", "current", 1};
  const auto groups = [](const std::vector<Lane>& lanes) {
    QStringList titles;
    for (const Lane& lane : lanes)
      if (lane.kind == LaneKind::Group && lane.run >= 0) titles << lane.title;
    return titles;
  };
  auto whole = build_lanes({baseline, current}, {.small = true}), tight = build_lanes({baseline, current}, {.small = true, .tight = 2});
  QCOMPARE(groups(whole), QStringList({"baseline", "current"}));
  QCOMPARE(groups(tight), QStringList({"baseline", "current"}));
  QVERIFY(place_lanes(tight, 0) < place_lanes(whole, 0));
  for (const int run : {0, 1})
    for (const prof::TrackKind kind : {prof::TrackKind::Steps, prof::TrackKind::Stream, prof::TrackKind::Api})
      QVERIFY(std::ranges::any_of(tight, [&](const Lane& lane) { return lane.run == run && lane.track_kind == kind; }));
  QVERIFY(std::ranges::none_of(tight, [](const Lane& lane) { return lane.kind == LaneKind::Spans && lane.track_kind == prof::TrackKind::Phases; }));
}

void TimelinePartsTest::lanesStandInOrder() {
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

// Two steps of embed, two blocks and the loss, 100 ns each.
void TimelinePartsTest::layersStandAboveTheirWork() {
  prof::Trace trace;
  const prof::TrackId track = trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0", 0);
  const std::tuple<const char*, const char*> work[] = {{"embed1", "forward"}, {"ln2", "forward"},  {"attn3", "forward"}, {"attn3", "forward"},
                                                       {"ln4", "forward"},    {"", "loss"},        {"ln4", "backward"},  {"attn3", "backward"},
                                                       {"ln2", "backward"},   {"embed1", "update"}, {"ln2", "update"}};
  for (const auto& [layer, phase] : work) {
    prof::OpInfo op;
    op.name = "op", op.layer = layer, op.phase = phase;
    trace.ops.push_back(op);
  }
  for (int i = 0; i < 22; ++i) {
    prof::Span span{.start = 100 * i, .duration = 90};
    span.op = static_cast<prof::OpTag>(i % 11 + 1), span.step = static_cast<uint32_t>(i / 11 + 1);
    trace.append(track, span);
  }
  const auto texts = [](const std::vector<LayerBlock>& blocks) {
    QStringList all;
    for (const LayerBlock& b : blocks) all << QString("%1 %2-%3").arg(QString::fromStdString(b.name)).arg(b.start).arg(b.end);
    return all;
  };
  const auto layers = layer_blocks(trace, {0}, {0, 1100}, {}, 1000);
  QCOMPARE(texts(layers), QStringList({"embed1 0-90", "ln2 100-190", "attn3 200-390", "ln4 400-490", "loss 500-590", "ln4 600-690",
                                       "attn3 700-790", "ln2 800-890", "update 900-1090"}));
  const LayerParts parts{{"ln2", "block 1"}, {"attn3", "block 1"}, {"ln4", "block 2"}};
  QCOMPARE(texts(layer_blocks(trace, {0}, {0, 1100}, {parts, true}, 1000)),
           QStringList({"block 1 100-390", "block 2 400-490", "block 2 600-690", "block 1 700-890"}));
  const LayerParts folded{{"ln2", "block 1"}, {"attn3", "block 1"}};
  const auto some = layer_blocks(trace, {0}, {0, 1100}, {folded, false}, 1000);
  QCOMPARE(texts(some), QStringList({"embed1 0-90", "block 1 100-390", "ln4 400-490", "loss 500-590", "ln4 600-690", "block 1 700-890",
                                     "update 900-1090"}));
  QVERIFY(some[1].block && !some[2].block);
  QVERIFY(layer_blocks(trace, {0}, {0, 2200}, {}, 10).empty());  // too many to be seen
  QCOMPARE(layer_blocks(trace, {0}, {0, 2200}, {}, 1000).size(), size_t(18));
  LaneSource source{&trace, "run/x", "x", 0};
  source.layers = true, source.parts = parts;
  QStringList titles;
  for (const Lane& lane : build_lanes({source}, {})) titles << lane.title;
  QCOMPARE(titles, QStringList({"x", "block", "layer", "stream 7"}));
  prof::Trace cpu;  // the lane of layers is no second thread: the only one needs no number
  cpu.ops = trace.ops;
  for (int i = 0; i < 11; ++i)
    cpu.append(cpu.track(prof::TrackKind::CpuThread, "thread 14158", "CPU"),
               {.start = 100 * i, .duration = 90, .op = static_cast<prof::OpTag>(i + 1), .step = 1});
  source.trace = &cpu, titles.clear();
  for (const Lane& lane : build_lanes({source}, {})) titles << lane.title;
  QCOMPARE(titles, QStringList({"x", "block", "layer", "CPU ops"}));
  source.trace = &trace;
  source.parts.clear(), source.layers = false;
  titles.clear();
  for (const Lane& lane : build_lanes({source}, {})) titles << lane.title;
  QCOMPARE(titles, QStringList({"x", "stream 7"}));
}

// The second thread of a training does not number its steps. Its kernels of preparation share a row nevertheless, its
// communication does not; and a rank's summary shows below what mostly communicates.
void TimelinePartsTest::ranksThatDoNotNumberTheirSteps() {
  prof::Trace trace;
  const auto add = [&trace](int rank, const char* stream, int depth, int spans, prof::Meaning meaning, bool numbered) {
    const prof::TrackId track =
        trace.track(prof::TrackKind::Stream, stream, "GPU " + std::to_string(rank), depth, rank);
    for (int i = 0; i < spans; ++i) {
      prof::Span span{.start = i * 20'000, .duration = 9000};
      span.meaning = static_cast<uint64_t>(meaning), span.step = numbered ? static_cast<uint32_t>(i + 1) : 0;
      trace.append(track, span);
    }
  };
  for (const int rank : {0, 1}) {
    add(rank, "stream 7", 0, 100, prof::Meaning::Matrix, rank == 0);
    add(rank, "stream 7", 1, 30, prof::Meaning::Communication, rank == 0);
    add(rank, "stream 8", 0, 20, prof::Meaning::Communication, rank == 0);
    add(rank, "stream 9", 0, 20, prof::Meaning::Matrix, false);
  }
  QStringList titles;
  for (const Lane& lane : build_lanes({{&trace, "run/x", "x", 0}}, {})) titles << lane.title;
  titles.removeFirst();
  QCOMPARE(titles, QStringList({"rank 0", "stream 7", "stream 8", "1 more row", "rank 1", "stream 7", "stream 8",
                                "1 more row"}));
  LaneSettings settings;
  settings.folded.insert("run/x/rank 1");
  const auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, settings);
  const Lane& summary = lanes.back();
  QVERIFY(summary.folded);
  QCOMPARE(summary.tracks.size(), size_t{4});
  QCOMPARE(summary.upper, size_t{2});
  for (const size_t track : summary.tracks)
    QCOMPARE(row_in(summary, track).top > 0, trace.tracks()[track].time_of(prof::Meaning::Communication) > 0);
}

void TimelinePartsTest::ranksComeBeforeTheCallsOfAll() {
  prof::Trace trace;
  const auto add = [&trace](prof::TrackKind kind, const char* name, int rank) {
    const prof::TrackId track = trace.track(kind, name, "CPU", 0, rank);
    for (int i = 0; i < 20; ++i) trace.append(track, {.start = i * 20'000, .duration = 9000, .step = static_cast<uint32_t>(i + 1)});
  };
  add(prof::TrackKind::Api, "thread 1", -1);
  add(prof::TrackKind::Steps, "steps", -1);
  for (const int rank : {0, 1}) add(prof::TrackKind::Stream, "stream 7", rank);
  const std::vector<LaneSource> sources{{&trace, "run/x", "x", 0}};
  const auto titles = [&sources](const LaneSettings& settings) {
    QStringList all;
    for (const Lane& lane : build_lanes(sources, settings)) all << lane.title;
    return all;
  };
  const QStringList whole{"x", "step", "rank 0", "stream 7", "rank 1", "stream 7", "all ranks", "CUDA API"};
  LaneSettings settings;
  QCOMPARE(titles(settings), whole);
  settings.small = true;
  QCOMPARE(titles(settings), QStringList({"x", "step", "rank 0", "rank 1", "all ranks", "CUDA API"}));
  settings.folded.insert(build_lanes(sources, settings)[2].key);
  QCOMPARE(titles(settings), QStringList({"x", "step", "rank 0", "stream 7", "rank 1", "all ranks", "CUDA API"}));
  settings.small = false;  // what was opened stays open
  QCOMPARE(titles(settings), whole);

  prof::Trace collectives;  // without kernels
  for (const int rank : {0, 1}) {
    prof::Span span{.start = 0, .duration = 9000};
    span.meaning = static_cast<uint64_t>(prof::Meaning::Communication);
    collectives.append(collectives.track(prof::TrackKind::Collectives, "collectives", "GPU 0", 0, rank), span);
  }
  settings.small = true;
  const auto lanes = build_lanes({{&collectives, "run/y", "y", 0}}, settings);
  QCOMPARE(lanes.size(), size_t{3});
  QVERIFY(lanes[2].kind == LaneKind::Spans && lanes[2].folded && lanes[2].tracks.size() == 1);
}

void TimelinePartsTest::filterFoldPinAndOrder() {
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

// A pool is a part of the memory that the calls tell of; where a profiler counted all of it, those are its totals.
void TimelinePartsTest::curvesThatDoNotFitGetLowOrFold() {
  Run run;
  test::add_steps(run.trace, test::StepStyle::EagerDirect, 0, 60);
  run.loaded = true;
  TimeCursor cursor;
  TimelineModel model(&cursor);
  model.setRuns({&run});
  model.setViewport(2000, false);
  const auto memory = [&model] { return titled(model.lanes(), "memory"); };
  QVERIFY(memory() && !memory()->flat);
  const int all = std::accumulate(model.lanes().begin(), model.lanes().end(), 0, [](int sum, const Lane& lane) { return sum + lane.height; });
  std::vector<Lane> low = model.lanes();
  const int least = least_height(low);
  QVERIFY(least < all);
  QCOMPARE(place_lanes(low, all - 10), all - 10);
  QVERIFY(titled(low, "memory")->height < memory()->height);

  const auto section = [&model] { return titled(model.lanes(), "Counters and memory"); };
  model.setViewport(120, false);
  QVERIFY2(section()->folded && !memory(), "nothing is cut");
  model.toggleFolded(section()->key);
  QVERIFY2(!section()->folded && memory(), "the user opens it");
  model.setViewport(2000, false);
  QVERIFY(!section()->folded && memory());
}

void TimelinePartsTest::poolsHaveALaneOfTheirOwn() {
  prof::Trace trace;
  trace.memory_sources = {"cudaMallocAsync"};
  for (const char* name : {"device memory used", "pool reserved", "pool used"})
    trace.append_counter(trace.counter(name, "B", prof::kind_of_counter(name, "B")), {100, 4096});
  const auto curves = [&](const char* title, bool allocations) {
    const auto lanes = build_lanes({{&trace, "run/x", "x", 0, allocations}}, {});
    const auto lane = std::ranges::find(lanes, QString(title), &Lane::title);
    std::vector<size_t> counters;
    if (lane != lanes.end())
      for (const CounterRef& ref : lane->counters) counters.push_back(ref.counter);
    return counters;
  };
  using Curves = std::vector<size_t>;
  QCOMPARE(curves("memory", true), (Curves{kUsedCurve, kReservedCurve}));
  QCOMPARE(curves("pool", true), (Curves{1, 2}));
  QCOMPARE(curves("memory", false), (Curves{1, 2}));
  QCOMPARE(curves("pool", false), Curves());
  for (const char* name : {"memory reserved", "memory used"})  // a profiler counted all of it
    trace.append_counter(trace.counter(name, "B", prof::kind_of_counter(name, "B")), {100, 8192});
  QCOMPARE(curves("memory", true), (Curves{3, 4}));
  QCOMPARE(curves("pool", true), (Curves{1, 2}));
}

// More space goes to the kernels before it goes to memory, and to nobody once it helps nobody.
void TimelinePartsTest::rowsGrowInOrder() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 5);
  const auto usual = build_lanes({{&trace, "run/x", "x", 0}}, {});
  const auto height = [](const std::vector<Lane>& lanes, const char* title) {
    return std::ranges::find(lanes, QString(title), &Lane::title)->height;
  };
  auto lanes = usual;
  const int needed = place_lanes(lanes, 0);
  QCOMPARE(height(lanes, "stream 7"), height(usual, "stream 7"));
  lanes = usual;
  QCOMPARE(place_lanes(lanes, needed + 30), needed + 30);
  QCOMPARE(height(lanes, "stream 7"), height(usual, "stream 7") + 30);
  QCOMPARE(height(lanes, "memory"), height(usual, "memory"));
  lanes = usual;
  const int most = place_lanes(lanes, 5000);
  QVERIFY2(most > needed + 100 && most < 700, qPrintable(QString::number(most)));
  QCOMPARE(height(lanes, "memory"), kMostMemory);
  QVERIFY(height(lanes, "stream 7") > 2 * height(usual, "stream 7"));
  for (size_t i = 1; i < lanes.size(); ++i) QCOMPARE(lanes[i].y, lanes[i - 1].bottom());
  for (int y = 0; y < most; ++y) {
    const int at = lane_at(lanes, y);
    QVERIFY(at >= 0 && lanes[size_t(at)].y <= y && y < lanes[size_t(at)].bottom());
  }
  QCOMPARE(lane_at(lanes, most), -1);
}

void TimelinePartsTest::manyBlocksShowSome() {
  prof::Trace trace;
  prof::Span span;
  span.duration = 10, span.name = trace.intern("fc1");
  for (int block = 0; block < 132; ++block)
    trace.append(trace.track(prof::TrackKind::Inner, "SM " + std::to_string(100 + block), "GPU 0"), span);
  const auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {});
  QCOMPARE(lanes.size(), size_t{5});
  QVERIFY(lanes[1].title.contains("of 132"));
  LaneSettings settings;
  settings.filter = "sm";
  QCOMPARE(build_lanes({{&trace, "run/x", "x", 0}}, settings).size(), size_t{133});
  settings.filter = "sm 117";
  QCOMPARE(build_lanes({{&trace, "run/x", "x", 0}}, settings).size(), size_t{2});
}

void TimelinePartsTest::allocationsBecomeCurves() {
  using Kind = prof::MemoryAction;
  prof::Trace trace;
  prof::MemoryCurves curves;
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
  const auto key = [&] { return build_lanes({{.trace = &trace, .key = "run/x", .title = "x", .allocations = true, .memory = curves.lines()}}, {}).back().detail; };
  QCOMPARE(key(), QString("line: used"));
  trace.append_memory({40, 0x10000, 4096, 1, 0, Kind::Reserve, 0});
  curves.update(trace);
  QCOMPARE(curves.reserved().points.back().value, 4096.0);
  QCOMPARE(curves.used().points.back().value, 32.0);
  QCOMPARE(key(), QString("solid: reserved\ndotted: used"));
  prof::Trace arena;
  arena.append_memory({10, 0x10000, 4096, 1, 0, Kind::Reserve, 0});
  prof::MemoryCurves block;
  block.update(arena);
  QVERIFY(block.lines() == prof::MemoryLines::Reserved);
}

void TimelinePartsTest::cardNeverCoversItsLane() {
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

void TimelinePartsTest::callAndKernelArePartners() {
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

void TimelinePartsTest::graphKernelsLeadToTheirLaunch() {
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

void TimelinePartsTest::gpuDuringACallIsIdleOrBusy() {
  prof::Trace trace;
  const auto a = trace.track(prof::TrackKind::Stream, "stream 1", "GPU 0"),
             b = trace.track(prof::TrackKind::Stream, "stream 2", "GPU 0");
  const auto put = [&](prof::TrackId track, prof::TimeNs start, uint64_t ns) {
    prof::Span span;
    span.start = start, span.duration = ns, span.name = trace.intern("k");
    trace.append(track, span);
  };
  put(a, 100, 100), put(b, 150, 100), put(a, 400, 50);
  const prof::Busy busy = gpu_during(trace, {0, 500});
  QCOMPARE(busy.busy, 200);  // 100…250 once, although two streams overlap, and 400…450
  QCOMPARE(busy.idle, 300);
  QCOMPARE(gpu_during(trace, {260, 390}).busy, 0);
}

void TimelinePartsTest::sameNameIsCountedInTheStep() {
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

void TimelinePartsTest::stepsAreFound() {
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

void TimelinePartsTest::longestGapIsAGap() {
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

void TimelinePartsTest::copyKeepsIdsAndTimes() {
  prof::Trace from, to;
  test::add_steps(from, test::StepStyle::EagerDirect, 0, 60);
  const prof::TimeNs end = from.last_time(), begin = end - 3'000'000;
  copy_trace(from, {begin, end + 1}, to);
  QVERIFY(to.span_count() > 100 && to.span_count() < from.span_count());
  QCOMPARE(to.last_time(), from.last_time());
  for (size_t i = 0; i < to.name_count(); ++i) QCOMPARE(to.name(prof::NameId(i)), from.name(prof::NameId(i)));
  QCOMPARE(to.ops.size(), from.ops.size());
}

WARPSIGHT_QTEST(TimelinePartsTest)
#include "timeline_parts_test.moc"
