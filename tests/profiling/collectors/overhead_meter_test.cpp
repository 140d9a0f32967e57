#include "profiling/collectors/overhead_meter.h"

#include <gtest/gtest.h>

#include <random>

#include "profiling/analysis/step_pattern.h"

namespace ws::prof {
namespace {

// A loop whose step takes `traced` ns while traced and `untraced` ns while not, and whose switches take effect late.
struct Loop {
  OverheadMeter meter;
  double traced, untraced;
  int late = 0;
  int64_t now = 1, paused_ns = 0;
  std::vector<bool> states{};

  void run(int64_t steps, int64_t each = 1) {
    for (int64_t step = 0; step < steps; step += each) {
      states.push_back(meter.step(step, now));
      const size_t seen = states.size() > static_cast<size_t>(late) ? states.size() - 1 - static_cast<size_t>(late) : 0;
      const double ns = (states[seen] ? untraced : traced) * static_cast<double>(each);
      if (states.back()) paused_ns += static_cast<int64_t>(ns);
      now += static_cast<int64_t>(ns);
    }
  }
};

TEST(OverheadMeter, FindsTheRatio) {
  Loop loop{OverheadMeter(0.05, {.min_ns = 100'000, .min_steps = 10}), 1300, 1000};
  loop.run(200'000);
  EXPECT_NEAR(loop.meter.result().value, 0.3, 1e-9);
}

TEST(OverheadMeter, IsNotFooledByWorkThatWasQueuedBeforeASwitch) {
  Loop loop{OverheadMeter(0.05, {.min_ns = 100'000, .min_steps = 10}), 1300, 1000, 60};
  loop.run(200'000);
  EXPECT_NEAR(loop.meter.result().value, 0.3, 0.01);
}

TEST(OverheadMeter, KeepsToItsShare) {
  Loop loop{OverheadMeter(0.02, {.min_ns = 100'000, .min_steps = 10}), 1000, 1000};
  loop.run(1'000'000);
  EXPECT_LT(static_cast<double>(loop.paused_ns), 0.025 * static_cast<double>(loop.now));
  EXPECT_GT(static_cast<double>(loop.paused_ns), 0.01 * static_cast<double>(loop.now));
}

TEST(OverheadMeter, CountsStepsThatComeSeveralAtATime) {
  Loop loop{OverheadMeter(0.1, {.min_ns = 100'000, .min_steps = 10}), 1100, 1000};
  loop.run(200'000, 8);
  EXPECT_NEAR(loop.meter.result().value, 0.1, 1e-9);
}

TEST(OverheadMeter, HasNothingToSayAboutAShortRun) {
  Loop loop{OverheadMeter(0.05, {}), 1300, 1000};
  loop.run(100);
  EXPECT_FALSE(loop.meter.result().known());
}

TEST(OverheadMeter, ASecondRunDoesNotSpoilTheFirst) {
  Loop loop{OverheadMeter(0.1, {.min_ns = 100'000, .min_steps = 10}), 1200, 1000};
  loop.run(50'000);
  loop.now += 1'000'000'000;  // a pause between two runs
  loop.run(50'000);
  EXPECT_NEAR(loop.meter.result().value, 0.2, 1e-9);
}

std::vector<SeenKernel> kernels_of(const std::vector<uint32_t>& names, size_t per_step, TimeNs gap) {
  std::vector<SeenKernel> kernels;
  TimeNs now = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    now += i % per_step == 0 ? gap : 100;
    kernels.push_back({now, now + 500, names[i]});
    now += 500;
  }
  return kernels;
}

TEST(StepPattern, FindsThePeriodOfALoop) {
  std::vector<uint32_t> names;
  for (int step = 0; step < 200; ++step) names.insert(names.end(), {1, 2, 1, 2, 1, 2, 3});  // layers inside a step
  EXPECT_EQ(find_period(names), 7u);
}

TEST(StepPattern, FindsNoPeriodWhereThereIsNone) {
  std::mt19937 random(1);
  std::vector<uint32_t> names(5000);
  for (uint32_t& name : names) name = random() % 50;
  EXPECT_EQ(find_period(names), 0u);
  EXPECT_EQ(find_period({}), 0u);
}

TEST(StepPattern, StepsBeginAfterTheLongGapAndTouch) {
  std::vector<uint32_t> names;
  for (int step = 0; step < 100; ++step) names.insert(names.end(), {5, 6, 7, 8});
  const auto steps = find_steps(kernels_of(names, 4, 3000));
  ASSERT_EQ(steps.size(), 100u);
  for (size_t i = 0; i + 1 < steps.size(); ++i) EXPECT_EQ(steps[i].end, steps[i + 1].start);
}

// Like PyTorch's loops: the longest wait is in the middle of a step, before the optimizer's kernel.
TEST(StepPattern, ALoopBeginsAndEndsWithWholeSteps) {
  std::vector<uint32_t> names{0, 0};  // preparation
  for (int step = 0; step < 200; ++step) names.insert(names.end(), {1, 2, 3, 4, 5, 6, 15});
  std::vector<SeenKernel> kernels;
  TimeNs now = 0;
  for (uint32_t name : names) {
    now += name == 15 ? 70'000 : name == 1 ? 45'000 : 5000;
    kernels.push_back({now, now + 400, name});
    now += 400;
  }
  const auto steps = find_steps(kernels);
  ASSERT_EQ(steps.size(), 200u);
  EXPECT_EQ(steps[0].start, kernels[2].start);
  EXPECT_EQ(steps.back().end, kernels.back().end);
}

// The first step of Adam clears its state first; one in a hundred prints, which takes a kernel in the middle.
TEST(StepPattern, CountsStepsThatDoMoreThanUsual) {
  std::vector<uint32_t> names{0, 0};
  for (int step = 0; step < 300; ++step) {
    names.insert(names.end(), {1, 2, 3});
    if (step == 0) names.insert(names.end(), {40, 40, 40, 40});
    if (step % 100 == 50) names.push_back(50);
    names.insert(names.end(), {4, 5, 6, 15});
  }
  names.insert(names.end(), {1, 2, 3, 1, 2, 3, 60});  // an evaluation is no step
  const auto steps = find_steps(kernels_of(names, 7, 100));
  ASSERT_EQ(steps.size(), 300u);
  for (size_t i = 0; i + 1 < steps.size(); ++i) EXPECT_LE(steps[i].end, steps[i + 1].start);
}

TEST(StepPattern, SkipsWhatIsNoStep) {
  std::vector<uint32_t> names{90, 91, 92, 93, 94};  // preparation
  for (int step = 0; step < 50; ++step) names.insert(names.end(), {5, 6, 7, 8});
  names.insert(names.end(), {70, 71, 70, 71, 70, 71});  // an evaluation
  for (int step = 0; step < 50; ++step) names.insert(names.end(), {5, 6, 7, 8});
  std::vector<SeenKernel> kernels;
  TimeNs now = 0;
  for (uint32_t name : names) {
    now += name == 5 ? 5000 : 100;
    kernels.push_back({now, now + 400, name});
    now += 400;
  }
  EXPECT_EQ(find_steps(kernels).size(), 100u);
}

TEST(StepPattern, KnowsRangesThatNameSteps) {
  for (const char* name : {"step 12", "Iteration#3", "ProfilerStep#7", "train_step", "iter: 4"})
    EXPECT_TRUE(names_a_step(name)) << name;
  for (const char* name : {"forward", "stepping stone", "optimizer", "SGD.step", "Optimizer.step#Adam.step", "", "3"}) EXPECT_FALSE(names_a_step(name)) << name;
}

}  // namespace
}  // namespace ws::prof
