// The points of a curve. Any range can be drawn with the minimum and maximum of each pixel column. Pure.
#pragma once
#include <cstddef>
#include <vector>

namespace ws::app {

struct Point {
  double x, y;
};

class MinMaxSeries {
 public:
  void append(double x, double y);  // x must not decrease
  void clear();
  size_t size() const { return points_.size(); }
  bool empty() const { return points_.empty(); }
  const Point& at(size_t i) const { return points_[i]; }
  const Point* nearest(double x) const;  // the last point at or before x, else the first; nullptr when empty
  // Returns at most about two points per column, in order of x, and keeps the extremes. One point beyond each edge is
  // added so that lines reach the edge.
  std::vector<Point> sample(double from, double to, int columns) const;
  // Finds the extremes of y over [from, to]. Returns false if there is no point in the range.
  bool range(double from, double to, double& low, double& high, bool positive_only) const;

 private:
  static constexpr size_t kBlock = 128;
  struct Block {
    size_t low, high;
  };  // indices of the extremes
  size_t lower(double x) const;
  void add_column(std::vector<Point>& out, size_t from, size_t to) const;

  std::vector<Point> points_;
  std::vector<Block> blocks_;
};

// Exponential moving average without a bias towards zero at the start. Its window grows with the
// curve, up to the window of `factor`.
class Ema {
 public:
  explicit Ema(double factor = 0.6) : factor_(factor) {}
  double add(double value);
  double window() const;  // number of values in the newest mean

 private:
  double factor_, sum_ = 0, weight_ = 0, count_ = 0;
};

// Rounds parts to `decimals` so that the printed column adds up to the printed total (largest remainder).
std::vector<double> round_to_sum(const std::vector<double>& parts, double total, int decimals);

}  // namespace ws::app
