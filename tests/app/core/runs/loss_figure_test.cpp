// The loss that stands for a run is of its last test, otherwise a mean: never of one lucky batch.
#include "app/core/runs/loss_figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ws::app {
namespace {

struct Point {
  double loss;
};

std::vector<Point> steps(size_t count) {
  std::vector<Point> points(count, Point{1.0});
  if (count > 0) points.back().loss = 0.01;  // one lucky batch
  return points;
}

TEST(LossFigure, IsOfTheLastTest) {
  const LossFigure loss = loss_figure(0.25, steps(1000), &Point::loss);
  EXPECT_EQ(loss.value, 0.25);
  EXPECT_EQ(long_name(loss), "test loss");
}

TEST(LossFigure, IsTheMeanOfTheLastStepsWithoutATest) {
  const LossFigure loss = loss_figure(std::nan(""), steps(1000), &Point::loss);
  EXPECT_NEAR(loss.value, 1 - 0.99 / 50, 1e-12);
  EXPECT_EQ(short_name(loss), "training loss");
  EXPECT_EQ(long_name(loss), "training loss, mean of the last 50 steps");
}

TEST(LossFigure, OfAShortRunHasFewerSteps) {
  EXPECT_EQ(mean_of_newest(steps(40), &Point::loss).steps, 8u);  // at its begin it had learned little
  EXPECT_EQ(long_name(mean_of_newest(steps(1), &Point::loss)), "training loss, last step");
  EXPECT_TRUE(std::isnan(loss_figure(std::nan(""), steps(0), &Point::loss).value));
}

}  // namespace
}  // namespace ws::app
