#include "profiling/analysis/steps_of_run.h"

#include <gtest/gtest.h>

#include "profiling/analysis/memory_curves.h"
#include "profiling/analysis/trace_stats.h"

namespace ws::prof {
namespace {

// Marks of steps, as long as `us` says.
RunData steps_of(const std::vector<double>& us) {
  RunData run;
  const TrackId track = run.trace.track(TrackKind::Steps, "steps", "CPU");
  Span span;
  span.kind = static_cast<uint64_t>(SpanKind::Step);
  for (size_t i = 0; i < us.size(); ++i) {
    span.step = static_cast<uint32_t>(i) + 1;
    span.duration = static_cast<uint64_t>(us[i] * 1000);
    run.trace.append(track, span);
    span.start += static_cast<TimeNs>(us[i] * 1000);
  }
  return run;
}

TEST(StepTime, TheOneThatIsKeptIsTheOneThatIsSaid) {
  RunData run = steps_of(std::vector<double>(200, 20));
  EXPECT_DOUBLE_EQ(run_stats(run).step_time.us.value, 20);
  run.summary.step_time = {{33, 1}, 30, 40};
  EXPECT_DOUBLE_EQ(run_stats(run).step_time.us.value, 33);
  EXPECT_DOUBLE_EQ(run_stats(run).step_time.p95_us, 40);
}

TEST(StepTime, StepsBeforeTheLastChangeOfExecutionDoNotCount) {
  std::vector<double> us(300, 80);
  us.insert(us.end(), 100, 20);
  RunData run = steps_of(us);
  EXPECT_DOUBLE_EQ(run_stats(run).step_time.us.value, 80);
  run.marks.push_back({300, 0.1, "exec.allocator: direct → arena"});
  run.marks.push_back({350, 0.1, "train.lr: 0.1 → 0.2"});
  EXPECT_EQ(steady_since(run.marks), 300);
  EXPECT_DOUBLE_EQ(run_stats(run).step_time.us.value, 20);
}

// The host enqueues a graph of many steps in the time of one: its marks are short, whatever the GPU takes.
TEST(StepTime, MarksAloneGiveWayToTheLosses) {
  RunData run = steps_of(std::vector<double>(2000, 0.7));
  for (int step = 1; step <= 2000; ++step) {
    Metric m;
    m.step = step, m.wall_s = 14e-6 * step;
    run.metrics.push_back(m);
  }
  EXPECT_NEAR(run_stats(run).step_time.us.value, 14, 0.01);
  const TrackId thread = run.trace.track(TrackKind::CpuThread, "thread 1", "CPU");
  for (int step = 0; step < 2000; ++step) {
    Span op;
    op.start = 700 * step, op.duration = 500, op.kind = static_cast<uint64_t>(SpanKind::Op);
    run.trace.append(thread, op);
  }
  EXPECT_NEAR(run_stats(run).step_time.us.value, 0.7, 0.01) << "marks around work that was traced";
}

TEST(StepTime, ABusyMachineWidensItsInterval) {
  std::vector<double> quiet, busy;
  for (int i = 0; i < 400; ++i) quiet.push_back(20 + 0.01 * (i % 7)), busy.push_back(i % 5 ? 20 : 45);
  const StepTime calm = run_stats(steps_of(quiet)).step_time, loud = run_stats(steps_of(busy)).step_time;
  EXPECT_FALSE(varies_widely(calm));
  EXPECT_LT(calm.us.half_width, 1);
  EXPECT_TRUE(varies_widely(loud));
  EXPECT_GT(loud.us.half_width, 10);
  RunData program = steps_of(busy);
  program.summary.origin = "recorded";
  EXPECT_LT(run_stats(program).step_time.us.half_width, 1) << "its steps vary by themselves";
  program.summary.step_time = loud;
  EXPECT_LT(run_stats(program).step_time.us.half_width, 1) << "as an earlier version stored it";
}

TEST(TracingCost, IsSaidOnlyWhenItWasMeasured) {
  EXPECT_FALSE(median_with_interval({0.88}).known()) << "one pair of stretches says nothing";
  EXPECT_EQ(tracing_cost_text({}), "");
  const Interval measured = median_with_interval({0.03, 0.05, 0.04, 0.04, 0.03, 0.05, 0.04});
  EXPECT_TRUE(tracing_cost_seen(measured));
  EXPECT_EQ(tracing_cost_text(measured), "≥ 4.0 ± 1.0 %");
  const Interval noise = median_with_interval({-0.3, 0.2, 0.1, 0.3, -0.2, 0.25});
  EXPECT_FALSE(tracing_cost_seen(noise));
  EXPECT_TRUE(tracing_cost_text(noise).starts_with("within noise"));
}

// An arena hands nothing out, the allocator after it takes each block from the device.
TEST(MemoryCurves, UsedStaysBelowReservedWhenTheAllocatorChanges) {
  Trace trace;
  trace.memory_sources = {"arena", "malloc"};
  const auto add = [&](TimeNs time, MemoryAction action, uint64_t address, uint64_t bytes, uint8_t source) {
    trace.append_memory({time, address, bytes, 0, 0, action, source});
  };
  add(1, MemoryAction::Reserve, 1, 1000, 0);
  add(2, MemoryAction::Release, 1, 1000, 0);
  add(3, MemoryAction::Allocate, 2, 300, 1);
  add(4, MemoryAction::Allocate, 3, 200, 1);
  add(5, MemoryAction::Free, 2, 300, 1);
  add(6, MemoryAction::Free, 3, 200, 1);
  add(7, MemoryAction::Reserve, 4, 800, 0);
  MemoryCurves curves;
  curves.update(trace);
  const double used[] = {1000, 0, 300, 500, 200, 0, 800};
  ASSERT_EQ(curves.used().points.size(), std::size(used));
  for (size_t i = 0; i < std::size(used); ++i) {
    EXPECT_EQ(curves.used().points[i].value, used[i]) << i;
    EXPECT_GE(curves.reserved().points[i].value, used[i]) << i;
  }
}

}  // namespace
}  // namespace ws::prof
