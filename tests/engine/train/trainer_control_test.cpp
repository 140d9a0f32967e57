#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/engine/train/train_support.h"
#include "tests/support/machine.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

using namespace std::chrono_literals;
using test::Recorder;
using test::small_spec;

// A run that does not end by itself, on a thread of its own.
class Steered : public testing::Test {
 protected:
  void SetUp() override {
    spec_.train.epochs = 1'000'000'000;
    spec_.train.eval_every = 0;
  }
  void start() {
    result_ = std::async(std::launch::async, [this] { return train(spec_, data_, control_, sink_); });
    wait_for([this] { return sink_.count() > 10; });
  }
  void TearDown() override {
    control_.stop();
    if (result_.valid()) result_.wait();
  }
  template <class Condition>
  void wait_for(Condition condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(condition());
  }
  // Returns when everything asked before was done.
  void settle() {
    std::promise<void> answered;
    control_.ask([&](Executor&) { answered.set_value(); });
    answered.get_future().wait();
  }
  void pause() {
    control_.pause();
    settle();
    settle();
  }

  RunSpec spec_ = small_spec();
  data::Dataset data_ = test::random_data(50, 6, 3, true);
  TrainControl control_;
  Recorder sink_;
  std::future<Summary> result_;
};

TEST_F(Steered, PausesStepsAndResumes) {
  start();
  pause();
  const size_t at_pause = sink_.count();
  settle();
  EXPECT_EQ(sink_.count(), at_pause);
  control_.step_once();
  wait_for([&] { return sink_.count() == at_pause + 1; });
  control_.step_once();
  control_.step_once();
  wait_for([&] { return sink_.count() == at_pause + 3; });
  settle();
  EXPECT_EQ(sink_.count(), at_pause + 3);
  control_.resume();
  wait_for([&] { return sink_.count() > at_pause + 50; });
}

TEST_F(Steered, StopsSoonAndKeepsWhatItHas) {
  start();
  const auto asked = std::chrono::steady_clock::now();
  control_.stop();
  const Summary s = result_.get();
  EXPECT_LT(std::chrono::steady_clock::now() - asked, test::busy() * 1s);
  EXPECT_EQ(s.status, RunStatus::Stopped);
  EXPECT_EQ(s.steps, static_cast<int64_t>(sink_.count()));
}

TEST_F(Steered, StopsWhilePaused) {
  start();
  pause();
  control_.stop();
  EXPECT_EQ(result_.get().status, RunStatus::Stopped);
}

TEST_F(Steered, TimeStandsStillDuringAPause) {
  start();
  const auto asked = std::chrono::steady_clock::now();
  pause();
  std::this_thread::sleep_for(1s);
  double before = 0;  // read on the training thread, which writes it
  std::promise<void> answered;
  control_.ask([&](Executor&) {
    before = sink_.last.elapsed_s;
    answered.set_value();
  });
  answered.get_future().wait();
  control_.step_once();
  settle();
  control_.stop();
  const double counted = result_.get().wall_s - before;
  EXPECT_LT(counted, std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count() - 0.5);
}

TEST_F(Steered, ChangesChoicesInMidRun) {
  start();
  control_.change("train.lr", "0.001");
  control_.change("exec.fusion", "off");
  control_.change("exec.allocator", "caching");
  settle();
  wait_for([n = sink_.count(), this] { return sink_.count() > n + 20; });
  control_.stop();
  const Summary s = result_.get();
  EXPECT_EQ(s.status, RunStatus::Stopped);
  EXPECT_EQ(s.spec.train.lr, 0.001);
  EXPECT_EQ(s.spec.exec.fusion, Fusion::Off);
  EXPECT_EQ(sink_.changes.size(), 3u);
  EXPECT_GE(sink_.plans.size(), 1u);
}

TEST_F(Steered, RefusesWhatCannotRunAndGoesOn) {
  start();
  control_.change("exec.launch", "graph");  // on the CPU
  settle();
  const size_t now = sink_.count();
  wait_for([&] { return sink_.count() > now + 20; });
  control_.stop();
  EXPECT_EQ(result_.get().spec.exec.launch, Launch::Eager);
  ASSERT_EQ(sink_.refusals.size(), 1u);
  EXPECT_TRUE(sink_.changes.empty());
}

TEST_F(Steered, ThrowsForAFieldThatIsFixed) {
  EXPECT_THROW(control_.change("model.hidden", "9"), SpecError);
  EXPECT_THROW(control_.change("train.lr", "fast"), SpecError);
  EXPECT_THROW(control_.change("train.speed", "9"), SpecError);
}

// The values that survive a step do not depend on how the steps run.
// A step may take seconds: no step is begun after the answer to the first, also where a GPU would launch several in a graph.
TEST(Stop, OnTheCpuIsAnsweredBetweenTwoSteps) {
  const auto data = test::random_data(2000, 6, 3, true);
  RunSpec spec = small_spec();
  spec.exec.launch = Launch::Auto;
  Recorder sink;
  TrainControl control;
  sink.on_steps = [&] { control.stop(); };
  train(spec, data, control, sink);
  EXPECT_LE(sink.losses.size(), 2u);
}

TEST(MidRunChange, LeavesTheLossesAlone) {
  const auto data = test::random_data(50, 6, 3, true);
  RunSpec spec = small_spec();
  spec.exec.fusion = Fusion::Off;
  Recorder plain, changed;
  TrainControl first, second;
  train(spec, data, first, plain);
  changed.on_steps = [&] {
    if (changed.losses.size() == 1) second.change("exec.fusion", "epilogue");
  };
  train(spec, data, second, changed);
  ASSERT_EQ(changed.changes.size(), 1u);
  ASSERT_EQ(plain.losses.size(), changed.losses.size());
  for (size_t i = 0; i < plain.losses.size(); ++i) EXPECT_NEAR(plain.losses[i], changed.losses[i], 1e-5) << i;
}

// A change of precision keeps weights, moments and, for the next stretch of fp16, the loss scale.
TEST(MidRunChange, OfThePrecisionGoesOnFromTheSameWeights) {
  const auto data = test::random_data(50, 6, 3, true);
  RunSpec spec = small_spec();
  spec.train.epochs = 6;
  spec.train.optimizer = Optimizer::Adam;
  Recorder plain, changed;
  TrainControl first, second;
  train(spec, data, first, plain);
  double scale = 0;
  int asked = 0;
  changed.on_steps = [&] {
    const size_t steps = changed.losses.size();
    if (asked == 0) second.change("exec.precision", "fp16"), ++asked;
    if (asked == 1 && steps >= 9) second.change("exec.precision", "bf16"), ++asked;
    if (asked == 2 && steps >= 15) {
      ++asked;
      second.change("exec.precision", "fp32");
      second.ask([&](Executor& executor) { scale = executor.state().loss_scale; });
    }
  };
  const Summary s = train(spec, data, second, changed);
  EXPECT_EQ(s.status, RunStatus::Finished) << s.message;
  ASSERT_EQ(changed.changes.size(), 3u);
  EXPECT_EQ(changed.changes[0].to, "fp16");
  EXPECT_EQ(changed.changes[2].to, "fp32");
  ASSERT_EQ(plain.losses.size(), changed.losses.size());
  bool other = false;
  for (size_t i = 0; i < plain.losses.size(); ++i) {
    EXPECT_NEAR(plain.losses[i], changed.losses[i], 0.02) << i;
    other = other || plain.losses[i] != changed.losses[i];
  }
  EXPECT_TRUE(other) << "the steps in half precision are not those in single";
  EXPECT_EQ(scale, 65536);
}

TEST_F(Steered, RefusesALoaderAndASumThatTheCpuHasNot) {
  start();
  control_.change("exec.loader", "pinned");
  settle();
  control_.change("exec.accumulate", "fp16");
  settle();
  wait_for([n = sink_.count(), this] { return sink_.count() > n + 20; });
  control_.stop();
  const Summary s = result_.get();
  EXPECT_EQ(s.status, RunStatus::Stopped) << s.message;
  EXPECT_EQ(s.spec.exec.loader, Loader::Resident);
  ASSERT_EQ(sink_.refusals.size(), 2u);
  EXPECT_TRUE(sink_.refusals[0].starts_with("exec.loader: pinned")) << sink_.refusals[0];
  EXPECT_TRUE(sink_.refusals[1].starts_with("exec.accumulate: fp16")) << sink_.refusals[1];
}

}  // namespace
}  // namespace ws
