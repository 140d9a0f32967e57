// Time ↔ pixels of the timeline, and the arithmetic of zooming and panning. Pure.
#pragma once
#include <QString>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::app {

using prof::TimeRange;

struct TimeScale {
  TimeRange range;
  double left = 0, width = 1;  // pixels

  double ns_per_px() const { return static_cast<double>(range.length()) / width; }
  double x(prof::TimeNs t) const { return left + static_cast<double>(t - range.begin) / ns_per_px(); }
  prof::TimeNs time(double at) const { return range.begin + static_cast<prof::TimeNs>((at - left) * ns_per_px()); }
};

constexpr prof::TimeNs kShortestRange = 100;  // ns over the whole width
constexpr prof::TimeNs kLongestRange = 24LL * 3600 * 1'000'000'000;

// `factor` below 1 zooms in; the time `anchor` keeps its pixel.
TimeRange zoomed(TimeRange range, prof::TimeNs anchor, double factor);
TimeRange panned(TimeRange range, double share);  // by a share of its length
TimeRange centred(TimeRange range, prof::TimeNs time);
TimeRange padded(TimeRange range, double share);  // wider on both sides

struct Ruler {
  prof::TimeNs base = 0, step = 1;  // ticks are at base + k · step
  QString base_text;                // "t = 1.078 s"
  struct Tick {
    prof::TimeNs time;
    QString text;
  };
  std::vector<Tick> ticks;  // the first has the unit
};
// Ticks at 1, 2 or 5 times a power of ten, at least `min_px` apart, counted from a round time left of the range.
Ruler ruler(const TimeScale& scale, double min_px);

QString span_time(prof::TimeNs ns);                       // "96 ns", "6.9 µs", "1.84 ms", "12.3 s"
QString offset_time(prof::TimeNs ns, prof::TimeNs step);  // with as many digits as `step` needs: "96.4 µs"

}  // namespace ws::app
