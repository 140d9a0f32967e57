// Transformers end on the GPU where they end on the CPU, in every way of running a step.
#include "tests/gpu/executor_support.h"

namespace ws::test {
namespace {

struct Network {
  const char* layers;
  int64_t context, symbols;
};

// The second one is wide enough for its weight gradients to run together; the third fits no access of 16 bytes.
constexpr Network kNetworks[] = {
    {"embed 32 | 2 x block(heads 2) | layernorm | linear", 24, 11},
    {"embed 192 | block(heads 3) | layernorm | linear", 8, 40},
    {"embed 15 positions off | layernorm | attention heads 3 bias off | linear", 7, 5},
};

Training training_of(const Network& network) {
  Training t;
  t.spec.model.layers = network.layers;
  t.spec.train.optimizer = Optimizer::Momentum;
  t.spec.train.nesterov = true;
  t.spec.train.label_smoothing = 0.1;
  t.spec.train.clip = 1;
  t.spec.train.lr = 0.02;
  t.spec.exec.device = Device::Cuda;
  t.batch = 9;
  t.data = random_text(3 * t.batch + 4, network.context, network.symbols);
  return t;
}

// In fp16 the first gradients can be too large for the first loss scale. Such a step is skipped, which the oracle does
// not do.
bool skipped_steps(const Outcome& outcome) { return outcome.state.loss_scale < TrainState{}.loss_scale; }

TEST(TransformersGpu, EveryLevelAndLaunchAndPrecision) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) {
    Training t = training_of(network);
    const Outcome want = train_on_oracle(t);
    train_each_way(t, network.layers, [&](const Outcome& got) {
      if (t.spec.exec.precision == Precision::Fp16 && skipped_steps(got)) return;
      EXPECT_LT(distance(got, want, t), 2 * tolerance(t.spec.exec.precision));
      expect_same_losses(got, want, tolerance(t.spec.exec.precision));
    });
  }
}

TEST(TransformersGpu, PlainAttentionEndsWhereTheOracleEnds) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) {
    Training t = training_of(network);
    const Outcome want = train_on_oracle(t);
    t.spec.exec.attention = AttentionForm::Plain;
    train_each_way(t, network.layers, [&](const Outcome& got) {
      if (t.spec.exec.precision == Precision::Fp16 && skipped_steps(got)) return;
      EXPECT_LT(distance(got, want, t), 2 * tolerance(t.spec.exec.precision));
      expect_same_losses(got, want, tolerance(t.spec.exec.precision));
      EXPECT_TRUE(same_bits(train_on_gpu(t), got));
    });
  }
}

TEST(TransformersGpu, LossesOfTwoHundredStepsFollowTheOracle) {
  NEEDS_GPU();
  Training t = training_of(kNetworks[0]);
  t.spec.train.lr = 0.0002;
  t.data = random_text(200 * t.batch, kNetworks[0].context, kNetworks[0].symbols);
  expect_losses_like_the_oracle(t);
}

TEST(TransformersGpu, EveryLoaderAndAllocatorAndTwoRunsGiveTheSameBits) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) {
    Training t = training_of(network);
    t.spec.exec.precision = Precision::Bf16;
    t.spec.exec.fusion = Fusion::Epilogue;
    const Outcome first = train_on_gpu(t);
    EXPECT_TRUE(same_bits(train_on_gpu(t), first)) << network.layers;
    for (const Loader loader : {Loader::Resident, Loader::Pinned, Loader::Pageable})
      for (const Allocator allocator : kAllocators) {
        t.spec.exec.loader = loader, t.spec.exec.allocator = allocator;
        SCOPED_TRACE(std::string(network.layers) + ", " + label(t.spec.exec));
        EXPECT_TRUE(same_bits(train_on_gpu(t), first));
      }
  }
}

// Without clipping the update adds up the parts of the norms' gradients.
TEST(TransformersGpu, LossesOfAdamWStayWithTheOracle) {
  NEEDS_GPU();
  for (const Precision precision : kPrecisions)
    for (const double clip : {0., 1.}) {
      Training t = training_of(kNetworks[0]);
      t.spec.train.clip = clip;
      t.spec.train.optimizer = Optimizer::AdamW;
      t.spec.train.weight_decay = 0.1;
      t.spec.train.lr = 0.002;
      t.epochs = 5;
      const Outcome want = train_on_oracle(t);
      t.spec.exec.fusion = Fusion::Epilogue, t.spec.exec.precision = precision;
      const Outcome got = train_on_gpu(t);
      SCOPED_TRACE(label(t.spec.exec) + (clip > 0 ? ", clipped" : ""));
      if (precision == Precision::Fp16 && skipped_steps(got)) continue;
      expect_same_losses(got, want, tolerance(precision));
      EXPECT_TRUE(same_bits(train_on_gpu(t), got));
    }
}

// More rows than the kernel of all weight gradients takes: the op that makes a gradient sums its columns for the bias.
TEST(TransformersGpu, BiasGradientsOfManyRowsStayWithTheOracle) {
  NEEDS_GPU();
  const Network network{"embed 64 | block(heads 2) | layernorm | linear", 65, 11};
  for (const double clip : {0., 1.}) {
    Training t = training_of(network);
    t.batch = 130, t.spec.train.clip = clip;
    t.data = random_text(3 * t.batch, network.context, network.symbols);
    const Outcome want = train_on_oracle(t);
    t.spec.exec.fusion = Fusion::Epilogue;
    for (const Precision precision : kPrecisions) {
      t.spec.exec.precision = precision;
      SCOPED_TRACE(label(t.spec.exec) + (clip > 0 ? ", clipped" : ""));
      const Outcome got = train_on_gpu(t);
      if (precision == Precision::Fp16 && skipped_steps(got)) continue;
      EXPECT_LT(distance(got, want, t), 2 * tolerance(precision));
      expect_same_losses(got, want, tolerance(precision));
      EXPECT_TRUE(same_bits(train_on_gpu(t), got));
    }
  }
}

TEST(TransformersGpu, EvaluatesAndPredictsAsTheOracle) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) expect_evaluates_like_the_oracle(training_of(network), 2);
}

}  // namespace
}  // namespace ws::test
