#include "engine/cpu/cpu_executor.h"
#include "engine/train/checkpoint.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "tests/engine/train/train_support.h"
#include "tests/support/own_file.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

using test::Recorder;
using test::small_spec;
using test::Trained;
using test::trained;

// Stops when `steps` results have come, leaving a checkpoint.
Trained trained_until(const RunSpec& spec, const data::Dataset& data, size_t steps, const std::string& checkpoint) {
  TrainOptions options;
  options.checkpoint = checkpoint;
  return trained(spec, data, options, steps);
}

TEST(LearningRate, WarmsUpThenFollowsItsSchedule) {
  TrainSpec spec;
  spec.lr = 0.8;
  spec.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(learning_rate(spec, 0, 10), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 3, 10), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 1000, 10), 0.8);
  spec.warmup_steps = 0;
  spec.schedule = Schedule::Step;
  spec.step_epochs = 2;
  spec.step_factor = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(spec, 19, 10), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 20, 10), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 45, 10), 0.2);
  spec.schedule = Schedule::Cosine;
  spec.epochs = 10;
  EXPECT_DOUBLE_EQ(learning_rate(spec, 0, 10), 0.8);
  EXPECT_NEAR(learning_rate(spec, 50, 10), 0.4, 1e-12);
  EXPECT_LT(learning_rate(spec, 99, 10), 0.001);
}

TEST(EpochOrder, IsASeededPermutationThatChangesEachEpoch) {
  TrainSpec spec;
  spec.batch = 10;
  const auto first = epoch_order(spec, 1000, 0), again = epoch_order(spec, 1000, 0),
             second = epoch_order(spec, 1000, 1);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<uint32_t>(first.begin(), first.end()).size(), 1000u);
  spec.shuffle = false;
  const auto plain = epoch_order(spec, 1000, 7);
  EXPECT_TRUE(std::ranges::is_sorted(plain));
}

TEST(Trainer, RunsEveryRowOnceAnEpochAndCountsThem) {
  const auto data = test::random_data(50, 6, 3, true);  // 16 + 16 + 16 + 2
  TrainControl control;
  Recorder sink;
  const Summary s = train(small_spec(), data, control, sink);
  EXPECT_EQ(s.status, RunStatus::Finished) << s.message;
  EXPECT_EQ(s.steps, 12);
  EXPECT_EQ(s.epochs, 3);
  ASSERT_EQ(sink.numbers.size(), 12u);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(sink.numbers[i], static_cast<int64_t>(i));
  EXPECT_TRUE(std::ranges::is_sorted(sink.times));
  ASSERT_EQ(sink.epochs.size(), 3u);
  EXPECT_EQ(sink.epochs[2].step, 12);
  const double mean =
      (16.0 * sink.losses[0] + 16.0 * sink.losses[1] + 16.0 * sink.losses[2] + 2.0 * sink.losses[3]) / 50;
  EXPECT_NEAR(sink.epochs[0].train_loss, mean, 1e-6);
  EXPECT_TRUE(sink.epochs[0].test);
  EXPECT_EQ(sink.endings, 1);
}

TEST(Trainer, TrainsOnTheRowsLeftOverByHand) {
  const auto data = test::random_data(10, 6, 3, true);
  RunSpec spec = small_spec();
  spec.train.batch = 8;
  spec.train.epochs = 1;
  spec.train.shuffle = false;
  TrainOptions options;
  options.checkpoint = test::own_file("left-over.wsck");
  trained(spec, data, options);
  const Model model = make_model(spec.model, 6, 3);
  auto executor = make_cpu_executor();
  executor->load(model, data, spec);
  executor->set_state(first_state(model, spec));
  const std::vector<float> rate(1, static_cast<float>(spec.train.lr));
  executor->begin_epoch(epoch_order(spec.train, 10, 0));
  const auto whole = compile(spec, model, 8), rest = compile(spec, model, 2);
  executor->bind(whole.plan);
  executor->run(0, 0, rate);
  executor->bind(rest.plan);
  executor->run(1, 8, rate);
  EXPECT_EQ(load_checkpoint(options.checkpoint).state.parameters, executor->state().parameters);
}

TEST(Trainer, IsTheSameForTheSameSeed) {
  const auto data = test::random_data(50, 6, 3, true);
  EXPECT_EQ(trained(small_spec(), data).losses, trained(small_spec(), data).losses);
  RunSpec other = small_spec();
  other.train.seed = 43;
  EXPECT_NE(trained(small_spec(), data).losses, trained(other, data).losses);
}

class Resume : public testing::TestWithParam<Optimizer> {};

TEST_P(Resume, GoesOnBitForBit) {
  const auto data = test::random_data(50, 6, 3, true);
  RunSpec spec = small_spec();
  spec.train.optimizer = GetParam();
  spec.train.schedule = Schedule::Cosine;
  spec.train.epochs = 6;
  const auto whole = trained(spec, data);
  for (const size_t stop_after : {1u, 4u, 6u, 11u}) {
    const std::string path = test::own_file("resume.wsck");
    auto part = trained_until(spec, data, stop_after, path);
    EXPECT_EQ(part.summary.status, RunStatus::Stopped);
    TrainOptions options;
    options.resume_from = path;
    const auto rest = trained(spec, data, options);
    EXPECT_EQ(rest.summary.status, RunStatus::Finished) << rest.summary.message;
    part.losses.insert(part.losses.end(), rest.losses.begin(), rest.losses.end());
    ASSERT_EQ(part.losses.size(), whole.losses.size());
    EXPECT_EQ(std::memcmp(part.losses.data(), whole.losses.data(), whole.losses.size() * sizeof(float)), 0);
    EXPECT_EQ(rest.summary.test_loss, whole.summary.test_loss);
  }
}
INSTANTIATE_TEST_SUITE_P(Optimizers, Resume, testing::Values(Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam));

RunSpec prepared_pictures_spec() {
  RunSpec spec = small_spec();
  spec.data.name = "shapes", spec.data.crop = 2, spec.data.flip = true;
  spec.model.layers = "conv 3x3 4 | relu | maxpool 2 | linear";
  return spec;
}

TEST(Trainer, CropsAndMirrorsTheSamePicturesInEveryRunAndAfterAResume) {
  const auto data = test::random_pictures(50, 8, 3, 4);
  const RunSpec spec = prepared_pictures_spec();
  const auto whole = trained(spec, data);
  ASSERT_EQ(whole.summary.status, RunStatus::Finished) << whole.summary.message;
  EXPECT_EQ(trained(spec, data).losses, whole.losses);
  RunSpec still = spec;
  still.data.crop = 0, still.data.flip = false;
  EXPECT_NE(trained(still, data).losses, whole.losses);
  const std::string path = test::own_file("pictures.wsck");
  auto losses = trained_until(spec, data, 6, path).losses;
  TrainOptions options;
  options.resume_from = path;
  const auto rest = trained(spec, data, options);
  EXPECT_EQ(rest.summary.status, RunStatus::Finished) << rest.summary.message;
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  EXPECT_EQ(losses, whole.losses);
}

TEST(Trainer, ReportsPicturesThatAreTooSmallForTheCrop) {
  RunSpec spec = prepared_pictures_spec();
  spec.data.crop = 8;
  EXPECT_EQ(trained(spec, test::random_pictures(50, 8, 3, 4)).summary.message,
            "crop: 8 pixels of padding leave nothing of a picture with a side of 8; choose at most 7.");
}

TEST(Trainer, RefusesTheCheckpointOfAnotherRun) {
  const auto data = test::random_data(50, 6, 3, true);
  const std::string path = test::own_file("other.wsck");
  trained_until(small_spec(), data, 2, path);
  TrainOptions options;
  options.resume_from = path;
  RunSpec spec = small_spec();
  spec.model.hidden = {9};
  const auto result = trained(spec, data, options);
  EXPECT_EQ(result.summary.status, RunStatus::Failed);
  EXPECT_NE(result.summary.message.find("model.hidden"), std::string::npos) << result.summary.message;
  spec = small_spec();
  spec.exec.fusion = Fusion::Off;  // how it runs may differ
  spec.train.epochs = 7;
  EXPECT_EQ(trained(spec, data, options).summary.status, RunStatus::Finished);
}

TEST(Trainer, StopsAtATargetAndAtATimeLimit) {
  const auto data = data::load({.name = "iris"});
  RunSpec spec = load_spec("iris");
  spec.exec.device = Device::Cpu;
  spec.train.epochs = 5000;
  spec.train.target_accuracy = 0.9;
  const auto reached = trained(spec, data).summary;
  EXPECT_EQ(reached.status, RunStatus::TargetReached);
  EXPECT_GE(reached.test_accuracy, 0.9);
  EXPECT_LT(reached.epochs, 5000);
  spec.train.target_accuracy = 0;
  spec.train.epochs = 1'000'000;
  spec.train.time_limit_s = 0.2;
  const auto timed = trained(spec, data).summary;
  EXPECT_EQ(timed.status, RunStatus::TimeUp);
  EXPECT_GE(timed.wall_s, 0.2);
  EXPECT_LT(timed.wall_s, 10) << "all epochs take a minute or more";
}

TEST(Trainer, ReportsWhyAModelDoesNotFit) {
  const auto data = test::random_data(50, 6, 3, true);
  RunSpec spec = small_spec();
  spec.model.hidden = std::vector<int64_t>(1000, 65536);
  const auto result = trained(spec, data).summary;
  EXPECT_EQ(result.status, RunStatus::Failed);
  EXPECT_NE(result.message.find("GiB"), std::string::npos) << result.message;
}

// What the data holds is known once it is loaded: a loss that does not suit it is a sentence, never a crash.
TEST(Trainer, EveryPairOfDataLossAndModelTrainsOrReportsWhatToChoose) {
  const std::string decimals = test::own_file("decimals.csv"), words = test::own_file("words.csv");
  std::ofstream numbers(decimals), names(words);
  numbers << "a,b,y\n", names << "a,b,y\n";
  for (int i = 0; i < 20; ++i) {
    numbers << i << ',' << i % 3 << ',' << 0.25 * i << '\n';
    names << i << ',' << i % 3 << ',' << (i % 2 ? "odd" : "even") << '\n';
  }
  numbers.close(), names.close();
  int well = 0, refused = 0;
  for (const std::string name : {"iris", "line", "blobs", "spirals", "circles", "xor", "decimals", "words"})
    for (const LossKind loss : {LossKind::CrossEntropy, LossKind::MeanSquared})
      for (const ModelKind kind : {ModelKind::Mlp, ModelKind::Linear}) {
        RunSpec spec = small_spec();
        spec.data.name = name, spec.data.points = 60;
        if (name == "decimals" || name == "words")
          spec.data.name = "csv", spec.data.path = name == "words" ? words : decimals, spec.data.label_column = "y";
        spec.model.loss = loss, spec.model.kind = kind, spec.train.epochs = 1, spec.train.lr = 1e-3;
        const Summary result = trained(spec, data::load(spec.data)).summary;
        const bool failed = result.status == RunStatus::Failed;
        ++(failed ? refused : well);
        EXPECT_TRUE(failed ? result.message.find("choose") != std::string::npos : std::isfinite(result.final_train_loss))
            << name << ' ' << to_string(loss) << ' ' << to_string(kind) << ": " << result.message;
      }
  EXPECT_EQ(well, 6 + 2 * 2) << "classes with cross-entropy and mlp; numbers with both models";
  EXPECT_EQ(refused, 32 - well);
}

TEST(Trainer, ReportsThatThereAreNoRows) {
  auto data = test::random_data(50, 6, 3, true);
  data.train = {};
  EXPECT_EQ(trained(small_spec(), data).summary.status, RunStatus::Failed);
}

}  // namespace
}  // namespace ws
