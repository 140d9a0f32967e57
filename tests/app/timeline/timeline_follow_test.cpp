// What the timeline shows while a run trains and once it has ended: the newest steps whose records are all in.
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "app/widgets/theme.h"
#include "app/workspace/step_split.h"
#include "app/workspace/last_seconds.h"
#include "app/workspace/run_loader.h"
#include "tests/app/support/two_runs.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

namespace {

using prof::SpanKind;
using prof::TimeNs;
using prof::TrackKind;

constexpr TimeNs kStep = 18'000;  // on the GPU; the host marks one in a ninth of that

prof::Span span_at(prof::Trace& trace, TimeNs start, TimeNs ns, SpanKind kind, const char* name, uint32_t step) {
  prof::Span span;
  span.start = start, span.duration = static_cast<uint64_t>(ns), span.kind = static_cast<uint64_t>(kind);
  span.name = trace.intern(name), span.step = step;
  return span;
}

// A graph of sixteen steps at a time: the host marks each in no time, the GPU takes its own.
struct AheadRun {
  Run run;
  TimeNs host = 1'000'000, gpu = 1'050'000;
  uint32_t marked = 0, done = 0;

  AheadRun() {
    run.id = "ahead", run.title = "graph", run.slot = 0;
    run.spec.exec.launch = Launch::Graph;
    run.trace.ops.push_back({"fc1", "", "fc1", "forward", prof::Meaning::Matrix, 0, 0});
    run.trace.ops.push_back({"dW", "", "fc1", "update", prof::Meaning::Optimizer, 0, 0});
  }
  void markOnHost(int graphs) {
    const auto steps = run.trace.track(TrackKind::Steps, "steps", "CPU");
    for (int i = 0; i < graphs; ++i, host += 33'000, marked += 16)
      run.trace.append(steps, span_at(run.trace, host, 32'000, SpanKind::Step, "step", marked + 1));
  }
  void runOnGpu(int steps) {
    const auto stream = run.trace.track(TrackKind::Stream, "stream 13", "GPU 0"),
               below = run.trace.track(TrackKind::Stream, "stream 13", "GPU 0", 1);
    for (int i = 0; i < steps; ++i, gpu += kStep) {
      ++done;
      auto first = span_at(run.trace, gpu, 9'000, SpanKind::Kernel, "gemm", done);
      auto second = span_at(run.trace, gpu + 8'000, 9'500, SpanKind::Kernel, "update", done);
      first.op = 1, second.op = 2;
      run.trace.append(stream, first), run.trace.append(below, second);
    }
  }
  void update() { run.apply(RunUpdate{}); }
  void end() {
    RunUpdate last;
    last.summary = Summary{};
    run.apply(std::move(last));
  }
};

size_t kernels_in(const prof::Trace& trace, TimeRange range) {
  size_t count = 0;
  for (const prof::Track& track : trace.tracks())
    if (track.kind == TrackKind::Stream)
      for_each_span(track, range.begin, range.end, [&](const prof::Span&) { ++count; return true; });
  return count;
}

}  // namespace

class TimelineFollowTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void followStandsStill();
  void freezeOutlivesTheRun();
  void aTraceThatComesLaterIsShown();
  void oldBlocksOfThisSessionComeBack();
  void stepsOfTheGpuComeFromItsKernels();
  void recordsArriveLate();
  void kernelsAreAlwaysInView();
  void theEndShowsTheLastSteps();
  void theShownRunLeads();
  void theOneShownIsReadLater();
  void theFirstRunIsReadLast();
  void aPauseOfTracingIsNotShown();
  void endedRunsLieOverEachOther();
  void quietRowsShareOne();
  void stacksOfWaitingThreadsAreQuiet();
  void rangesOfTheFirstStepsAreQuiet();
  void constantAndEmptyRowsTakeNoSpace();
  void overlappingKernelsAreOneRow();
  void evaluationIsNoPartOfAStep();
  void marksStayWithTheRun();
  void lanesComeBack();
  void aRunWithoutStepsIsShownWhole();
};

// Stacks of a Python program, a tenth of a second each: nothing shows how long a step takes.
void TimelineFollowTest::aRunWithoutStepsIsShownWhole() {
  Run run;
  run.id = "plain", run.title = "plain.py", run.slot = 0, run.loaded = true;
  const auto row = run.trace.track(TrackKind::CpuThread, "MainThread", "stacks");
  const auto add = [&] {
    for (int i = 0; i < 100; ++i)
      run.trace.append(row, span_at(run.trace, run.trace.last_time(), 100'000'000, SpanKind::Op, "<module>", 0));
  };
  add();
  TimeCursor cursor;
  TimelineModel model(&cursor);
  cursor.setFollow(true);
  model.setRuns({&run});
  const TimeRange live = model.range();
  QVERIFY(live.length() > 1'000'000'000 && live.length() < 5'000'000'000);
  run.summary = Summary{};
  run.announce();
  const TimeRange whole = model.range();
  QVERIFY(whole.begin <= run.trace.first_time() && whole.end >= run.trace.last_time());
}

void TimelineFollowTest::followStandsStill() {
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

void TimelineFollowTest::freezeOutlivesTheRun() {
  prof::RunData kept;
  size_t spans = 0;
  {
    TwoRuns t;
    kept = with_spans(last_seconds(t.fast, 0.004));
    spans = t.fast.trace.span_count();
  }
  QVERIFY(kept.trace.span_count() > 0 && kept.trace.span_count() < spans);
  QVERIFY(kept.trace.last_time() - kept.trace.first_time() < 4'200'000);
  QCOMPARE(kept.summary.name, std::string("graph · arena · last 0.004 s"));
}

void TimelineFollowTest::aTraceThatComesLaterIsShown() {
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

// A run of this session keeps a part of its history in memory; what somebody looks at comes back from the file that is
// still being written, and stays while more arrives.
void TimelineFollowTest::oldBlocksOfThisSessionComeBack() {
  QTemporaryDir folder;
  Run run;
  run.path = folder.filePath("live.wsrun"), run.history_bytes = 1 << 20;
  const auto batch = [](int number) {
    prof::BatchBuilder builder;
    auto& row = builder.row(TrackKind::Stream, "stream 7", "GPU 0");
    for (int i = 0; i < 2000; ++i) {
      prof::Span span;
      span.start = (number * 2000 + i) * 1000, span.duration = 600;
      span.name = builder.id(builder.name("kernel " + std::to_string(i % 5)));
      row.spans.push_back(span);
    }
    return builder.finish();
  };
  prof::RunFileWriter writer(run.path.toStdString(), {});
  int number = 0;
  const auto go_on = [&](int batches) {
    for (int i = 0; i < batches; ++i, ++number) {
      writer.add(batch(number));
      writer.flush();
      RunUpdate update;
      update.traces.push_back(batch(number));
      run.apply(std::move(update));
    }
  };
  go_on(50);
  QVERIFY(run.live());
  const prof::Track& track = run.trace.tracks()[0];
  QVERIFY(track.blocks.size() > 90 && !track.blocks[3].resident());
  QVERIFY(run.trace.resident_bytes() < run.history_bytes * 3 / 2);
  const TimeRange old{3'000'000, 9'000'000};
  LaneCache cache;
  const size_t folded = cache.rects(run.trace, 0, old, 1000).size();
  while (run.fetch(old.begin, old.end)) {
  }
  QVERIFY(prof::in_memory(track, old.begin, old.end));
  QVERIFY2(cache.rects(run.trace, 0, old, 1000).size() > 10 * folded, "the picture is that of before");
  QCOMPARE(prof::sum_by_name(track, old.begin, old.end).size(), size_t{5});
  QCOMPARE(QString::fromStdString(run.trace.name(track.blocks[4].spans[2].name)).left(6), QString("kernel"));
  go_on(30);
  QVERIFY2(prof::in_memory(track, old.begin, old.end), "what is looked at was dropped again");
  QVERIFY(run.trace.resident_bytes() < run.history_bytes * 3 / 2);
  QCOMPARE(run.trace.losses.evicted_spans, uint64_t{0});
  writer.finish();
  RunUpdate last;
  last.summary = Summary{};
  run.apply(std::move(last));
  QVERIFY(!run.live() && !track.blocks[60].resident());
  QVERIFY(run.fetch(track.blocks[60].first, track.blocks[60].last));
  QVERIFY(track.blocks[60].resident());
  // A picture of everything is drawn from sums: the whole history does not come back for it.
  QVERIFY(!run.fetch(0, run.trace.last_time()));
  QVERIFY(run.fetch(0, run.trace.last_time(), SIZE_MAX));
}

void TimelineFollowTest::stepsOfTheGpuComeFromItsKernels() {
  AheadRun ahead;
  ahead.markOnHost(40);
  ahead.runOnGpu(40);
  ahead.update();
  QVERIFY(ahead.run.hasGpuSteps());
  const prof::Trace& marks = ahead.run.marks();
  for (int64_t step : {0, 7, 30}) {
    const prof::Span* span = span_of_step(marks, step);
    QVERIFY(span);
    QCOMPARE(span->start, 1'050'000 + step * kStep);
    QCOMPARE(TimeNs(span->duration), TimeNs(17'500));
  }
  QCOMPARE(step_period(marks), kStep);
  QStringList phases;
  for (const prof::Span& phase : first_track(marks, TrackKind::Phases)->blocks.front().spans)
    if (phase.step == 3) phases << QString::fromStdString(marks.name(phase.name));
  QCOMPARE(phases, QStringList({"forward", "update"}));
  ahead.runOnGpu(1);
  ahead.end();
  QVERIFY(span_of_step(marks, 40));  // the last step is whole once the run is over
  Run eager;
  QVERIFY(!eager.hasGpuSteps());
  QCOMPARE(&eager.marks(), &eager.trace);
}

void TimelineFollowTest::recordsArriveLate() {
  AheadRun ahead;
  ahead.markOnHost(300);
  QCOMPARE(ahead.run.arrived(), ahead.host - 1'000);
  ahead.runOnGpu(5);
  QCOMPARE(ahead.run.arrived(), ahead.gpu - 500);
  // A GPU track that stopped long ago, say because its tracing was switched off, holds nothing back.
  ahead.host += 4'000'000'000;
  ahead.markOnHost(1);
  QCOMPARE(ahead.run.arrived(), ahead.host - 1'000);
}

void TimelineFollowTest::kernelsAreAlwaysInView() {
  AheadRun ahead;
  TimeCursor cursor;
  Focus focus;
  TimelinePane pane(&cursor, &focus);
  pane.resize(1240, 674);
  ahead.markOnHost(40);
  ahead.runOnGpu(12);
  pane.setRuns({&ahead.run});
  for (int i = 0; i < 20; ++i) {
    ahead.markOnHost(40);  // far ahead of the GPU, and of its records
    ahead.runOnGpu(25);
    ahead.update();
    const TimeRange range = pane.model()->range();
    QVERIFY2(kernels_in(ahead.run.trace, range) >= 6, qPrintable(QString::number(i)));
    QVERIFY(range.length() >= 3 * kStep && range.length() <= 6 * kStep);
    QVERIFY(range.end <= ahead.run.arrived() + kStep);
    QVERIFY(range.end >= ahead.run.arrived() - 2 * kStep);
  }
}

void TimelineFollowTest::theEndShowsTheLastSteps() {
  AheadRun ahead;
  TimeCursor cursor;
  Focus focus;
  TimelinePane pane(&cursor, &focus);
  ahead.markOnHost(40);
  ahead.runOnGpu(60);
  ahead.update();
  pane.setRuns({&ahead.run});
  ahead.update();
  ahead.runOnGpu(40);
  const auto profiler = ahead.run.trace.track(TrackKind::Overhead, "profiler", "CPU");
  ahead.run.trace.append(profiler, span_at(ahead.run.trace, ahead.gpu + 90'000'000, 5'000, SpanKind::Overhead, "x", 0));
  ahead.end();
  QVERIFY(kernels_in(ahead.run.trace, pane.model()->range()) >= 6);
  QVERIFY(pane.model()->range().contains(span_of_step(ahead.run.marks(), 99)->start));
  // By hand elsewhere: the end of a run does not pull the view away.
  ahead.run.summary.reset();
  cursor.setFollow(false);
  cursor.setRange(2'000'000, 2'100'000);
  ahead.end();
  QCOMPARE(pane.model()->range().begin, TimeNs(2'000'000));
  cursor.setFollow(true);
  QVERIFY(kernels_in(ahead.run.trace, pane.model()->range()) >= 6);
}

// Files are read one after the other: the view waits for the run that the window shows.
void TimelineFollowTest::theOneShownIsReadLater() {
  TwoRuns t;
  Run late;
  late.id = "late", late.slot = 2, late.summary = Summary{}, late.loaded = false;
  t.pane.setRuns({&late});
  QCOMPARE(t.model().emptyText(), QString("Reading the run…"));
  t.model().setShown(&late);
  t.pane.setRuns({&t.fast, &late});
  t.fast.announce();
  test::add_steps(late.trace, test::StepStyle::EagerDirect, 0, 200);
  late.loaded = true;
  late.announce();
  const TimeRange shown = t.model().runRange(1, t.range());
  QVERIFY(kernels_in(late.trace, shown) >= 6);
  QVERIFY(shown.end > late.trace.last_time() - shown.length());
  t.pane.setRuns({});
}

// A run may end while tracing pauses. Its last traced steps are shown.
void TimelineFollowTest::aPauseOfTracingIsNotShown() {
  Run run;
  run.id = "pause", run.slot = 0, run.summary = Summary{};
  test::add_steps(run.trace, test::StepStyle::GraphArena, 0, 100);
  const TimeNs rest = run.trace.last_time();
  const auto steps = run.trace.track(TrackKind::Steps, "steps", "CPU"),
             untraced = run.trace.track(TrackKind::Untraced, prof::kUntracedTrack, "CPU");
  run.trace.append(untraced, span_at(run.trace, rest, 40 * kStep, SpanKind::Overhead, "untraced", 0));
  for (uint32_t i = 0; i < 40; ++i)
    run.trace.append(steps, span_at(run.trace, rest + i * kStep, kStep - 500, SpanKind::Step, "step", 101 + i));
  TimeCursor cursor;
  Focus focus;
  TimelinePane pane(&cursor, &focus);
  pane.setRuns({&run});
  QVERIFY(kernels_in(run.trace, pane.model()->range()) >= 6);
}

void TimelineFollowTest::endedRunsLieOverEachOther() {
  TwoRuns t;  // of 400 and of 200 steps
  QVERIFY(kernels_in(t.fast.trace, t.range()) > 0);
  QVERIFY2(t.model().alignedStep() > 250 && t.model().alignedStep() < 300, "a step that both have");
  QCOMPARE(t.model().alignedStepOf(0), t.model().alignedStepOf(1));
  QVERIFY(kernels_in(t.slow.trace, t.model().runRange(1, t.range())) > 0);
}

void TimelineFollowTest::quietRowsShareOne() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 300);
  const auto usual = build_lanes({{&trace, "run/x", "x", 0}}, {}).size();
  for (const char* stream : {"stream 17", "stream 18"})
    trace.append(trace.track(TrackKind::Stream, stream, "GPU 0"), span_at(trace, 10, 900, SpanKind::Kernel, "tune", 0));
  trace.append(trace.track(TrackKind::Overhead, "profiler", "CPU"),
               span_at(trace, 20, 900, SpanKind::Overhead, "flush", 0));
  auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {});
  QCOMPARE(lanes.size(), usual + 1);
  const auto quiet = std::ranges::find_if(lanes, [](const Lane& l) { return l.title == "3 more rows"; });
  QVERIFY(quiet != lanes.end());
  QCOMPARE(quiet->tracks.size(), size_t{3});
  QVERIFY2(quiet->folded && !quiet->tip.isEmpty(), "an arrow and a tip say what to do with it");
  const auto place = size_t(quiet - lanes.begin());
  LaneSettings opened;
  opened.folded.insert(quiet->key);
  lanes = build_lanes({{&trace, "run/x", "x", 0}}, opened);
  QCOMPARE(lanes.size(), usual + 4);  // each row, below its heading
  QCOMPARE(lanes[place].title, QString("3 more rows"));
  QVERIFY(lanes[place].kind == LaneKind::Group && !lanes[place].folded);
  LaneSettings all;
  all.quiet_rows = true;
  QCOMPARE(build_lanes({{&trace, "run/x", "x", 0}}, all).size(), usual + 3);
  LaneSettings wanted;
  wanted.filter = "profiler";
  QCOMPARE(build_lanes({{&trace, "run/x", "x", 0}}, wanted).size(), size_t{2});
}

// A compiler nests its ranges deeply in the first step. Later steps would have empty rows above their kernels.
void TimelineFollowTest::rangesOfTheFirstStepsAreQuiet() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 300);
  const auto usual = build_lanes({{&trace, "run/x", "x", 0}}, {}).size();
  const TimeNs first = trace.first_time(), last = trace.last_time();
  for (const int depth : {0, 1, 2, 3}) {
    const auto row = trace.track(TrackKind::Ranges, "thread 1 ranges", "CPU", depth);
    trace.append(row, span_at(trace, first + depth, 900, SpanKind::Phase, "compile", 0));
    if (depth < 2) trace.append(row, span_at(trace, last - 5000 + depth, 900, SpanKind::Phase, "forward", 0));
  }
  const auto lanes = build_lanes({{&trace, "run/x", "x", 0}}, {});
  QCOMPARE(lanes.size(), usual + 3);  // two rows of ranges, and the one of quiet rows
  QVERIFY(std::ranges::any_of(lanes, [](const Lane& lane) { return lane.title == "2 more rows"; }));
}

// A program of many kernels has few samples for each: its main thread is shown, and threads that wait are not.
void TimelineFollowTest::stacksOfWaitingThreadsAreQuiet() {
  prof::Trace trace;
  test::add_steps(trace, test::StepStyle::EagerDirect, 0, 300);
  const auto titles = [&trace] {
    QStringList all;
    for (const Lane& lane : build_lanes({{&trace, "run/x", "x", 0}}, {})) all << lane.title;
    return all;
  };
  const std::pair<const char*, const char*> threads[] = {
      {"samples of MainThread", "_PollLikeSelector.select (/usr/lib/python3.12/selectors.py:415)"},
      {"samples of Thread-1", "_PollLikeSelector.select (/usr/lib/python3.12/selectors.py:415)"},
      {"samples of Thread-2", "decode (/home/me/train.py:30)"}};
  for (const auto& [name, stack] : threads)
    for (int i = 0; i < 60; ++i)
      trace.append(trace.track(TrackKind::Samples, name, "CPU"), span_at(trace, trace.first_time() + i * 1000, 900, SpanKind::Other, stack, 0));
  QVERIFY2(titles().contains("stacks · MainThread"), qPrintable(titles().join(", ")));
  QVERIFY2(titles().contains("stacks · Thread-2"), qPrintable(titles().join(", ")));
  QVERIFY2(titles().contains("1 more row"), qPrintable(titles().join(", ")));
}

// A constant counter is one low row with its value, an empty one is no row.
void TimelineFollowTest::constantAndEmptyRowsTakeNoSpace() {
  TwoRuns t;
  for (const char* name : {"GPU clock", "nothing", "DRAM read"}) {
    const prof::TrackId counter = t.fast.trace.counter(name, "%");
    if (std::string(name) == "nothing") continue;
    for (int i = 0; i < 400; ++i)
      t.fast.trace.append_counter(counter, prof::CounterPoint{t.fast.trace.first_time() + i * 1000, i % 2 && std::string(name) == "DRAM read" ? 60.0 : 40.0});
  }
  t.pane.setRuns({}), t.pane.setRuns({&t.fast, &t.slow});
  std::map<QString, int> heights;
  for (const Lane& lane : t.model().lanes())
    if (lane.kind == LaneKind::Counter) heights[lane.title] = lane.height;
  QCOMPARE(heights["GPU clock"], kFlatRow);
  QVERIFY(heights["DRAM read"] > kFlatRow);
  QVERIFY(!heights.contains("nothing"));
}

void TimelineFollowTest::overlappingKernelsAreOneRow() {
  AheadRun ahead;
  ahead.markOnHost(4);
  ahead.runOnGpu(40);
  ahead.update();
  const auto lanes = build_lanes({{&ahead.run.trace, "run/x", "x", 0, false, &ahead.run.marks()}}, {});
  QStringList titles;
  for (const Lane& lane : lanes) titles << lane.title;
  QCOMPARE(titles, QStringList({"x", "step", "phase", "stream 13", "host step"}));
  QCOMPARE(lanes[3].tracks.size(), size_t{2});
  QVERIFY(lanes[1].gpu_steps && !lanes[4].gpu_steps);
}

void TimelineFollowTest::evaluationIsNoPartOfAStep() {
  prof::Trace trace;
  const auto steps = trace.track(TrackKind::Steps, "steps", "CPU"),
             phases = trace.track(TrackKind::Phases, "phases", "CPU"),
             ops = trace.track(TrackKind::CpuThread, "thread 1", "CPU");
  TimeNs now = 0;
  for (uint32_t step = 1; step <= 60; ++step, now += 100'000) {
    trace.append(steps, span_at(trace, now, 98'000, SpanKind::Step, "step", step));
    auto op = span_at(trace, now, 60'000, SpanKind::Op, "fc1", step);
    op.meaning = static_cast<uint64_t>(prof::Meaning::Matrix);
    trace.append(ops, op);
    if (step % 20 != 0) continue;
    trace.append(phases, span_at(trace, now + 99'000, 50'000'000, SpanKind::Phase, "evaluate", 0));
    now += 50'000'000;
  }
  const StepSplit split = split_of({trace, trace, {.per_epoch = 20}}, {.until = trace.last_time()}, 0);
  QVERIFY2(std::abs(split.wall_us - 100) < 1, qPrintable(QString::number(split.wall_us)));
  double sum = 0;
  for (const SplitPart& part : split.parts) sum += part.us;
  QVERIFY(std::abs(sum - split.wall_us) < 1e-6);
  QCOMPARE(split.parts.front().meaning, prof::Meaning::Matrix);
  QVERIFY(std::abs(split.parts.front().us - 60) < 1);
  // Steps whose records are not in yet would look idle.
  QVERIFY(split_of({trace, trace, {.per_epoch = 20}}, {.until = 10 * 100'000}, 0).steps <= 10);
}

// What the timeline follows, and of which it keeps the last seconds, is the run in the header.
void TimelineFollowTest::theShownRunLeads() {
  TwoRuns t;
  QCOMPARE(t.model().leader(), 0);
  t.pane.setShown(&t.slow);
  QCOMPARE(t.model().leader(), 1);
  QSignalSpy kept(&t.pane, &TimelinePane::keepWanted);
  t.pane.keepLast(0.001);
  QCOMPARE(kept.at(0).at(0).value<Run*>(), &t.slow);
  t.cursor.setFollow(false), t.cursor.setFollow(true);
  const TimeRange shown = t.model().runRange(1, t.range());
  QVERIFY2(shown.contains(t.slow.trace.last_time() - shown.length() / 2), "its newest steps");
  t.pane.setRuns({&t.fast});
  QCOMPARE(t.model().leader(), 0);
}

// View time is the time of the first run. Before it is read, the shown run is placed without it.
void TimelineFollowTest::theFirstRunIsReadLast() {
  TwoRuns t;
  t.pane.setRuns({});
  t.pane.setShown(&t.slow);
  prof::Trace late;
  std::swap(t.fast.trace, late);
  t.fast.loaded = false;
  t.pane.setRuns({&t.fast, &t.slow});
  const TimeRange before = t.model().runRange(1, t.range());
  QVERIFY(kernels_in(t.slow.trace, before) > 0);
  std::swap(t.fast.trace, late);
  t.fast.loaded = true;
  t.fast.announce();
  const TimeRange slow = t.model().runRange(1, t.range()), fast = t.model().runRange(0, t.range());
  QCOMPARE(slow.begin, before.begin);
  QVERIFY(kernels_in(t.slow.trace, slow) > 0);
  QVERIFY(kernels_in(t.fast.trace, fast) > 0);
}

void TimelineFollowTest::marksStayWithTheRun() {
  QTemporaryDir folder;
  const QString path = folder.path() + "/marked.wsrun";
  { prof::RunFileWriter(path.toStdString(), prof::RunSummary{}).finish(); }
  TwoRuns t;
  t.slow.path = path;
  t.slow.origin = RunOrigin::File;
  const TimeNs at = t.range().begin + 1000;
  t.model().addMark({at, "here", 1});
  QCOMPARE(t.slow.time_marks.size(), size_t{1});
  QCOMPARE(t.slow.time_marks[0].time, at + t.model().offset(1));
  t.pane.setRuns({&t.fast});
  QCOMPARE(t.model().marks().size(), size_t{0});
  t.pane.setRuns({&t.fast, &t.slow});
  QCOMPARE(t.model().marks().size(), size_t{1});
  QCOMPARE(t.model().marks()[0].time + t.model().offset(1), t.slow.time_marks[0].time);
  const auto kept = [&] {
    Run again;
    read_summary(again, path);
    return again.time_marks;
  };
  QTRY_COMPARE(kept(), t.slow.time_marks);
  QVERIFY(marks_from("{\"ns\": 3").empty());
  QVERIFY(marks_from("[{\"ns\": \"x\"}, 4]").empty());
}

void TimelineFollowTest::lanesComeBack() {
  TwoRuns t;
  t.model().setHidden(t.model().lanes()[2].key, true);
  t.model().setQuietRows(true);
  const QByteArray saved = t.model().saveLanes();
  TwoRuns again;
  again.model().restoreLanes(saved);
  QVERIFY(again.model().settings().quiet_rows);
  QCOMPARE(again.model().lanes().size(), t.model().lanes().size());
}

WARPSIGHT_QTEST(TimelineFollowTest)
#include "timeline_follow_test.moc"
