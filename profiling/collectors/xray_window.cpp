#include "profiling/collectors/xray_window.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "profiling/base/failure.h"
#include "profiling/collectors/clock_window.h"

namespace ws::prof {

namespace {

// Returns 0 if the text is not a number of steps.
int64_t steps_in(std::string_view text) {
  int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  return error == std::errc() && end == text.data() + text.size() && steps > 0 ? steps : 0;
}

}  // namespace

int64_t XrayWindow::until_change(int64_t at) const {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  if (!any()) return kNever;
  if (at < first()) return first() - at;
  if (open(at)) return length - since(at);
  return every > 0 ? every - since(at) : kNever;
}

XrayWindow xray_steps(std::string_view text) {
  const size_t slash = text.find('/');
  const bool again = slash != text.npos;
  const int64_t steps = steps_in(text.substr(0, slash)), every = again ? steps_in(text.substr(slash + 1)) : 0;
  if (steps == 0 || (again && every <= steps)) throw Failure("expected N or N/M with N below M, such as 20 or 20/2000, not " + std::string(text));
  return {steps, every, false};
}

XrayWindow xray_time(std::string_view text) {
  constexpr int64_t kShortest = 1'000'000, kLongest = 60'000'000'000;
  const size_t slash = text.find('/');
  const bool again = slash != text.npos;
  const int64_t open = clock_time(text.substr(0, slash)), every = again ? clock_time(text.substr(slash + 1)) : 0;
  if (open < kShortest || open > kLongest || (again && every <= open))
    throw Failure("expected a time from 1 ms to 60 s, and perhaps a longer period, such as 200ms or 200ms/10s, not " + std::string(text));
  return {open, every, true};
}

std::string to_text(const XrayWindow& window) {
  const auto part = [&](int64_t amount) { return window.by_time ? clock_time_text(amount) : std::to_string(amount) + (amount == 1 ? " step" : " steps"); };
  if (window.every == 0) return part(window.length);
  return (window.by_time ? part(window.length) : std::to_string(window.length)) + " of every " + part(window.every);
}

uint32_t sampling_period(int64_t window_ns) {
  constexpr double kMeasuredNs = 0.13e9, kMeasuredSamples = 577'000, kMeasuredPeriod = 14, kWanted = 400'000;
  const double usual = kMeasuredSamples * static_cast<double>(std::max<int64_t>(window_ns, 1)) / kMeasuredNs;
  return static_cast<uint32_t>(std::clamp(std::round(kMeasuredPeriod + std::log2(usual / kWanted)), 10.0, 20.0));
}

}  // namespace ws::prof
