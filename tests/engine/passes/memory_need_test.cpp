#include "engine/devices/devices.h"
#include "engine/passes/memory_need.h"

#include <gmock/gmock.h>

#include "engine/passes/compile.h"
#include "tests/engine/train/train_support.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

RunSpec wide() {
  RunSpec spec = test::small_spec();
  spec.model.hidden = {8192, 8192};
  spec.train.optimizer = Optimizer::Momentum;
  return spec;
}

// Measured: 8192, 8192 on MNIST holds 0.55 GiB of weights and momentum; with a checkpoint's copy, the gradients and the
// evaluation's buffers it takes well over twice that.
TEST(MemoryNeed, CountsEveryCopyThatIsAliveAtOnce) {
  const RunSpec spec = wide();
  data::Dataset data = test::random_data(64, 784, 10, true);
  const Model model = make_model(spec.model, 784, 10);
  const int64_t state = 2 * 4 * model.parameter_count(), largest = int64_t{8192} * 8192 * 4;
  const int64_t small = host_bytes_needed(spec, model, data, false);
  EXPECT_GE(small, 2 * state + largest);
  EXPECT_LE(small, 2 * state + 2 * largest);
  RunSpec off = spec;
  off.exec.fusion = Fusion::Off;
  EXPECT_GE(host_bytes_needed(off, model, data, false), 2 * state + 4 * model.parameter_count()) << "every gradient at once";
  data.test = test::random_data(10000, 784, 10, true).train;
  EXPECT_GT(host_bytes_needed(spec, model, data, false), small + int64_t{8192} * 8192 * 4) << "the evaluation's rows";
  RunSpec adam = spec;
  adam.train.optimizer = Optimizer::Adam;
  EXPECT_EQ(host_bytes_needed(adam, model, data, false) - host_bytes_needed(spec, model, data, false), state)
      << "a third part, twice";
}

TEST(MemoryNeed, RefusesWhatWouldNotFitAndNothingElse) {
  const RunSpec spec = wide();
  const data::Dataset data = test::random_data(64, 784, 10, true);
  const Model model = make_model(spec.model, 784, 10);
  const int64_t need = host_bytes_needed(spec, model, data, false);
  EXPECT_FALSE(why_it_does_not_fit(spec, model, data, {need, 0}));
  const auto reason = why_it_does_not_fit(spec, model, data, {need - 1, 0});
  ASSERT_TRUE(reason);
  EXPECT_THAT(reason->text, HasSubstr("narrower"));
  EXPECT_FALSE(why_it_does_not_fit(spec, model, data, free_memory_for(spec))) << "this machine has the room";
}

TEST(MemoryNeed, OnlyTheResidentLoaderNeedsMemoryForTheDataOnTheGpu) {
  RunSpec spec = test::small_spec();
  data::Dataset data = test::random_data(10, 6, 3, true);
  data.train.rows = int64_t{10} * kGiB / 28;  // as if they were there
  const Model model = make_model(spec.model, 6, 3);
  const FreeMemory free{64 * kGiB, 4 * kGiB};
  const auto reason = why_it_does_not_fit(spec, model, data, free);
  ASSERT_TRUE(reason);
  EXPECT_THAT(reason->text, HasSubstr("pinned loader"));
  EXPECT_EQ(reason->key, "exec.loader");
  for (const Loader loader : {Loader::Pinned, Loader::Pageable}) {
    spec.exec.loader = loader;
    EXPECT_FALSE(why_it_does_not_fit(spec, model, data, free)) << to_string(loader);
  }
  spec.model.hidden = std::vector<int64_t>(20, 16384);  // the model itself
  const auto other = why_it_does_not_fit(spec, make_model(spec.model, 6, 3), data, free);
  ASSERT_TRUE(other);
  EXPECT_THAT(other->text, HasSubstr("narrower"));
  EXPECT_EQ(other->key, "model.hidden");
}

int64_t batch_named(const std::string& text) {
  const size_t at = text.find("a batch of ");
  return at == std::string::npos ? 0 : std::stoll(text.substr(at + 11));
}

// A batch that is too large is the reason most people will meet: the sentence says what to choose instead.
TEST(MemoryNeed, ATooLargeBatchShowsItsBuffersAndOneThatFits) {
  RunSpec spec = test::small_spec();
  spec.model.hidden = {4096};
  spec.train.batch = 0;
  data::Dataset data = test::random_data(64, 784, 10, true);
  data.train.rows = 400'000;  // as if they were there
  const Model model = make_model(spec.model, 784, 10);
  for (const Device device : {Device::Cuda, Device::Cpu})
    for (const Allocator allocator : {Allocator::Direct, Allocator::Caching, Allocator::Arena}) {
      spec.exec.device = device;
      spec.exec.allocator = allocator;
      const bool gpu = device == Device::Cuda;
      const FreeMemory free = gpu ? FreeMemory{64 * kGiB, 6 * kGiB} : FreeMemory{6 * kGiB, 0};
      const auto reason = why_it_does_not_fit(spec, model, data, free);
      ASSERT_TRUE(reason);
      EXPECT_EQ(reason->key, "train.batch");
      EXPECT_THAT(reason->text, HasSubstr("a step of 400000 rows takes "));
      EXPECT_THAT(reason->text, HasSubstr("(biggest: ")) << reason->text;
      EXPECT_THAT(reason->text, HasSubstr("6.10 GiB")) << "one layer's values for 400,000 rows: " << reason->text;
      RunSpec other = spec;
      other.train.batch = batch_named(reason->text);
      EXPECT_GT(other.train.batch, 0) << reason->text;
      EXPECT_FALSE(why_it_does_not_fit(other, model, data, free)) << reason->text;
      other.train.batch *= 2;
      EXPECT_TRUE(why_it_does_not_fit(other, model, data, free)) << "twice as many would have done: " << reason->text;
    }
}

TEST(MemoryNeed, AListOfLayersShowsTheSumOfEachLayer) {
  RunSpec spec = test::small_spec();
  spec.train.batch = 4096;
  spec.model.layers = "conv 3x3 16 | relu | maxpool 2 | residual(conv 3x3 16 | relu) | linear";
  data::Dataset data;
  data.features = 784, data.image_width = data.image_height = 28, data.outputs = 10;
  data.train.rows = 4096;
  const Model model = make_model(spec.model, LayerShape::picture(28, 28, 1), 10);
  const auto reason = why_it_does_not_fit(spec, model, data, {256 << 20, 0});
  ASSERT_TRUE(reason);
  // conv1 keeps 4096 · 28 · 28 · 16 values; pool2 makes a quarter of them, and the gradient of all.
  EXPECT_THAT(reason->text, HasSubstr("a step of 4096 rows takes"));
  EXPECT_THAT(reason->text, HasSubstr("by layer: pool2 "));
  EXPECT_THAT(reason->text, HasSubstr(", conv1 196.00 MiB"));
  EXPECT_THAT(reason->text, HasSubstr(", residual 1 "));
  EXPECT_THAT(reason->text, HasSubstr("a batch of "));
}

TEST(MemoryNeed, WhereNotEvenOneRowFitsTheLayersAreNamed) {
  RunSpec spec = test::small_spec();
  spec.model.hidden = {8192, 8192, 8192};
  const Model model = make_model(spec.model, 784, 10);
  EXPECT_EQ(largest_batch(spec, model, 1000, 1 << 16), 0);
  EXPECT_THAT(batch_advice(0), HasSubstr("narrower"));
  EXPECT_EQ(largest_batch(spec, model, 1, kGiB), 0) << "fewer rows than one";
}

TEST(MemoryNeed, TheBiggestBuffersAreNamedWithTheirSizes) {
  RunSpec spec;
  spec.model.hidden = {4096};
  const Model model = make_model(spec.model, 784, 10);
  const Plan plan = compile(spec, model, 65536).plan;
  EXPECT_THAT(biggest_buffers(plan), HasSubstr("1.00 GiB"));
  const int64_t fits = largest_batch(spec, model, 65536, kGiB / 2);
  EXPECT_GT(fits, 1000);
  EXPECT_LT(fits, 65536);
  EXPECT_LE(compile(spec, model, fits).plan.arena_bytes, kGiB / 2);
}

// A run that asks for more than there is ends with the same words when the system, not our count, refuses.
TEST(MemoryNeed, MemoryThatTheSystemRefusesHasTheSameWords) {
  RunSpec spec = test::small_spec();
  spec.model.hidden = {4096};
  spec.train.batch = 0;
  data::Dataset data = test::random_data(64, 784, 10, true);
  data.train.rows = 400'000;
  const std::string text = out_of_memory(spec, make_model(spec.model, 784, 10), data, {3 * kGiB, 0}).text;
  EXPECT_THAT(text, HasSubstr("3.00 GiB are free"));
  EXPECT_THAT(text, HasSubstr("biggest: "));
  EXPECT_GT(batch_named(text), 1000);
}

}  // namespace
}  // namespace ws
