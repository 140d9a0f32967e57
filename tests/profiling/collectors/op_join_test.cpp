#include "profiling/collectors/op_join.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ws::prof {
namespace {

TEST(OpJoin, FindsEagerLaunchesByCorrelation) {
  OpJoin join;
  join.launched(17, {3, 5});
  EXPECT_EQ(join.find(17, 0), (OpAt{3, 5}));
  EXPECT_EQ(join.find(18, 0), OpAt{});
  EXPECT_EQ(join.find(0, 0), OpAt{});
}

TEST(OpJoin, ForgetsOldCorrelationsInsteadOfMixingThemUp) {
  OpJoin join;
  join.launched(1, {3, 5});
  join.launched(1 + (1 << 18), {4, 6});  // shares the slot
  EXPECT_EQ(join.find(1, 0), OpAt{});
  EXPECT_EQ(join.find(1 + (1 << 18), 0), (OpAt{4, 6}));
}

TEST(OpJoin, FollowsClonedNodesThroughSeveralClones) {
  OpJoin join;
  join.node_created(100, 7, 2);
  join.node_cloned(100, 200);
  join.node_cloned(200, 300);
  join.graph_launched(9, 41, 4);
  EXPECT_EQ(join.find(9, 300), (OpAt{7, 43}));
  EXPECT_EQ(join.find(9, 200), (OpAt{7, 43}));
}

TEST(OpJoin, NodeOffsetStaysInsideOfTheLaunch) {
  OpJoin join;
  join.node_created(1, 7, 9);
  join.graph_launched(5, 10, 4);
  EXPECT_EQ(join.find(5, 1), (OpAt{7, 13}));
}

TEST(OpJoin, KnowsTheOpOfANodeWhoseLaunchItMissed) {
  OpJoin join;
  join.node_created(1, 7, 0);
  EXPECT_EQ(join.find(5, 1), (OpAt{7, 0}));
}

TEST(OpJoin, UnknownNodeOfAKnownLaunchHasAStepButNoOp) {
  OpJoin join;
  join.graph_launched(5, 10, 1);
  EXPECT_EQ(join.find(5, 99), (OpAt{kNoOp, 10}));
}

TEST(CapturedSteps, SeparateTheStepsOfAGraph) {
  CapturedSteps steps;
  uint64_t scope = 0;
  for (uint32_t step = 0; step < 4; ++step) {
    EXPECT_EQ(steps.step_of(1, 8, 3, ++scope), step);
    EXPECT_EQ(steps.step_of(1, 8, 4, ++scope), step);
    EXPECT_EQ(steps.step_of(1, 8, 4, scope), step) << "an op of two kernels";
  }
  EXPECT_EQ(steps.step_of(1, 9, 3, ++scope), 0u) << "another graph";
}

// A session that begins after another one has left the driver numbers its graphs as that one did.
TEST(CapturedSteps, BeginAnewInTheNextSession) {
  CapturedSteps steps;
  EXPECT_EQ(steps.step_of(1, 8, 3, 1), 0u);
  EXPECT_EQ(steps.step_of(1, 8, 3, 2), 1u);
  EXPECT_EQ(steps.step_of(2, 8, 3, 3), 0u);
  EXPECT_EQ(steps.step_of(2, 8, 3, 4), 1u);
}

TEST(OpJoin, CloneOfAnUnknownNodeStaysUnknown) {
  OpJoin join;
  join.graph_launched(7, 1, 1);
  join.node_cloned(1, 2);
  join.node_created(1, 5, 0);
  EXPECT_EQ(join.find(7, 1).op, 5);
  EXPECT_EQ(join.find(7, 2).op, kNoOp);
}

StampedLaunch two_lanes() {
  StampedLaunch launch;
  launch.stamps = {{1000, 8, 1, 0}, {1400, 8, 2, 0}, {2000, 0, 0, 0}, {1010, 8, 1, 1}, {1500, 8, 2, 1}, {1990, 0, 0, 1}};
  return launch;
}

TEST(DeviceStamps, LieInTheMiddleOfTheKernelAtTheSameRate) {
  const StampMap map = map_stamps(two_lanes(), 50'000, 51'200);
  EXPECT_DOUBLE_EQ(map.rate, 1);
  EXPECT_EQ(map(1000), 50'100);
  EXPECT_EQ(map(2000), 51'100);
}

TEST(DeviceStamps, AreSqueezedIntoAKernelThatWasShorter) {
  const StampMap map = map_stamps(two_lanes(), 50'000, 50'500);
  EXPECT_EQ(map(1000), 50'000);
  EXPECT_EQ(map(2000), 50'500);
}

// Only the first steps of a launch are stamped: its own beginning and end say where in the kernel they lie.
TEST(DeviceStamps, OfAPartOfALaunchLieWhereTheyWereWritten) {
  StampedLaunch launch = two_lanes();
  launch.begin = 900, launch.end = 9'900;
  const StampMap map = map_stamps(launch, 50'000, 59'200);
  EXPECT_EQ(map(1000), 50'200);
  EXPECT_EQ(map(2000), 51'200);
}

TEST(DeviceStamps, BecomeSpansOfEachLane) {
  const StampedLaunch launch = two_lanes();
  const auto lanes = spans_of_stamps(launch.stamps, map_stamps(launch, 0, 1000));
  ASSERT_EQ(lanes.size(), 2u);
  ASSERT_EQ(lanes[0].spans.size(), 2u);
  EXPECT_EQ(lanes[0].spans[0].start, 0);
  EXPECT_EQ(lanes[0].spans[0].duration, 400u);
  EXPECT_EQ(lanes[0].spans[1].op, 2);
  EXPECT_EQ(lanes[1].spans[1].end(), 990);
}

TEST(DeviceStamps, UnorderedStampsAndNoneAtAll) {
  StampedLaunch launch = two_lanes();
  std::ranges::reverse(launch.stamps);
  EXPECT_EQ(spans_of_stamps(launch.stamps, map_stamps(launch, 0, 1000))[0].spans.size(), 2u);
  EXPECT_TRUE(spans_of_stamps({}, map_stamps({}, 5, 9)).empty());
}

TEST(DeviceStamps, LieOnTheBoardUntilTheyAreTaken) {
  StampBoard& board = StampBoard::instance();
  board.add(two_lanes());
  EXPECT_EQ(board.take().size(), 1u);
  EXPECT_TRUE(board.take().empty());
  for (int i = 0; i < 5000; ++i) board.add({});
  EXPECT_LT(board.take().size(), 5000u) << "nobody takes them: they must not fill the memory";
}

}  // namespace
}  // namespace ws::prof
