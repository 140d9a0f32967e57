#include "datasets/synthetic.h"

#include <cmath>

#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::HasSubstr;

TEST(Line, LeastSquaresFindsTheTruth) {
  const DataSpec spec{.name = "line", .points = 200'000, .noise = 0.1, .slope = -3, .intercept = 0.5, .validation = 0};
  const Dataset set = load(spec);
  ASSERT_EQ(set.train.rows, 200'000);
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < 200'000; ++i) {
    const double x = set.train.x[i], y = set.train.targets[i];
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double n = 200'000;
  const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  // Four standard errors of the estimate.
  EXPECT_NEAR(slope, -3, 4 * 0.1 / std::sqrt(n / 3));
  EXPECT_NEAR((sy - slope * sx) / n, 0.5, 4 * 0.1 / std::sqrt(n));
}

TEST(Line, EveryPointIsAFunctionOfItsIndex) {
  const DataSpec small{.name = "line", .points = 1000, .validation = 0.3};
  DataSpec large = small;
  large.points = 1'000'000;
  large.validation = 0;
  const Dataset few = load(small), many = load(large);
  ASSERT_EQ(few.test.rows, 300);
  EXPECT_TRUE(std::equal(few.train.x.begin(), few.train.x.end(), many.train.x.begin()));
  EXPECT_TRUE(std::equal(few.test.targets.begin(), few.test.targets.end(), many.train.targets.begin() + 700));
  const LinePoint point = line_point(small.seed, 999'999, 2.0f, 1.0f, 0.1f);
  EXPECT_EQ(many.train.x[999'999], point.x);
  EXPECT_EQ(many.train.targets[999'999], point.y);
}

TEST(Line, WithoutNoiseLiesOnTheLine) {
  const Dataset set = load({.name = "line", .points = 100, .noise = 0, .slope = 2, .intercept = 1});
  for (size_t i = 0; i < 80; ++i) EXPECT_FLOAT_EQ(set.train.targets[i], 2 * set.train.x[i] + 1);
}

TEST(Line, SeedsDiffer) {
  EXPECT_NE(load({.name = "line", .seed = 1}).train.x, load({.name = "line", .seed = 2}).train.x);
}

// Half of the points of each class within reach of where the class is meant to be.
TEST(Plane, BlobsSurroundTheirCentres) {
  const Dataset set = load({.name = "blobs", .points = 4000, .classes = 4, .noise = 0.1});
  EXPECT_EQ(set.outputs, 4);
  for (size_t i = 0; i < set.train.labels.size(); ++i) {
    const double angle = set.train.labels[i] * std::acos(0.0);
    EXPECT_LT(std::hypot(set.train.x[2 * i] - std::cos(angle), set.train.x[2 * i + 1] - std::sin(angle)), 0.6);
  }
}

TEST(Plane, CirclesHaveTwoRadii) {
  const Dataset set = load({.name = "circles", .noise = 0});
  EXPECT_EQ(set.outputs, 2);
  for (size_t i = 0; i < set.train.labels.size(); ++i)
    EXPECT_NEAR(std::hypot(set.train.x[2 * i], set.train.x[2 * i + 1]), set.train.labels[i] == 0 ? 1 : 0.5, 1e-6);
}

TEST(Plane, SpiralArmsAreTurnedCopies) {
  const Dataset set = load({.name = "spirals", .points = 3000, .classes = 3, .noise = 0});
  for (size_t i = 0; i < set.train.labels.size(); ++i) {
    const double radius = std::hypot(set.train.x[2 * i], set.train.x[2 * i + 1]);
    const double along = (radius - 0.1) / 0.9;
    const double angle = 2 * std::acos(-1.0) * (1.5 * along + set.train.labels[i] / 3.0);
    EXPECT_NEAR(set.train.x[2 * i], radius * std::cos(angle), 1e-5);
    EXPECT_NEAR(set.train.x[2 * i + 1], radius * std::sin(angle), 1e-5);
  }
}

TEST(Plane, XorFollowsTheSigns) {
  const Dataset set = load({.name = "xor", .noise = 0});
  int quarters[4] = {};
  for (size_t i = 0; i < set.train.labels.size(); ++i) {
    const float x = set.train.x[2 * i], y = set.train.x[2 * i + 1];
    EXPECT_EQ(set.train.labels[i], x * y >= 0 ? 0 : 1);
    ++quarters[(x > 0) + 2 * (y > 0)];
  }
  for (int count : quarters) EXPECT_NEAR(count, 200, 2);
}

TEST(Plane, ClassesAreEvenInBothParts) {
  for (const char* name : {"blobs", "spirals", "circles", "xor"}) {
    const Dataset set = load({.name = name, .points = 1200, .classes = 3});
    EXPECT_EQ(set.train.rows, 960) << name;
    EXPECT_EQ(set.test.rows, 240) << name;
    std::vector<int> counts(static_cast<size_t>(set.outputs));
    for (int32_t label : set.test.labels) ++counts.at(static_cast<size_t>(label));
    for (int count : counts) EXPECT_EQ(count, 240 / set.outputs) << name;
  }
}

TEST(Synthetic, RefusesWhatCannotBeMade) {
  EXPECT_THAT(failure_of([] { load({.name = "line", .points = 1}); }), HasSubstr("at least 2 points"));
  EXPECT_THAT(failure_of([] { load({.name = "line", .points = -5}); }), HasSubstr("at least 2 points"));
  EXPECT_THAT(failure_of([] { load({.name = "line", .points = int64_t{1} << 60}); }), HasSubstr("TiB of memory"));
  EXPECT_THAT(failure_of([] { load({.name = "line", .noise = NAN}); }), HasSubstr("noise"));
  EXPECT_THAT(failure_of([] { load({.name = "line", .slope = INFINITY}); }), HasSubstr("slope"));
  EXPECT_THAT(failure_of([] { load({.name = "blobs", .classes = 1}); }), HasSubstr("between 2 and 1000 classes"));
  EXPECT_THAT(failure_of([] { load({.name = "xor", .noise = -1}); }), HasSubstr("at least 0"));
}

TEST(Load, RefusesUnknownNamesAndShares) {
  EXPECT_THAT(failure_of([] { load({.name = "cifar"}); }), HasSubstr("no data set named cifar; there are iris, mnist"));
  EXPECT_THAT(failure_of([] { load({.name = "line", .validation = 1}); }), HasSubstr("below 1"));
  EXPECT_THAT(failure_of([] { load({.name = "line", .validation = NAN}); }), HasSubstr("below 1"));
  EXPECT_THAT(failure_of([] { load({.name = "line", .limit = -1}); }), HasSubstr("negative"));
}

TEST(Load, EveryNameCanBeAskedFor) {
  for (const std::string& name : names()) {
    try {
      EXPECT_EQ(load({.name = name}).name, name);
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.what(), testing::AnyOf(HasSubstr("needs the path"), HasSubstr("apt install")));
    }
  }
}

}  // namespace
}  // namespace ws::data
