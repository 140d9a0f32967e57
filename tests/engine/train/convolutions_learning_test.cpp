// The preset "MNIST, convolutions" on the real data: minutes on few cores, so only thorough runs have it.
#include <gtest/gtest.h>

#include "tests/engine/train/train_support.h"

namespace ws {
namespace {

TEST(Learning, ConvolutionsRead99PercentOfMnistWithinFiveEpochs) {
  RunSpec spec = load_spec("mnist-conv");
  EXPECT_LE(spec.train.epochs, 5);
  spec.exec.device = Device::Cpu;
  TrainControl control;
  test::Recorder sink;
  const Summary summary = train(spec, data::load(spec.data), control, sink);
  EXPECT_EQ(summary.status, RunStatus::Finished) << summary.message;
  EXPECT_GE(summary.test_accuracy, 0.99);
  RecordProperty("seconds", std::to_string(summary.wall_s));
  RecordProperty("accuracy", std::to_string(summary.test_accuracy));
}

}  // namespace
}  // namespace ws
