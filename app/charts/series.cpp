#include "app/charts/series.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ws::app {

void MinMaxSeries::append(double x, double y) {
  if (!std::isfinite(y)) return;
  const size_t i = points_.size();
  points_.push_back({x, y});
  if (i % kBlock == 0) {
    blocks_.push_back({i, i});
    return;
  }
  Block& block = blocks_.back();
  if (y < points_[block.low].y) block.low = i;
  if (y > points_[block.high].y) block.high = i;
}

void MinMaxSeries::clear() {
  points_.clear();
  blocks_.clear();
}

size_t MinMaxSeries::lower(double x) const {
  return static_cast<size_t>(
      std::lower_bound(points_.begin(), points_.end(), x, [](const Point& p, double v) { return p.x < v; }) -
      points_.begin());
}

const Point* MinMaxSeries::nearest(double x) const {
  if (points_.empty()) return nullptr;
  const auto after =
      std::upper_bound(points_.begin(), points_.end(), x, [](double v, const Point& p) { return v < p.x; });
  return after == points_.begin() ? &points_.front() : &*(after - 1);
}

void MinMaxSeries::add_column(std::vector<Point>& out, size_t from, size_t to) const {
  size_t low = from, high = from;
  const auto look = [&](size_t i) {
    if (points_[i].y < points_[low].y) low = i;
    if (points_[i].y > points_[high].y) high = i;
  };
  for (size_t i = from; i < to;) {
    if (i % kBlock == 0 && i + kBlock <= to) {
      look(blocks_[i / kBlock].low);
      look(blocks_[i / kBlock].high);
      i += kBlock;
    } else {
      look(i++);
    }
  }
  out.push_back(points_[std::min(low, high)]);
  if (low != high) out.push_back(points_[std::max(low, high)]);
}

std::vector<Point> MinMaxSeries::sample(double from, double to, int columns) const {
  std::vector<Point> out;
  if (points_.empty() || columns < 1 || !(from < to)) return out;
  size_t first = lower(from), last = lower(to);
  if (first > 0) --first;
  if (last < points_.size()) ++last;
  const size_t count = last - first;
  if (count <= static_cast<size_t>(columns) * 2)
    return {points_.begin() + static_cast<std::ptrdiff_t>(first), points_.begin() + static_cast<std::ptrdiff_t>(last)};
  out.push_back(points_[first]);
  size_t begin = first + 1;
  for (int column = 1; column <= columns && begin < last - 1; ++column) {
    const size_t end =
        column == columns ? last - 1 : std::clamp(lower(from + (to - from) * column / columns), begin, last - 1);
    if (end > begin) add_column(out, begin, end);
    begin = end;
  }
  out.push_back(points_[last - 1]);
  return out;
}

bool MinMaxSeries::range(double from, double to, double& low, double& high, bool positive_only) const {
  bool found = false;
  const auto look = [&](size_t i) {
    const Point& p = points_[i];
    if (p.x < from || p.x > to || (positive_only && p.y <= 0)) return;
    low = found ? std::min(low, p.y) : p.y;
    high = found ? std::max(high, p.y) : p.y;
    found = true;
  };
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const size_t begin = b * kBlock, end = std::min(begin + kBlock, points_.size());
    if (points_[end - 1].x < from || points_[begin].x > to) continue;
    const bool whole =
        points_[begin].x >= from && points_[end - 1].x <= to && (!positive_only || points_[blocks_[b].low].y > 0);
    if (whole)
      look(blocks_[b].low), look(blocks_[b].high);
    else
      for (size_t i = begin; i < end; ++i) look(i);
  }
  return found;
}

constexpr double kValuesInWindow = 10;  // a short curve is smoothed over a tenth of its values

double Ema::window() const { return std::min(1 / (1 - factor_), 1 + std::max(0.0, count_ - 1) / kValuesInWindow); }

double Ema::add(double value) {
  if (!std::isfinite(value)) return value;
  ++count_;
  const double factor = 1 - 1 / window();
  sum_ = factor * sum_ + (1 - factor) * value;
  weight_ = factor * weight_ + (1 - factor);
  return sum_ / weight_;
}

std::vector<double> round_to_sum(const std::vector<double>& parts, double total, int decimals) {
  const double unit = std::pow(10.0, -decimals);
  std::vector<double> units(parts.size()), rest(parts.size());
  double sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    units[i] = std::floor(parts[i] / unit);
    rest[i] = parts[i] / unit - units[i];
    sum += units[i];
  }
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  auto missing = static_cast<int64_t>(std::llround(total / unit) - std::llround(sum));
  for (size_t i = 0; missing > 0 && i < order.size(); ++i, --missing) units[order[i]] += 1;
  for (double& u : units) u *= unit;
  return units;
}

}  // namespace ws::app
