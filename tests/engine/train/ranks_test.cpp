// Several ranks on the CPU train what one rank trains.
#include "engine/cpu/cpu_executor.h"
#include "engine/cpu/host_ranks.h"
#include "engine/executor/ranked_executor.h"
#include "engine/passes/compile.h"
#include "engine/train/checkpoint.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/train/train_support.h"
#include "tests/support/own_file.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

using test::Recorder;
using test::small_spec;
using test::Trained;
using test::trained;

RunSpec spec_of(int ranks) {
  RunSpec spec = small_spec();
  spec.exec.gpus = ranks;
  return spec;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max<double>(most, std::fabs(a[i] - b[i]));
  return most;
}

std::unique_ptr<Executor> oracle(int ranks) {
  if (ranks == 1) return make_oracle();
  const auto group = std::make_shared<cpu::HostRanks>(ranks);
  return make_ranked_executor(ranks, group, [group](int rank) { return make_oracle({group, rank}); });
}

// The parameters after some epochs, by the float64 interpreter.
TrainState oracle_state(const RunSpec& spec, const data::Dataset& data, int epochs, std::vector<StepResult>& results) {
  const Model model = make_model(spec.model, data.features, data.outputs);
  const auto executor = oracle(static_cast<int>(spec.exec.gpus));
  executor->load(model, data, spec);
  executor->set_state(first_state(model, spec));
  const int64_t batch = spec.train.batch, whole_steps = data.train.rows / batch, rest = data.train.rows % batch;
  const CompiledPlan full = compile(spec, model, batch);
  CompiledPlan tail;
  if (rest) tail = compile(spec, model, rest);
  int64_t step = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    executor->begin_epoch(epoch_order(spec.train, data.train.rows, epoch));
    executor->bind(full.plan);
    executor->run(step, 0, std::vector<float>(static_cast<size_t>(whole_steps), 0.05f));
    step += whole_steps;
    if (!rest) continue;
    executor->bind(tail.plan);
    executor->run(step++, whole_steps * batch, std::vector<float>{0.05f});
  }
  executor->results(results, true);
  return executor->state();
}

TEST(RankRows, AreAllRowsOnceAndNearlyEqual) {
  for (int ranks : {1, 2, 3, 7})
    for (int64_t rows : {7, 64, 65, 1000}) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const RankRows part = rows_of_rank(rows, rank, ranks);
        EXPECT_EQ(part.first, next);
        EXPECT_NEAR(static_cast<double>(part.count), static_cast<double>(rows) / ranks, 1);
        next += part.count;
      }
      EXPECT_EQ(next, rows);
    }
}

TEST(InsertAllReduce, AveragesEveryGradientOnceBeforeItsUpdate) {
  RunSpec spec = spec_of(4);
  spec.model.hidden = {8, 8};
  const Model model = make_model(spec.model, 6, 3);
  for (Comm comm : {Comm::Bucket, Comm::Layers, Comm::Overlap})
    for (Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue}) {
      spec.exec.comm = comm, spec.exec.fusion = fusion;
      const Plan plan = compile(spec, model, 16).plan;
      EXPECT_EQ(plan.batch, 4);
      EXPECT_EQ(std::ranges::count(plan.ops, OpKind::AllReduce, &Op::kind), comm == Comm::Bucket ? 1 : 3);
      EXPECT_EQ(std::ranges::count(plan.ops, OpKind::GradientUpdate, &Op::kind), 0);
      std::vector<BufferId> averaged;
      for (const Op& op : plan.ops) {
        if (op.kind == OpKind::AllReduce) averaged.insert(averaged.end(), op.in.begin(), op.in.end());
        if (op.kind != OpKind::Update && op.kind != OpKind::UpdateAll) continue;
        for (const UpdateItem& item : update_items(plan, op)) EXPECT_EQ(std::ranges::count(averaged, item.gradient), 1);
      }
      EXPECT_EQ(averaged.size(), model.parameters.size());
    }
}

// The layers of each UpdateAll.
using Layers = std::vector<std::vector<int>>;
Layers updated_layers(const RunSpec& spec, int64_t features) {
  const Model model = make_model(spec.model, features, 10);
  const Plan plan = compile(spec, model, 64).plan;
  Layers layers;
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::UpdateAll) continue;
    layers.emplace_back();
    for (const UpdateItem& item : update_items(plan, op))
      layers.back().push_back(model.parameters[static_cast<size_t>(item.param)].layer);
  }
  return layers;
}

// The transfer of the first layer's gradients comes late, and the other layers' update hides it.
TEST(InsertAllReduce, LeavesTheUpdatesOfLateTransfersForTheEnd) {
  RunSpec spec = spec_of(2);
  spec.model.hidden = {1024, 64};
  spec.exec.comm = Comm::Overlap, spec.exec.fusion = Fusion::Epilogue;
  EXPECT_EQ(updated_layers(spec, 600), (Layers{{1, 1, 2, 2}, {0, 0}}));
  EXPECT_EQ(updated_layers(spec, 1200), (Layers{{1, 1}, {0, 0, 2, 2}})) << "the output layer's gradients come last";
  spec.exec.comm = Comm::Bucket;
  EXPECT_EQ(updated_layers(spec, 600), (Layers{{0, 0, 1, 1, 2, 2}}));
}

// The layers in the order in which their gradients are averaged.
std::vector<int> averaged_layers(const RunSpec& spec, int64_t features) {
  std::vector<int> layers;
  const Plan plan = compile(spec, make_model(spec.model, features, 10), 64).plan;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::AllReduce) layers.push_back(op.layer);
  return layers;
}

TEST(InsertAllReduce, HidesALongLastTransferBehindTheOutputLayersGradients) {
  RunSpec spec = spec_of(2);
  spec.exec.comm = Comm::Overlap;
  spec.model.hidden = {1024, 64};
  for (Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue}) {
    spec.exec.fusion = fusion;
    EXPECT_EQ(averaged_layers(spec, 1200), (std::vector<int>{1, 0, 2}));  // 4.7 MiB in the first layer
    EXPECT_EQ(averaged_layers(spec, 600), (std::vector<int>{2, 1, 0})) << "a short transfer";
  }
  spec.exec.comm = Comm::Layers;
  EXPECT_EQ(averaged_layers(spec, 1200), (std::vector<int>{2, 1, 0}));
  spec.exec.comm = Comm::Overlap, spec.model.hidden = {1024, 30'000};
  EXPECT_EQ(averaged_layers(spec, 1200), (std::vector<int>{2, 1, 0})) << "the output layer's is long, too";
}

TEST(InsertAllReduce, FillsBucketsToTheSizeThatIsAskedFor) {
  RunSpec spec = spec_of(2);
  spec.model.hidden = {256, 256, 256};  // 256 KiB of gradients in the middle layers
  spec.exec.comm = Comm::Layers;
  const Model model = make_model(spec.model, 6, 3);
  const auto transfers = [&](double mib) {
    spec.exec.bucket_mib = mib;
    return std::ranges::count(compile(spec, model, 16).plan.ops, OpKind::AllReduce, &Op::kind);
  };
  EXPECT_EQ(transfers(0), 4);
  EXPECT_EQ(transfers(0.3), 2);
  EXPECT_EQ(transfers(10), 1);
}

TEST(Ranks, TrainAsOneToTheLastBitsOfDouble) {
  for (bool classes : {true, false}) {
    const data::Dataset data = test::random_data(90, 6, 3, classes);  // 5 batches of 16, and 10 rows
    RunSpec spec = spec_of(1);
    spec.model.loss = classes ? LossKind::CrossEntropy : LossKind::MeanSquared;
    spec.train.optimizer = Optimizer::Momentum;
    std::vector<StepResult> want;
    const TrainState one = oracle_state(spec, data, 4, want);
    for (int ranks : {2, 3, 4, 8})
      for (Comm comm : {Comm::Bucket, Comm::Overlap}) {
        spec.exec.gpus = ranks, spec.exec.comm = comm;
        std::vector<StepResult> got;
        const TrainState many = oracle_state(spec, data, 4, got);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(got[i].step, want[i].step);
          EXPECT_NEAR(static_cast<double>(got[i].loss), static_cast<double>(want[i].loss), 2e-7);  // results are floats
        }
        for (size_t p = 0; p < one.parameters.size(); ++p)
          for (size_t i = 0; i < one.parameters[p].size(); ++i)
            EXPECT_NEAR(static_cast<double>(many.parameters[p][i]), static_cast<double>(one.parameters[p][i]), 1.2e-7 * 4);
      }
    spec.exec.gpus = 1, spec.exec.comm = Comm::Bucket;
  }
}

TEST(Ranks, KeepTheLossesOfOneRankOver200Steps) {
  const data::Dataset data = test::random_data(160, 6, 3, true);
  for (Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam})
    for (Fusion fusion : {Fusion::Off, Fusion::Epilogue}) {
      RunSpec spec = spec_of(1);
      spec.train.epochs = 20;
      spec.train.optimizer = optimizer, spec.exec.fusion = fusion;
      const Trained one = trained(spec, data);
      for (int ranks : {2, 3, 4, 8}) {
        spec.exec.gpus = ranks;
        const Trained many = trained(spec, data);
        EXPECT_EQ(many.summary.status, RunStatus::Finished) << many.summary.message;
        EXPECT_LT(largest_difference(many.losses, one.losses), 1e-5);
        EXPECT_NEAR(many.summary.test_loss, one.summary.test_loss, 1e-5);
        EXPECT_DOUBLE_EQ(many.summary.test_accuracy, one.summary.test_accuracy);
        EXPECT_EQ(trained(spec, data).losses, many.losses) << "two runs differ";
      }
    }
}

TEST(Ranks, SeeThePicturesOfOneRank) {
  const data::Dataset data = test::random_pictures(90, 8, 1, 3);
  RunSpec spec = spec_of(1);
  spec.data.name = "shapes", spec.data.crop = 3, spec.data.flip = true;
  const Trained one = trained(spec, data);
  for (int ranks : {2, 3}) {
    spec.exec.gpus = ranks;
    EXPECT_LT(largest_difference(trained(spec, data).losses, one.losses), 1e-5);
  }
}

TEST(Ranks, ShareWholeSetsAndHalfPrecision) {
  const data::Dataset data = test::random_data(90, 6, 3, true);
  RunSpec spec = spec_of(1);
  spec.train.batch = 0;
  spec.train.epochs = 30;
  const Trained whole = trained(spec, data);
  spec.exec.precision = Precision::Fp16;
  const Trained half = trained(spec, data);
  for (int ranks : {2, 4}) {
    spec.exec.gpus = ranks;
    EXPECT_LT(largest_difference(trained(spec, data).losses, half.losses), 3e-3);
    spec.exec.precision = Precision::Fp32;
    EXPECT_LT(largest_difference(trained(spec, data).losses, whole.losses), 1e-5);
    spec.exec.precision = Precision::Fp16;
  }
}

TEST(Ranks, GoOnFromACheckpointWithOthers) {
  const data::Dataset data = test::random_data(90, 6, 3, true);
  const std::string file = test::own_file("ranks.wsckpt");
  RunSpec spec = spec_of(1);
  spec.train.epochs = 12;
  const Trained one = trained(spec, data);
  TrainOptions options;
  options.checkpoint = file;
  std::vector<float> joined;
  for (const auto& [ranks, stop] : {std::pair{2, 20}, std::pair{4, 20}, std::pair{1, 0}}) {
    spec.exec.gpus = ranks;
    const Trained part = trained(spec, data, options, static_cast<size_t>(stop));
    joined.insert(joined.end(), part.losses.begin(), part.losses.end());
    options.resume_from = file;
  }
  EXPECT_LT(largest_difference(joined, one.losses), 1e-5);
}

TEST(Ranks, RefuseABatchThatTheyCannotShare) {
  RunSpec spec = spec_of(4);
  spec.train.batch = 16;
  const Trained rest = trained(spec, test::random_data(34, 6, 3, true));  // 2 rows are left over
  EXPECT_EQ(rest.summary.status, RunStatus::Failed);
  EXPECT_EQ(rest.summary.message,
            "The last batch of an epoch has 2 rows, fewer than the 4 ranks: choose another batch or fewer GPUs.");
  spec.exec.device = Device::Cuda, spec.exec.allocator = Allocator::Caching;
  EXPECT_NE(why_invalid(spec, true).value_or(Refusal()).text.find("choose allocator arena"), std::string::npos);
  spec.exec.device = Device::Cpu;
  EXPECT_FALSE(why_invalid(spec, true));
  spec.train.batch = 3;
  EXPECT_NE(why_invalid(spec, false).value_or(Refusal()).text.find("a batch of 3 rows"), std::string::npos);
}

// Fails in its n-th step; the other ranks wait for it in the middle of theirs.
class FailingRank final : public Executor {
 public:
  FailingRank(std::unique_ptr<Executor> inner, int64_t at) : inner_(std::move(inner)), at_(at) {}
  std::string device_name() const override { return inner_->device_name(); }
  void load(const Model& m, const data::Dataset& d, const RunSpec& s) override { inner_->load(m, d, s); }
  void set_state(const TrainState& s) override { inner_->set_state(s); }
  TrainState state() override { return inner_->state(); }
  void bind(const Plan& plan) override { inner_->bind(plan); }
  void begin_epoch(std::span<const uint32_t> order) override { inner_->begin_epoch(order); }
  void run(int64_t step, int64_t row, std::span<const float> lrs) override {
    if (step + static_cast<int64_t>(lrs.size()) > at_) throw Failure("the device is gone");
    inner_->run(step, row, lrs);
  }
  void results(std::vector<StepResult>& out, bool wait) override { inner_->results(out, wait); }
  Evaluation evaluate(Part part, RankRows rows) override { return inner_->evaluate(part, rows); }
  std::vector<float> predict(std::span<const float> x, int64_t rows) override { return inner_->predict(x, rows); }
  MemoryUse memory() const override { return inner_->memory(); }
  AllocatorCalls allocator_calls() const override { return inner_->allocator_calls(); }

 private:
  std::unique_ptr<Executor> inner_;
  int64_t at_;
};

TEST(Ranks, EndTogetherWhenOneFails) {
  const data::Dataset data = test::random_data(90, 6, 3, true);
  const RunSpec spec = spec_of(3);
  const Model model = make_model(spec.model, data.features, data.outputs);
  const auto group = std::make_shared<cpu::HostRanks>(3);
  const auto executor = make_ranked_executor(3, group, [&](int rank) -> std::unique_ptr<Executor> {
    auto made = make_cpu_executor("CPU", {group, rank});
    if (rank != 1) return made;
    return std::make_unique<FailingRank>(std::move(made), 2);
  });
  executor->load(model, data, spec);
  executor->set_state(first_state(model, spec));
  executor->bind(compile(spec, model, 16).plan);
  executor->begin_epoch(epoch_order(spec.train, 90, 0));
  executor->run(0, 0, std::vector<float>(2, 0.05f));
  try {
    executor->run(2, 32, std::vector<float>(2, 0.05f));
    FAIL() << "nobody noticed";
  } catch (const Failure& problem) {
    EXPECT_STREQ(problem.what(), "the device is gone");
  }
}

}  // namespace
}  // namespace ws
