// The one loss that stands for a run: of its last test, otherwise the mean of its last steps, so that no single batch decides.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace ws::app {

struct LossFigure {
  double value = std::numeric_limits<double>::quiet_NaN();
  size_t steps = 0;  // the mean is of so many last steps; 0: of the last test
  bool of_test() const { return steps == 0; }
};
std::string short_name(const LossFigure& loss);  // "test loss", "training loss"
std::string long_name(const LossFigure& loss);   // "test loss", "training loss, mean of the last 50 steps"

// The mean of the newest losses. NaN without any. A short run has fewer: at its begin it had learned little.
template <class Points, class Loss>
LossFigure mean_of_newest(const Points& points, Loss loss) {
  constexpr size_t kMost = 50, kOfAll = 5;
  const size_t count = std::min(kMost, (points.size() + kOfAll - 1) / kOfAll);
  double sum = 0;
  for (size_t i = points.size() - count; i < points.size(); ++i) sum += static_cast<double>(points[i].*loss);
  return count > 0 ? LossFigure{sum / static_cast<double>(count), count} : LossFigure{};
}

template <class Points, class Loss>
LossFigure loss_figure(double test_loss, const Points& points, Loss loss) {
  return std::isfinite(test_loss) ? LossFigure{test_loss, 0} : mean_of_newest(points, loss);
}

}  // namespace ws::app
