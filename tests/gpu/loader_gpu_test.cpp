// The three loaders, with and without graphs, bring the same rows.
#include "datasets/split.h"
#include "engine/train/trainer.h"
#include "tests/gpu/executor_support.h"

namespace ws::test {
namespace {

TEST(LoaderGpu, EveryLoaderTrainsOnTheSameRows) {
  NEEDS_GPU();
  Combinations combinations;
  for (const int64_t features : {3, 28, 64})  // rows of 12 bytes begin at odd addresses
    for (const bool classes : {true, false}) {
      Training t;
      t.spec.model.hidden = {16};
      t.spec.model.loss = classes ? LossKind::CrossEntropy : LossKind::MeanSquared;
      t.batch = 50;
      t.epochs = 3;
      t.data = random_data(333, features, 7, classes);
      const Outcome want = train_on_oracle(t);
      for (const Loader loader : {Loader::Resident, Loader::Pinned, Loader::Pageable})
        for (const Launch launch : kLaunches)
          for (const Precision precision : {Precision::Fp32, Precision::Fp16})
            for (const int64_t graph_steps : {1, 4}) {
              t.spec.exec.loader = loader, t.spec.exec.launch = launch, t.spec.exec.precision = precision;
              t.spec.exec.graph_steps = graph_steps;
              if (combinations.leave_out() || why_invalid(t.spec, true)) continue;
              SCOPED_TRACE(std::string(to_string(loader)) + " " + label(t.spec.exec) + " x" +
                           std::to_string(graph_steps));
              const Outcome got = train_on_gpu(t);
              EXPECT_LT(distance(got, want, t), tolerance(precision));
              expect_same_losses(got, want, tolerance(precision));
            }
    }
}

TEST(LoaderGpu, EveryLoaderAndLaunchSeesTheSameCropsAndMirrorImages) {
  NEEDS_GPU();
  Training t;
  t.spec.data.name = "shapes", t.spec.data.crop = 2, t.spec.data.flip = t.spec.data.normalise = true;
  t.spec.model.layers = "conv 3x3 8 | relu | maxpool 2 | linear";
  t.spec.train.seed = 3;
  t.batch = 50;
  t.epochs = 2;
  t.data = random_pictures(333, 8, 3, 7);
  data::measure_channels(t.data);
  const Outcome want = train_on_oracle(t);
  for (const Loader loader : {Loader::Resident, Loader::Pinned, Loader::Pageable})
    for (const Launch launch : kLaunches)
      for (const Fusion fusion : {Fusion::Off, Fusion::Epilogue}) {
        t.spec.exec.loader = loader, t.spec.exec.launch = launch, t.spec.exec.fusion = fusion;
        if (why_invalid(t.spec, true)) continue;
        SCOPED_TRACE(std::string(to_string(loader)) + " " + label(t.spec.exec));
        const Outcome got = train_on_gpu(t);
        EXPECT_LT(distance(got, want, t), tolerance(Precision::Fp32));
        expect_same_losses(got, want, tolerance(Precision::Fp32));
      }
}

TEST(LoaderGpu, RowsThatTheLibraryMultiplies) {
  NEEDS_GPU();
  Training t;
  t.spec.model.hidden = {2048};
  t.batch = 512;
  t.data = random_data(1800, 784, 10, true);
  t.epochs = 2;
  const Outcome want = train_on_oracle(t);
  for (const Launch launch : kLaunches)
    for (const int64_t graph_steps : {1, 3}) {
      t.spec.exec.launch = launch, t.spec.exec.graph_steps = graph_steps;
      EXPECT_LT(distance(train_on_gpu(t), want, t), tolerance(Precision::Fp32)) << label(t.spec.exec);
    }
}

// Asks for one change after the other while the run goes on.
struct Switching : TrainSink {
  Switching(TrainControl& steered, std::vector<std::pair<std::string, std::string>> asked)
      : control(steered), wanted(std::move(asked)) {}
  void steps(std::span<const StepResult> results) override {
    for (const StepResult& r : results) losses.push_back(r.loss);
    if (next < wanted.size() && losses.size() >= 30 * (next + 1)) {
      control.change(wanted[next].first, wanted[next].second);
      ++next;
    }
  }
  void changed(const Change& change) override { changes.push_back(change); }
  void refused(const Change& change, const std::string& why) override { ADD_FAILURE() << change.key << ": " << why; }

  TrainControl& control;
  std::vector<std::pair<std::string, std::string>> wanted;
  size_t next = 0;
  std::vector<float> losses;
  std::vector<Change> changes;
};

TEST(LoaderGpu, ChangesInMidRunWithPrecisionAndSums) {
  NEEDS_GPU();
  RunSpec spec;
  spec.exec.device = Device::Cuda;
  spec.model.hidden = {32};
  spec.train.batch = 50;
  spec.train.epochs = slow_gpu() ? 10 : 20;  // of 20 steps; the last change comes after 150
  spec.train.lr = 0.01;
  const data::Dataset data = random_data(990, 28, 7, true);
  const auto run = [&](std::vector<std::pair<std::string, std::string>> wanted) {
    TrainControl control;
    Switching sink(control, std::move(wanted));
    const Summary s = train(spec, data, control, sink);
    EXPECT_EQ(s.status, RunStatus::Finished) << s.message;
    EXPECT_EQ(sink.changes.size(), sink.wanted.size());
    return sink.losses;
  };
  const std::vector<float> plain = run({});
  const auto loaders = run({{"exec.loader", "pinned"}, {"exec.loader", "pageable"}, {"exec.loader", "resident"}});
  ASSERT_EQ(loaders.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(loaders[i], plain[i], 2e-3f * plain[i]) << i;
  const auto precise = run({{"exec.precision", "tf32"},
                            {"exec.precision", "fp16"},
                            {"exec.accumulate", "fp16"},
                            {"exec.accumulate", "fp32"},
                            {"exec.precision", "fp32"}});
  ASSERT_EQ(precise.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(precise[i], plain[i], 0.1f * plain[i] + 0.05f) << i;
}

}  // namespace
}  // namespace ws::test
