// One time line for host and device: host times are steady_clock, device times are mapped onto it by an offset that is
// measured repeatedly.
#pragma once
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>

namespace ws::prof {

inline int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double steady_seconds() { return 1e-9 * static_cast<double>(steady_ns()); }

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// "2026-11-21T05:40:34Z"
inline std::string utc_text(std::time_t seconds = std::time(nullptr)) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// other clock = steady clock + offset, with an error of at most ±width/2.
struct ClockOffset {
  int64_t offset = 0;
  int64_t width = 0;  // width of the tightest bracket
  int64_t to_steady(uint64_t other) const { return static_cast<int64_t>(other) - offset; }
};

// Reads the other clock between two reads of the steady clock, several times, and keeps the tightest pair.
template <class ReadOther, class ReadSteady>
ClockOffset calibrate(ReadOther&& read_other, ReadSteady&& read_steady, int rounds = 32) {
  ClockOffset best{0, std::numeric_limits<int64_t>::max()};
  for (int i = 0; i < rounds; ++i) {
    const int64_t before = read_steady();
    const int64_t other = static_cast<int64_t>(read_other());
    const int64_t after = read_steady();
    if (after - before < best.width) best = {other - (before + (after - before) / 2), after - before};
  }
  return best;
}

template <class ReadOther>
ClockOffset calibrate(ReadOther&& read_other) {
  return calibrate(read_other, steady_ns);
}

}  // namespace ws::prof
