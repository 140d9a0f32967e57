#include "engine/room.h"

#include <gmock/gmock.h>

#include "engine/compile.h"
#include "tests/engine/train_support.h"
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
TEST(Room, CountsEveryCopyThatIsAliveAtOnce) {
  const RunSpec spec = wide();
  data::Dataset data = test::random_data(64, 784, 10, true);
  const Model model = make_model(spec.model, 784, 10);
  const int64_t state = 2 * 4 * model.parameter_count(), largest = int64_t{8192} * 8192 * 4;
  const int64_t small = host_bytes_needed(spec, model, data);
  EXPECT_GE(small, 2 * state + largest);
  EXPECT_LE(small, 2 * state + 2 * largest);
  RunSpec off = spec;
  off.exec.fusion = Fusion::Off;
  EXPECT_GE(host_bytes_needed(off, model, data), 2 * state + 4 * model.parameter_count()) << "every gradient at once";
  data.test = test::random_data(10000, 784, 10, true).train;
  EXPECT_GT(host_bytes_needed(spec, model, data), small + int64_t{8192} * 8192 * 4) << "the evaluation's rows";
  RunSpec adam = spec;
  adam.train.optimizer = Optimizer::Adam;
  EXPECT_EQ(host_bytes_needed(adam, model, data) - host_bytes_needed(spec, model, data), state)
      << "a third part, twice";
}

TEST(Room, RefusesWhatWouldNotFitAndNothingElse) {
  const RunSpec spec = wide();
  const data::Dataset data = test::random_data(64, 784, 10, true);
  const Model model = make_model(spec.model, 784, 10);
  const int64_t need = host_bytes_needed(spec, model, data);
  EXPECT_FALSE(why_no_room(spec, model, data, {need, 0}));
  const auto reason = why_no_room(spec, model, data, {need - 1, 0});
  ASSERT_TRUE(reason);
  EXPECT_THAT(*reason, HasSubstr("narrower"));
  EXPECT_FALSE(why_no_room(spec, model, data, room_for(spec))) << "this machine has the room";
}

TEST(Room, OnlyTheResidentLoaderNeedsRoomForTheDataOnTheGpu) {
  RunSpec spec = test::small_spec();
  data::Dataset data = test::random_data(10, 6, 3, true);
  data.train.rows = int64_t{10} * kGiB / 28;  // as if they were there
  const Model model = make_model(spec.model, 6, 3);
  const Room room{64 * kGiB, 4 * kGiB};
  const auto reason = why_no_room(spec, model, data, room);
  ASSERT_TRUE(reason);
  EXPECT_THAT(*reason, HasSubstr("pinned loader"));
  for (const Loader loader : {Loader::Pinned, Loader::Pageable}) {
    spec.exec.loader = loader;
    EXPECT_FALSE(why_no_room(spec, model, data, room)) << to_string(loader);
  }
  spec.model.hidden = std::vector<int64_t>(20, 16384);  // the model itself
  const auto other = why_no_room(spec, make_model(spec.model, 6, 3), data, room);
  ASSERT_TRUE(other);
  EXPECT_THAT(*other, HasSubstr("narrower"));
}

}  // namespace
}  // namespace ws
