#include "profiling/formats/pool_readings.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace ws::prof {

void PoolReadings::add(const Reading& reading) {
  if (reading.reserved || reading.used) readings_.push_back(reading);
}

void PoolReadings::draw(TraceBuilder& builder, const std::string& title) {
  std::ranges::stable_sort(readings_, {}, &Reading::time);
  for (const auto& [counter, value] : {std::pair{" reserved", &Reading::reserved}, {" used", &Reading::used}}) {
    std::unordered_map<int64_t, int64_t> held;
    double sum = 0;
    for (const Reading& reading : readings_) {
      const std::optional<int64_t> now = reading.*value;
      if (!now) continue;
      int64_t& before = held[reading.pool];
      sum += static_cast<double>(*now) - static_cast<double>(before);
      before = *now;
      builder.add_point(title + counter, "B", {reading.time, sum});
    }
  }
}

}  // namespace ws::prof
