// Positions of the timeline's parts on its widget: overview, ruler, gutter, lanes.
#pragma once
#include <QRect>
#include <algorithm>

#include "app/timeline/lane_layout.h"
#include "app/timeline/time_scale.h"

namespace ws::app {

inline constexpr int kTitleEnd = 6;  // between a lane's name and the end of the gutter

struct TimelineGeometry {
  static constexpr int kOverview = 26, kRuler = 22;
  QSize size;
  int gutter = 150, scroll = 0;
  bool small = false;
  TimeRange range;

  int titleLeft(const Lane& lane) const { return lane.folded ? 24 : small ? 26 : 44; }
  int top() const { return kOverview + kRuler; }
  QRect plot() const { return {gutter, top(), size.width() - gutter, size.height() - top()}; }
  TimeScale scale() const {
    return {range, static_cast<double>(gutter), static_cast<double>(std::max(1, size.width() - gutter))};
  }
  int laneY(const Lane& lane) const { return top() + lane.y - scroll; }
  int laneAt(const std::vector<Lane>& lanes, int y) const {
    return y < top() ? -1 : lane_at(lanes, y - top() + scroll);
  }
};

}  // namespace ws::app
