// Convolutional networks end on the GPU where they end on the CPU, in every way of running a step.
#include "tests/gpu/executor_support.h"

namespace ws::test {
namespace {

struct Network {
  const char* layers;
  int64_t side, channels;
};

// In the last one the convolution before the norm is large enough to leave what the norm's statistics need.
constexpr Network kNetworks[] = {
    {"conv 3x3 16 | relu | maxpool 2 | conv 3x3 32 | relu | maxpool 2 | linear", 12, 1},
    {"conv 3x3 16 bias off | batchnorm | relu | residual(conv 3x3 16 bias off | batchnorm | relu | conv 3x3 16 | relu) | "
     "maxpool 2 | conv 3x3 64 | batchnorm | relu | maxpool 4 | linear",
     8, 3},
    {"conv 5x5 8 stride 2 | gelu | conv 3x3 72 | tanh | avgpool | linear 20 | relu | linear", 13, 1},
    {"conv 3x3 6 | sigmoid | avgpool 2 | dropout 0.3 | conv 1x1 12 | relu | linear", 8, 2},
    {"conv 3x3 16 | relu | conv 3x3 64 bias off | batchnorm | relu | maxpool 2 | linear", 12, 1},
};

Training training_of(const Network& network) {
  Training t;
  t.spec.model.layers = network.layers;
  t.spec.train.lr = 0.02;
  t.spec.exec.device = Device::Cuda;
  t.batch = 33;
  t.data = random_pictures(3 * t.batch + 7, network.side, network.channels, 10);
  return t;
}

TEST(NetworksGpu, EveryLevelAndLaunchAndPrecision) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) {
    Training t = training_of(network);
    const Outcome want = train_on_oracle(t);
    train_each_way(t, network.layers, [&](const Outcome& got) {
      EXPECT_LT(distance(got, want, t), 2 * tolerance(t.spec.exec.precision));
      expect_same_losses(got, want, 2 * tolerance(t.spec.exec.precision));
    });
  }
}

TEST(NetworksGpu, PlanesEndWhereTheOracleEnds) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) {
    Training t = training_of(network);
    t.spec.exec.layout = PictureLayout::Nchw;
    const Outcome want = train_on_oracle(t);
    train_each_way(t, network.layers, [&](const Outcome& got) {
      EXPECT_LT(distance(got, want, t), 2 * tolerance(t.spec.exec.precision));
      expect_same_losses(got, want, 2 * tolerance(t.spec.exec.precision));
      EXPECT_TRUE(same_bits(train_on_gpu(t), got));
    });
  }
}

TEST(NetworksGpu, EveryAllocatorAndProductAndTwoRunsGiveTheSameBits) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) {
    Training t = training_of(network);
    t.spec.exec.precision = Precision::Bf16;
    t.spec.exec.fusion = Fusion::Epilogue;
    const Outcome first = train_on_gpu(t);
    for (const Allocator allocator : kAllocators) {
      t.spec.exec.allocator = allocator;
      SCOPED_TRACE(std::string(network.layers) + ", " + label(t.spec.exec));
      EXPECT_TRUE(same_bits(train_on_gpu(t), first));
    }
    t.spec.exec.matmul = Matmul::Tiled;
    EXPECT_LT(distance(train_on_gpu(t), first, t), 2 * tolerance(Precision::Bf16)) << network.layers;
  }
}

TEST(NetworksGpu, LossesOfTwoHundredStepsFollowTheOracle) {
  NEEDS_GPU();
  for (const Network& network : {kNetworks[0], kNetworks[1]}) {
    Training t = training_of(network);
    t.spec.train.lr = 0.0002;  // a larger one makes any rounding grow
    t.batch = 16;
    t.data = random_pictures(200 * t.batch, network.side, network.channels, 10);
    expect_losses_like_the_oracle(t);
  }
}

TEST(NetworksGpu, EvaluatesAsTheOracle) {
  NEEDS_GPU();
  for (const Network& network : kNetworks) expect_evaluates_like_the_oracle(training_of(network));
}

}  // namespace
}  // namespace ws::test
