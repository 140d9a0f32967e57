// What is recorded in which state, and in which order the gate switches it.
#include "profiling/collectors/recording_gate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ws::prof {
namespace recording_gate {  // a name: its using enum must not reach the other sources of this program

constexpr GateSetting kTraining{.gpu = true}, kProgram{.gpu = true, .program_ranges = true, .nvtx = true},
    kClock{.gpu = true, .program_ranges = true, .by_clock = true}, kWindows{.gpu = true, .nvtx = true, .node_windows = true},
    kHost{.nvtx = true};

struct Row {
  const char* name;
  GateSetting setting;
  GateState state;
  Wanted wanted;
};

using enum TraceLevel;
const Row kRows[] = {
    {"outside of a capture range", kProgram, {.level = Full, .capturing = false}, {.listener = true, .gap = Gap::Uncaptured}},
    {"graphs made there can have records later",
     kProgram,
     {.level = Graph, .capturing = false, .paused = true},
     {.kinds = {.whole_graphs = true}, .listener = true, .gap = Gap::Uncaptured}},
    {"off", kTraining, {.level = Off}, {}},
    {"off, another tool listens", kHost, {.level = Off}, {.marks = {.nvtx = true}}},
    {"off, in a pause", kTraining, {.level = Off, .paused = true}, {.gap = Gap::Untraced}},
    {"steps", kTraining, {.level = Steps}, {.kinds = {.allocations = true}, .listener = true}},
    {"collectives of a program",
     kProgram,
     {.level = Collectives},
     {.marks = {.ranges = true}, .kinds = {.allocations = true}, .listener = true}},
    {"steps between clock windows",
     kClock,
     {.level = Steps, .clock_open = false},
     {.marks = {.ranges = true}, .kinds = {.allocations = true, .hide_calls = true}, .listener = true, .gap = Gap::Untraced}},
    {"graph", kTraining, {.level = Graph},
     {.marks = {.ops = true}, .kinds = {.allocations = true, .kernels = true, .graph_runs = true, .whole_graphs = true}, .listener = true}},
    {"graph in a node window", kWindows, {.level = Graph, .node_window = true},
     {.marks = {.ops = true, .nvtx = true}, .kinds = {.allocations = true, .kernels = true, .whole_graphs = true}, .listener = true}},
    {"graph between node windows, kernels one by one", kWindows, {.level = Graph},
     {.marks = {.nvtx = true}, .kinds = {.allocations = true, .whole_graphs = true}, .listener = true, .gap = Gap::Untraced}},
    {"graph between node windows, graphs", kWindows, {.level = Graph, .graphs_seen = true},
     {.marks = {.ops = true, .nvtx = true},
      .kinds = {.allocations = true, .kernels = true, .graph_runs = true, .whole_graphs = true},
      .listener = true}},
    {"full, graphs as a whole", {.gpu = true, .whole_graphs = true}, {.level = Full},
     {.marks = {.ops = true}, .kinds = {.allocations = true, .kernels = true, .graph_runs = true, .whole_graphs = true, .calls = true}, .stamped_steps = 64, .listener = true}},
    {"graphs settle", kWindows, {.level = Graph, .graphs_seen = true, .settling = true},
     {.marks = {.ops = true, .nvtx = true}, .kinds = {.allocations = true, .whole_graphs = true}, .listener = true}},
    {"a pause at level graph", kTraining, {.level = Graph, .paused = true},
     {.kinds = {.allocations = true, .whole_graphs = true}, .listener = true, .gap = Gap::Untraced}},
    {"a pause at level full", kTraining, {.level = Full, .paused = true},
     {.kinds = {.allocations = true}, .stamped_steps = 64, .listener = true, .gap = Gap::Untraced}},
    {"kernels", kProgram, {.level = Kernels},
     {.marks = {.ops = true, .ranges = true}, .kinds = {.allocations = true, .kernels = true}, .stamped_steps = 16, .listener = true}},
    {"full, node windows are for graphs only", kWindows, {.level = Full},
     {.marks = {.ops = true, .nvtx = true},
      .kinds = {.allocations = true, .kernels = true, .calls = true},
      .stamped_steps = 64,
      .listener = true}},
    {"full between clock windows", kClock, {.level = Full, .clock_open = false},
     {.marks = {.ranges = true},
      .kinds = {.allocations = true, .kernels = true, .calls = true, .hide_calls = true},
      .stamped_steps = 64,
      .listener = true,
      .gap = Gap::Untraced}},
    {"graph between clock windows", kClock, {.level = Graph, .clock_open = false},
     {.marks = {.ranges = true},
      .kinds = {.allocations = true, .kernels = true, .graph_runs = true, .whole_graphs = true, .hide_calls = true},
      .listener = true,
      .gap = Gap::Untraced}},
    {"an X-ray pauses kernels and calls", kTraining, {.level = Full, .sampling = 12},
     {.kinds = {.allocations = true, .sampling = 12}, .stamped_steps = 64, .listener = true, .gap = Gap::Untraced}},
    {"an X-ray in a clock window", kClock, {.level = Full, .sampling = 12},
     {.marks = {.ranges = true}, .kinds = {.allocations = true, .hide_calls = true, .sampling = 12}, .stamped_steps = 64, .listener = true, .gap = Gap::Untraced}},
    {"no X-ray without a GPU", kHost, {.level = Full, .sampling = 12}, {.marks = {.nvtx = true}, .listener = true, .gap = Gap::Untraced}},
    {"full on the host", kHost, {.level = Full}, {.marks = {.ops = true, .nvtx = true}, .listener = true}},
};

TEST(Wanted, FollowsTheTable) {
  for (const Row& row : kRows) EXPECT_EQ(wanted(row.setting, row.state), row.wanted) << row.name;
}

// For all settings and states.
TEST(Wanted, KeepsItsRules) {
  for (unsigned bits = 0; bits < 1u << 12; ++bits)
    for (const TraceLevel level : {Off, Steps, Collectives, Graph, Kernels, Full}) {
      const auto bit = [bits](int i) { return (bits >> i & 1) != 0; };
      const GateSetting setting{bit(0), bit(1), bit(2), bit(3), bit(4), bit(11)};
      GateState state{level, bit(5), bit(6), bit(7), bit(8), bit(9), bit(10)};
      const Wanted now = wanted(setting, state);
      EXPECT_EQ(now.listener, level != Off);
      EXPECT_TRUE(setting.gpu || now.kinds == GpuKinds());
      EXPECT_EQ(now.gap == Gap::Uncaptured, !state.capturing);
      EXPECT_TRUE(now.gap == Gap::None || !now.marks.ops);
      EXPECT_FALSE(now.marks.nvtx && now.marks.ranges);
      EXPECT_TRUE(!now.kinds.graph_runs || (now.kinds.kernels && now.kinds.whole_graphs));
      if (!setting.by_clock) continue;
      // The driver's records stay as they are when a clock window opens or closes.
      state.clock_open = !state.clock_open;
      GpuKinds other = wanted(setting, state).kinds;
      other.hide_calls = now.kinds.hide_calls;
      EXPECT_EQ(now.kinds, other);
    }
}

// Writes down what is switched.
struct Log final : GateParts {
  void set_gpu(const GpuKinds& kinds, bool may_wait) override {
    std::string text = kinds.nothing() ? "nothing" : kinds.sampling > 0 ? "sampling" : kinds.graph_runs ? "graphs" : kinds.kernels ? "kernels" : "allocations";
    if (kinds.hide_calls) text += " hidden";
    add("gpu " + text + (may_wait ? "" : " at once"));
  }
  void set_marks(const Marks::Config& config) override { add(config.ops ? "ops" : "no ops"); }
  void set_stamps(int64_t steps) override { add("stamps " + std::to_string(steps)); }
  void set_listener(bool on) override { add(on ? "listens" : "does not listen"); }
  void set_hooks(bool on, int64_t) override { add(on ? "hooks on" : "hooks off"); }
  int64_t time_after(int64_t before) const override { return before + switch_takes; }
  bool graphs_seen() const override { return seen; }
  bool graphs_unsettled() const override { return unsettled; }

  void add(const std::string& text) { calls += (calls.empty() ? "" : ", ") + text; }
  std::string take() { return std::exchange(calls, ""); }

  std::string calls;
  bool seen = false, unsettled = false;
  int64_t switch_takes = 0;
};

struct Gate : testing::Test {
  Log log;
  GapTimes times;
  RecordingGate gate{log, times};
  using Gaps = std::vector<std::pair<int64_t, int64_t>>;
};

TEST_F(Gate, BeginsAndEnds) {
  gate.begin(kTraining, {.level = Kernels}, 10);
  EXPECT_EQ(log.take(), "hooks on, gpu kernels at once, ops, stamps 16, listens");
  gate.step(false, false, 20);
  EXPECT_EQ(log.take(), "") << "nothing changes";
  gate.end();
  EXPECT_EQ(log.take(), "stamps 0, does not listen");
  EXPECT_FALSE(gate.set_level(Full, 30));
  EXPECT_FALSE(gate.set_capturing(false, 30));
  gate.step(true, false, 40);
  gate.set_clock(false, 50);
  EXPECT_EQ(log.take(), "") << "it has ended";
  EXPECT_EQ(gate.take_gaps(60, true), Gaps());
}

TEST_F(Gate, HooksBeginAfterTheRecordsAndEndBeforeThem) {
  gate.begin(kProgram, {.level = Full, .capturing = false}, 10);
  EXPECT_EQ(log.take(), "hooks off, gpu nothing at once, no ops, stamps 0, listens");
  EXPECT_TRUE(gate.set_capturing(true, 20));
  EXPECT_EQ(log.take(), "gpu kernels, ops, stamps 64, listens, hooks on");
  EXPECT_FALSE(gate.set_capturing(true, 25));
  EXPECT_TRUE(gate.set_capturing(false, 30));
  EXPECT_EQ(log.take(), "hooks off, gpu nothing, no ops, stamps 0, listens");
  EXPECT_TRUE(times.uncaptured.at(15) && !times.uncaptured.at(25) && times.uncaptured.at(35));
  EXPECT_EQ(gate.take_gaps(40, true), Gaps()) << "nothing is drawn before the first capture range and after the last one";
  gate.set_capturing(true, 50);
  EXPECT_EQ(gate.take_gaps(60, false), (Gaps{{30, 50}}));
}

TEST_F(Gate, AClockWindowKeepsTheRecordsOn) {
  gate.begin(kClock, {.level = Full}, 10);
  log.take();
  gate.set_clock(false, 20);
  EXPECT_EQ(log.take(), "gpu kernels hidden at once, no ops, stamps 64, listens");
  EXPECT_EQ(gate.take_gaps(25, false), (Gaps{{20, 25}})) << "drawn in parts";
  gate.set_clock(true, 30);
  EXPECT_EQ(log.take(), "gpu kernels at once, ops, stamps 64, listens");
  EXPECT_EQ(gate.take_gaps(40, false), (Gaps{{25, 30}}));
  EXPECT_TRUE(!times.clock.at(15) && times.clock.at(25) && !times.clock.at(35));
}

TEST_F(Gate, AGpuThatComesLaterFindsTheWindowOpen) {
  gate.begin({.program_ranges = true, .by_clock = true}, {.level = Full}, 10);
  gate.set_clock(false, 20);
  EXPECT_EQ(log.take(), "hooks on, ops, stamps 0, listens, no ops, stamps 0, listens");
  gate.add_gpu(true, 30);
  EXPECT_EQ(log.take(), "gpu kernels at once, ops, stamps 64, listens");
  EXPECT_EQ(gate.take_gaps(40, false), (Gaps{{20, 30}}));
}

TEST_F(Gate, APauseOfTheMeterIsDrawnWhenItEnds) {
  gate.begin(kTraining, {.level = Kernels}, 10);
  log.take();
  gate.step(true, false, 20);
  EXPECT_EQ(log.take(), "gpu allocations, no ops, stamps 16, listens");
  EXPECT_EQ(gate.take_gaps(25, false), Gaps());
  gate.step(false, false, 30);
  EXPECT_EQ(gate.take_gaps(35, false), (Gaps{{20, 30}}));
  gate.step(true, false, 40);
  EXPECT_EQ(gate.take_gaps(50, true), (Gaps{{40, 50}})) << "the end of the trace ends it";
}

TEST_F(Gate, AnXrayPausesKernelRecordsForItsSteps) {
  gate.begin(kTraining, {.level = Kernels}, 10);
  log.take();
  gate.step(false, false, 20, 12);
  EXPECT_EQ(log.take(), "gpu sampling, no ops, stamps 16, listens");
  gate.step(false, false, 25, 12);
  EXPECT_EQ(log.take(), "");
  log.switch_takes = 4;
  gate.step(false, false, 30);
  EXPECT_EQ(log.take(), "gpu kernels, ops, stamps 16, listens");
  EXPECT_EQ(gate.take_gaps(35, false), (Gaps{{20, 34}})) << "the program waits while samples are read";
  gate.set_sampling(14, 40);
  EXPECT_EQ(log.take(), "gpu sampling at once, no ops, stamps 16, listens");
  gate.set_sampling(14, 45);
  EXPECT_EQ(log.take(), "");
}

TEST_F(Gate, GraphsThatRanWithNodeRecordsSettleAtMostTwice) {
  gate.begin(kWindows, {.level = Graph, .node_window = true}, 10);
  log.take();
  log.seen = log.unsettled = true;
  for (const int64_t step : {1, 2}) {
    gate.step(false, false, 10 + step);
    EXPECT_EQ(log.take(), "gpu allocations, ops, stamps 0, listens");
    EXPECT_TRUE(gate.state().settling);
  }
  gate.step(false, false, 13);
  EXPECT_EQ(log.take(), "gpu graphs, ops, stamps 0, listens");
  gate.step(false, false, 14);
  EXPECT_EQ(log.take(), "");
  EXPECT_EQ(gate.take_gaps(20, false), Gaps()) << "steps that settle count as traced";
}

TEST_F(Gate, EagerKernelsPauseBetweenNodeWindowsUntilAGraphIsMade) {
  gate.begin(kWindows, {.level = Graph}, 10);
  gate.step(false, true, 20);
  log.take();
  gate.step(false, false, 30);
  EXPECT_EQ(log.take(), "gpu allocations, no ops, stamps 0, listens");
  log.seen = true;
  gate.step(false, false, 40);
  EXPECT_EQ(log.take(), "gpu graphs, ops, stamps 0, listens");
  EXPECT_EQ(gate.take_gaps(50, false), (Gaps{{10, 20}, {30, 40}}));
}

TEST_F(Gate, ALevelWaitsForTheNextStepButNotLong) {
  gate.begin(kTraining, {.level = Kernels}, 10);
  log.take();
  EXPECT_TRUE(gate.set_level(Off, 20, 270));
  EXPECT_FALSE(gate.set_level(Off, 21, 270));
  EXPECT_EQ(log.take(), "");
  EXPECT_EQ(gate.state().level, Off);
  gate.step(false, false, 30);
  EXPECT_EQ(log.take(), "gpu nothing, no ops, stamps 0, does not listen");
  gate.set_level(Full, 40, 290);
  gate.apply_overdue(290);
  EXPECT_EQ(log.take(), "");
  gate.apply_overdue(291);
  EXPECT_EQ(log.take(), "gpu kernels at once, ops, stamps 64, listens");
  gate.apply_overdue(1000);
  EXPECT_EQ(log.take(), "");
  EXPECT_TRUE(gate.set_level(Steps, 50));
  EXPECT_EQ(log.take(), "gpu allocations at once, no ops, stamps 0, listens");
}

TEST_F(Gate, ALevelThatWaitsDoesNotOutliveTheEnd) {
  gate.begin(kTraining, {.level = Kernels}, 10);
  gate.set_level(Full, 20, 270);
  gate.end();
  log.take();
  gate.apply_overdue(1000);
  gate.step(false, false, 30);
  EXPECT_EQ(log.take(), "");
}

}  // namespace recording_gate
}  // namespace ws::prof
