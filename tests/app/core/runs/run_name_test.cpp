// A run is named by what it is, whatever was trained before it.
#include "app/core/runs/run_name.h"

#include "app/core/runs/data_shape.h"
#include "profiling/base/text.h"

#include <gtest/gtest.h>

#include <set>

namespace ws::app {
namespace {

TEST(RunName, ReportsDataNetworkAndWhatDiffersFromThePlainPreset) {
  EXPECT_EQ(run_name(load_spec("mnist")), "MNIST 784-128-10");
  RunSpec spec = load_spec("mnist");
  spec.exec.allocator = Allocator::Direct;
  EXPECT_EQ(run_name(spec), "MNIST 784-128-10 · direct");
  spec.train.epochs = 30;
  EXPECT_EQ(run_name(spec), "MNIST 784-128-10 · direct, 30 epochs");
  spec.model.hidden = {32, 32}, spec.data.limit = 12000, spec.model.activation = Activation::None;
  EXPECT_EQ(run_name(spec), "MNIST 784-32-32-10 · direct, 12 000 rows, no activation + 1 more");
  EXPECT_EQ(run_name(load_spec("iris")), "Iris 4-5-3");
  EXPECT_EQ(run_name(load_spec("mnist-naive")), "MNIST 784-128-10 · direct, every-op, fusion off");
}

// Setup and Compare count the same: what has an effect in one of the two runs.
TEST(ChoicesBetween, LeavesOutWhatNeitherRunUses) {
  RunSpec a = load_spec("mnist"), b = a;
  b.exec.gpus = a.exec.gpus = 1;
  b.exec.bucket_mib = a.exec.bucket_mib + 1;
  EXPECT_TRUE(choices_between(a, b).empty()) << "one GPU has no buckets";
  b.exec.gpus = 2, b.exec.comm = a.exec.comm = Comm::Overlap;
  ASSERT_EQ(choices_between(a, b).size(), 2u);
  EXPECT_EQ(choices_between(a, b).size(), choices_between(b, a).size());
}

TEST(RunName, NamesOwnDataByItsFile) {
  RunSpec spec;
  spec.data.name = "csv", spec.data.path = "/home/me/moons.csv", spec.data.label_column = "class", spec.model.hidden = {8};
  EXPECT_TRUE(run_name(spec).starts_with("moons.csv 8")) << run_name(spec);
  EXPECT_EQ(run_name(spec).find("/home"), std::string::npos);
  spec.data.name = "idx", spec.data.path = "/data/letters/";
  EXPECT_EQ(data_label(spec.data), "letters");
}

TEST(RunName, LeavesOutWhatHasNoEffect) {
  RunSpec spec = load_spec("mnist");
  spec.data.noise = 0.5, spec.data.classes = 7;  // of sets of points
  EXPECT_EQ(run_name(spec), "MNIST 784-128-10");
}

TEST(RunName, LongNetworksAreCutBetweenLayersAndHaveFewerChanges) {
  RunSpec spec;
  const auto network = [&](const char* layers) { spec.model.layers = layers; return network_label(spec); };
  EXPECT_EQ(network("conv 3x3 16 | relu | linear"), "conv 3x3 16 | relu | linear");
  EXPECT_EQ(network("embed 64 | 2 x block(heads 4) | layernorm | linear"), "embed 64 | 2 x block(heads 4) | …");
  EXPECT_EQ(network("relu | residual(conv 3x3 16 | batchnorm | relu) | linear"), "relu | …");
  EXPECT_LE(network("residual(conv 3x3 16 | batchnorm | relu | conv 3x3 16) | linear").size(), 40u);
  RunSpec sentences = load_spec("sentences-gpt");
  EXPECT_EQ(run_name(sentences), "Sentences embed 64 | 2 x block(heads 4) | …") << "the preset of this network is not a change";
  for (const auto& [key, value] : {std::pair{"data.points", "500"}, {"train.batch", "7"}, {"train.seed", "9"}, {"train.lr", "0.125"}}) set_field(sentences, key, value);
  const std::string name = run_name(sentences);
  EXPECT_TRUE(name.starts_with("Sentences embed 64 | 2 x block(heads 4) | … · ")) << name;
  EXPECT_TRUE(name.ends_with(" more")) << name;
}

TEST(RunName, EveryPresetHasItsOwn) {
  std::set<std::string> names;
  for (const Preset& preset : presets()) {
    const std::string name = run_name(load_spec(preset.path));
    EXPECT_TRUE(names.insert(name).second) << preset.name << ": " << name;
    EXPECT_LE(name.size(), 80u) << name;
  }
}

TEST(ChangesLabel, GoesFromTheOldValueToTheNewOne) {
  RunSpec before, after = before;
  after.exec.allocator = Allocator::Direct, after.train.lr = 0.01, after.train.epochs = 30;
  EXPECT_EQ(changes_label(before, after, 9), "lr " + field_text(before, "train.lr") + " → 0.01, epochs " +
                                                 field_text(before, "train.epochs") + " → 30, arena → direct");
  EXPECT_TRUE(changes_label(before, after, 1).ends_with(" + 2 more")) << changes_label(before, after, 1);
  EXPECT_EQ(changes_label(before, before, 9), "");
  EXPECT_EQ(change_label({"exec.fusion", "off", "epilogue"}), "fusion off → epilogue");
  EXPECT_EQ(change_label({"data.limit", "0", "3200"}), count_text(3200) + " rows");
  EXPECT_EQ(change_label({"data.limit", "3200", "0"}), "all rows");
  EXPECT_EQ(change_label({"data.limit", "3200", "500"}), "3200 → 500 rows");
}

}  // namespace
}  // namespace ws::app
