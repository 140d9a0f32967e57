#include "app/timeline/time_scale.h"

#include <algorithm>
#include <cmath>

#include "app/text/units.h"

namespace ws::app {
namespace {

using prof::TimeNs;

struct Unit {
  TimeNs ns;
  const char* name;
};
constexpr Unit kUnits[] = {{1, "ns"}, {1'000, "µs"}, {1'000'000, "ms"}, {1'000'000'000, "s"}};

const Unit& unit_for(TimeNs ns) {
  for (int i = 3; i > 0; --i)
    if (std::abs(ns) >= kUnits[i].ns) return kUnits[i];
  return kUnits[0];
}

TimeNs round_step(double least) {
  double power = std::pow(10.0, std::floor(std::log10(std::max(1.0, least))));
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power >= least) return static_cast<TimeNs>(factor * power);
  return static_cast<TimeNs>(10 * power);
}

TimeNs power_above(TimeNs step) {
  TimeNs power = 10;
  while (power <= step) power *= 10;
  return power;
}

TimeNs floor_to(TimeNs time, TimeNs step) {
  const TimeNs rest = time % step;
  return time - (rest < 0 ? rest + step : rest);
}

int decimals_for(TimeNs step, TimeNs unit) {
  int digits = 0;
  for (TimeNs scaled = unit; scaled > step && digits < 9; scaled /= 10) ++digits;
  return digits;
}

TimeRange bounded(TimeRange range, double share_left) {
  const TimeNs length = std::clamp(range.length(), kShortestRange, kLongestRange);
  const auto excess = static_cast<double>(range.length() - length);
  const TimeNs begin = range.begin + static_cast<TimeNs>(excess * share_left);
  return {begin, begin + length};
}

}  // namespace

TimeRange zoomed(TimeRange range, TimeNs anchor, double factor) {
  const auto scaled = [&](TimeNs t) {
    return anchor + static_cast<TimeNs>(std::llround(static_cast<double>(t - anchor) * factor));
  };
  const double share =
      static_cast<double>(anchor - range.begin) / static_cast<double>(std::max<TimeNs>(1, range.length()));
  return bounded({scaled(range.begin), scaled(range.end)}, std::clamp(share, 0.0, 1.0));
}

TimeRange panned(TimeRange range, double share) {
  const auto by = static_cast<TimeNs>(static_cast<double>(range.length()) * share);
  return {range.begin + by, range.end + by};
}

TimeRange centred(TimeRange range, TimeNs time) {
  const TimeNs begin = time - range.length() / 2;
  return {begin, begin + range.length()};
}

TimeRange padded(TimeRange range, double share) {
  const auto by = static_cast<TimeNs>(static_cast<double>(range.length()) * share);
  return bounded({range.begin - by, range.end + by}, 0.5);
}

Ruler ruler(const TimeScale& scale, double min_px) {
  Ruler result;
  if (scale.range.length() <= 0 || scale.width <= 0) return result;
  result.step = round_step(scale.ns_per_px() * min_px);
  const TimeNs near = power_above(result.step);
  const Unit& unit = unit_for(scale.range.length() + near);
  result.base = scale.range.begin / near * near;  // towards zero: before the origin, times count backwards from it
  result.base_text = QStringLiteral("t = ") + offset_time(result.base, near);
  const int decimals = decimals_for(result.step, unit.ns);
  for (TimeNs t = floor_to(scale.range.begin + result.step - 1, result.step); t < scale.range.end; t += result.step) {
    QString text = fixed_text(static_cast<double>(t - result.base) / static_cast<double>(unit.ns), decimals);
    if (result.ticks.empty()) text += QStringLiteral(" ") + QString::fromUtf8(unit.name);
    result.ticks.push_back({t, text});
  }
  return result;
}

QString span_time(TimeNs ns) {
  const Unit& unit = unit_for(ns);
  const double value = static_cast<double>(ns) / static_cast<double>(unit.ns);
  const int decimals = unit.ns == 1 ? 0 : std::abs(value) < 10 ? 2 : std::abs(value) < 1000 ? 1 : 0;
  return fixed_text(value, decimals) + " " + QString::fromUtf8(unit.name);
}

QString offset_time(TimeNs ns, TimeNs step) {
  const Unit& unit = unit_for(ns == 0 ? step : ns);
  return fixed_text(static_cast<double>(ns) / static_cast<double>(unit.ns),
                    decimals_for(std::max<TimeNs>(1, step), unit.ns)) +
         " " + QString::fromUtf8(unit.name);
}

}  // namespace ws::app
