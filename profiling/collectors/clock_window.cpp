#include "profiling/collectors/clock_window.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "profiling/base/failure.h"

namespace ws::prof {

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kShortestWindow = 10 * kMillisecond;  // the clock is checked about this often
constexpr int64_t kLongestWindow = 3'600'000 * kMillisecond;

struct TimeUnit {
  const char* name;
  int64_t ns;
};
constexpr TimeUnit kTimeUnits[] = {{"min", 60'000 * kMillisecond}, {"s", 1000 * kMillisecond}, {"ms", kMillisecond}};

}  // namespace

int64_t clock_time(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number > 0 && number < 1e6)) return 0;
  for (const TimeUnit& unit : kTimeUnits)
    if (text.substr(static_cast<size_t>(end - text.data())) == unit.name)
      return static_cast<int64_t>(number * static_cast<double>(unit.ns));
  return 0;
}

std::string clock_time_text(int64_t ns) {
  for (const TimeUnit& unit : kTimeUnits)
    if (ns % unit.ns == 0) return std::to_string(ns / unit.ns) + " " + unit.name;
  return std::to_string(ns / kMillisecond) + " ms";
}

ClockWindow clock_window(std::string_view text) {
  const size_t slash = text.find('/');
  const int64_t open = clock_time(text.substr(0, slash));
  const int64_t every = slash == text.npos ? 0 : clock_time(text.substr(slash + 1));
  if (open < kShortestWindow || every - open < kShortestWindow || every > kLongestWindow)
    throw Failure("expected a time and a longer period, such as 200ms/5s, with at least 10 ms of each kind, not " +
                  std::string(text));
  return {open, every};
}

void ClosedTimes::close(int64_t now) {
  constexpr size_t kMost = 1024;  // half a minute with the shortest windows
  const std::lock_guard lock(mutex_);
  stretches_.push_back({now, std::numeric_limits<int64_t>::max()});
  if (stretches_.size() > kMost) stretches_.pop_front();
  ever_.store(true, std::memory_order_relaxed);
}

void ClosedTimes::open(int64_t now) {
  const std::lock_guard lock(mutex_);
  if (!stretches_.empty()) stretches_.back().end = std::min(stretches_.back().end, now);
}

bool ClosedTimes::among(int64_t time) const {
  const std::lock_guard lock(mutex_);
  const auto last = std::ranges::upper_bound(stretches_, time, {}, &Stretch::begin);
  return last != stretches_.begin() && time < std::prev(last)->end;
}

std::string to_text(const ClockWindow& window) {
  return clock_time_text(window.open_ns) + " of every " + clock_time_text(window.every_ns);
}

}  // namespace ws::prof
