#include "datasets/split.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace ws::data {
namespace {

int32_t class_of(int row) { return row < 10 ? 0 : row < 30 ? 1 : 2; }

// 60 rows, whose one feature is the row number; classes 0, 1, 2 in blocks of 10, 20 and 30.
Dataset three_classes() {
  Dataset set;
  set.features = 1;
  set.outputs = 3;
  set.train.rows = 60;
  for (int i = 0; i < 60; ++i) {
    set.train.x.push_back(static_cast<float>(i));
    set.train.labels.push_back(class_of(i));
  }
  return set;
}

int64_t count(const Split& split, int32_t label) { return std::count(split.labels.begin(), split.labels.end(), label); }

TEST(Split, KeepsEachClassShare) {
  Dataset set = three_classes();
  hold_out(set, 0.2, 1);
  EXPECT_EQ(count(set.test, 0), 2);
  EXPECT_EQ(count(set.test, 1), 4);
  EXPECT_EQ(count(set.test, 2), 6);
  EXPECT_EQ(set.train.rows, 48);
  EXPECT_EQ(set.test.rows, 12);
}

TEST(Split, LosesAndRepeatsNoRow) {
  Dataset set = three_classes();
  const std::vector<float> before = set.train.x;
  hold_out(set, 0.35, 1);
  for (size_t r = 0; r < set.train.labels.size(); ++r)
    EXPECT_EQ(set.train.labels[r], class_of(static_cast<int>(set.train.x[r])));
  std::vector<float> after = set.train.x;
  after.insert(after.end(), set.test.x.begin(), set.test.x.end());
  std::sort(after.begin(), after.end());
  EXPECT_EQ(after, before);
}

TEST(Split, DependsOnTheSeedAlone) {
  Dataset a = three_classes(), b = three_classes(), c = three_classes();
  hold_out(a, 0.2, 1);
  hold_out(b, 0.2, 1);
  hold_out(c, 0.2, 2);
  EXPECT_EQ(a.train.x, b.train.x);
  EXPECT_NE(a.test.x, c.test.x);
}

TEST(Split, MixesTheClassesOfTheTrainingRows) {
  Dataset set = three_classes();
  hold_out(set, 0, 1);
  EXPECT_EQ(set.test.rows, 0);
  keep_first(set, 20);
  for (int label = 0; label < 3; ++label) EXPECT_GT(count(set.train, label), 0);
}

TEST(Split, NeverEmptiesAClass) {
  Dataset set;
  set.features = 1;
  set.outputs = 2;
  set.train = {.rows = 3, .x = {1, 2, 3}, .labels = {0, 0, 1}};
  hold_out(set, 0.99, 1);
  EXPECT_EQ(count(set.train, 0), 1);
  EXPECT_EQ(count(set.train, 1), 1);
}

TEST(Split, ScalesTheTestPartWithTheTrainingRows) {
  Dataset set;
  set.task = Task::Regression;
  set.features = set.outputs = 1;
  set.train = {.rows = 2, .x = {1, 3}, .targets = {10, 30}};
  set.test = {.rows = 1, .x = {5}, .targets = {20}};
  standardise_features(set);
  standardise_targets(set);
  EXPECT_THAT(set.train.x, testing::ElementsAre(-1, 1));
  EXPECT_THAT(set.test.x, testing::ElementsAre(3));
  EXPECT_THAT(set.test.targets, testing::ElementsAre(0));
}

TEST(Split, KeepsAFarAwayTestRowFinite) {
  Dataset set;
  set.features = 1;
  set.outputs = 2;
  set.train = {.rows = 2, .x = {1e-40f, 2e-40f}, .labels = {0, 1}};
  set.test = {.rows = 1, .x = {-3e38f}, .labels = {0}};
  standardise_features(set);
  EXPECT_EQ(set.test.x[0], -1e30f);
}

}  // namespace
}  // namespace ws::data
