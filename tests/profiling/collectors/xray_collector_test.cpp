// When a collector samples instructions: in which steps, for how long by the clock, and what it reports; on a GPU that notes what is
// asked of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "profiling/annotate/annotate.h"
#include "profiling/base/clock.h"
#include "profiling/collectors/collector.h"

namespace ws::prof {
namespace {

using ::testing::HasSubstr;

class NotingGpu final : public GpuTracer {
 public:
  struct Change {
    bool on;
    uint32_t step;
    int64_t from, until;  // of the switching call
  };
  std::string open(bool) override { return ""; }
  void begin(TraceContext& context) override { context_ = &context; }
  void apply(const GpuKinds& kinds, bool) override {
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(kinds.kernels && kinds.sampling > 0) << "both at once";
    if ((kinds.sampling > 0) == on_) return;
    const int64_t from = steady_ns();
    on_ = kinds.sampling > 0;
    while (on_ && steady_ns() - from < begin_takes) std::this_thread::yield();
    changes.push_back({on_, context_->step_now.load(), from, steady_ns()});
    if (!on_ && refused.empty()) ++windows_;
  }
  void keep_modules() override { keeps_modules = true; }
  std::string sampling_refused() override { return refused; }
  void at_next_call(std::function<void()> what) override {
    const std::lock_guard lock(next_mutex);
    next = std::move(what);
  }
  // The program works on the GPU.
  void call() {
    std::function<void()> what;
    {
      const std::lock_guard lock(next_mutex);
      what = std::exchange(next, {});
    }
    if (what) what();
  }
  void drain(bool) override {
    const std::lock_guard lock(mutex);
    Span span;
    span.start = context_->from_steady(steady_ns()), span.duration = 1, span.name = context_->batch.id(context_->batch.name("kernel"));
    context_->batch.row(TrackKind::Stream, "stream 7", "GPU 0").spans.push_back(span);
    for (; windows_ > 0; --windows_) context_->batch.sampled(SampledWindow{.period = 12, .samples = 100});
  }
  Device device() const override { return {}; }
  int device_number() const override { return 0; }
  ClockOffset calibrate_clock() override { return {}; }
  GpuCounts counts() const override { return {}; }
  void end() override {}

  std::mutex mutex, next_mutex;
  std::vector<Change> changes;
  std::function<void()> next;
  std::string refused;
  int64_t begin_takes = 0;
  bool keeps_modules = false;

 private:
  TraceContext* context_ = nullptr;
  bool on_ = false;
  int windows_ = 0;
};
NotingGpu* g_gpu = nullptr;

struct XrayCollector : ::testing::Test {
  void SetUp() override { g_gpu = &gpu; }
  CollectorOptions options(const XrayWindow& window) const {
    return {.gpu = {[]() -> GpuTracer* { return g_gpu; }, nullptr}, .level = TraceLevel::Kernels, .xray = window, .poll_memory = false};
  }
  void train(int64_t steps) {
    for (int64_t step = 0; step < steps; ++step) const StepScope scope(step);
  }
  NotingGpu gpu;
  Collector collector;
};

TEST_F(XrayCollector, SamplesTheStepsOfItsWindows) {
  EXPECT_EQ(collector.start(options(xray_steps("5/30"))).xray, "X-ray of 5 of every 30 steps, from step 20 on; kernel records pause meanwhile.");
  EXPECT_TRUE(gpu.keeps_modules);
  train(100);
  collector.stop();
  std::vector<std::pair<bool, uint32_t>> seen;
  for (const NotingGpu::Change& change : gpu.changes) seen.emplace_back(change.on, change.step - 1);
  EXPECT_EQ(seen, (std::vector<std::pair<bool, uint32_t>>{{true, 20}, {false, 25}, {true, 50}, {false, 55}, {true, 80}, {false, 85}}));
  EXPECT_THAT(collector.status().xray, HasSubstr("300 samples in 3 windows, one every 4096 cycles; none dropped."));
  std::map<std::string, std::string> extra;
  keep_status(collector.status(), extra);
  EXPECT_EQ(extra[kXrayKey], collector.status().xray);
  EXPECT_FALSE(extra.contains(kXrayRefusedKey));
}

TEST_F(XrayCollector, StepsOfOneLaunchAreSampledAlike) {
  collector.start(options(xray_steps("5/30")));
  EXPECT_EQ(listener()->steps_traced_alike(0), 20);
  EXPECT_EQ(listener()->steps_traced_alike(20), 5);
  EXPECT_EQ(listener()->steps_traced_alike(25), 25);
  collector.stop();
}

TEST_F(XrayCollector, ARefusalIsReportedAndTheRunGoesOn) {
  gpu.refused = "another profiler is reading them";
  collector.start(options(xray_steps("5")));
  train(40);
  collector.stop();
  EXPECT_EQ(collector.status().xray, "No X-ray: another profiler is reading them.");
  EXPECT_TRUE(collector.status().xray_refused);
}

TEST_F(XrayCollector, ARunThatEndsBeforeTheFirstWindowReportsIt) {
  collector.start(options(xray_steps("5")));
  train(10);
  collector.stop();
  EXPECT_EQ(collector.status().xray, "No X-ray: the run ended before step 20.");
}

TEST_F(XrayCollector, SeveralGpusOfOneProcessAreRefused) {
  CollectorOptions ranks = options(xray_steps("5"));
  ranks.gpu_is_rank = true;
  EXPECT_THAT(collector.start(ranks).xray, HasSubstr("a process of its own"));
  train(40);
  collector.stop();
  EXPECT_TRUE(gpu.changes.empty());
}

// By the clock, at calls of the program, whatever its steps do. The begin takes longer than the window is long, and is no part of it.
TEST_F(XrayCollector, AWindowOfTimeBeginsWhenSamplingHasBegun) {
  constexpr int64_t kMs = 1'000'000;
  gpu.begin_takes = 60 * kMs;
  collector.start(options(xray_time("20ms/300ms")));
  const auto changes = [this] {
    const std::lock_guard lock(gpu.mutex);
    return gpu.changes.size();
  };
  const int64_t until = steady_ns() + 30'000 * kMs;
  for (int64_t step = 0; changes() < 4 && steady_ns() < until; ++step) {
    gpu.call();
    const StepScope scope(step);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  collector.stop();
  ASSERT_GE(gpu.changes.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(gpu.changes[i].on, i % 2 == 0);
  for (size_t i : {size_t{0}, size_t{2}}) EXPECT_GE(gpu.changes[i + 1].from - gpu.changes[i].until, 20 * kMs);
  EXPECT_GE(gpu.changes[2].from - gpu.changes[0].from, 200 * kMs) << "not again in the same period";
  EXPECT_THAT(collector.status().xray, HasSubstr("in 2 windows"));
}

}  // namespace
}  // namespace ws::prof
