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
  return again() ? every - since(at) : kNever;
}

XrayWindow xray_steps(std::string_view text) {
  const size_t slash = text.find('/');
  const bool again = slash != text.npos;
  const int64_t steps = steps_in(text.substr(0, slash)), every = again ? steps_in(text.substr(slash + 1)) : 0, time = again ? clock_time(text.substr(slash + 1)) : 0;
  if (steps > 0 && time > 0) return {.length = steps, .every = time, .again_by_time = true};
  if (steps == 0 || (again && every <= steps)) throw Failure("expected N, N/M with N below M, or N/TIME, such as 20, 20/2000 or 20/30s, not " + std::string(text));
  return {.length = steps, .every = every};
}

XrayWindow xray_time(std::string_view text) {
  constexpr int64_t kShortest = 1'000'000, kLongest = 60'000'000'000;
  const size_t slash = text.find('/');
  const bool again = slash != text.npos;
  const int64_t open = clock_time(text.substr(0, slash)), every = again ? clock_time(text.substr(slash + 1)) : 0;
  if (open < kShortest || open > kLongest || (again && every <= open))
    throw Failure("expected a time from 1 ms to 60 s, and perhaps a longer period, such as 200ms or 200ms/10s, not " + std::string(text));
  return {.length = open, .every = every, .by_time = true, .again_by_time = true};
}

std::string to_text(const XrayWindow& window) {
  const auto part = [&](int64_t amount) { return window.by_time ? clock_time_text(amount) : std::to_string(amount) + (amount == 1 ? " step" : " steps"); };
  if (window.every == 0) return part(window.length);
  if (window.again_by_time && !window.by_time) return part(window.length) + " each " + clock_time_text(window.every);
  return (window.by_time ? part(window.length) : std::to_string(window.length)) + " of every " + part(window.every);
}

uint32_t sampling_period(int64_t window_ns) {
  constexpr double kMeasuredNs = 0.13e9, kMeasuredSamples = 577'000, kMeasuredPeriod = 14, kWanted = 400'000;
  const double usual = kMeasuredSamples * static_cast<double>(std::max<int64_t>(window_ns, 1)) / kMeasuredNs;
  return static_cast<uint32_t>(std::clamp(std::round(kMeasuredPeriod + std::log2(usual / kWanted)), 10.0, 20.0));
}

uint32_t XrayPace::at_step(int64_t step, int64_t now) {
  constexpr int64_t kPacedSteps = 16;
  if (window_.by_time) return 0;
  const uint32_t before = period_;
  if (window_.again_by_time && closed_ns_ >= 0 && now - closed_ns_ >= window_.every) shift_ = step - XrayWindow::kFirstStep, closed_ns_ = -1;
  if (!window_.open(step - shift_)) {
    period_ = 0;
  } else if (before == 0) {
    const int64_t step_ns = (now - paced_ns_) / std::max<int64_t>(1, step - paced_step_);
    period_ = sampling_period(step_ns * window_.length);
  }
  const bool closed = before > 0 && period_ == 0;
  if (closed) closed_ns_ = now;
  if (step % kPacedSteps == 0 || step < paced_step_ || closed) paced_step_ = step, paced_ns_ = now;
  return period_;
}

XrayPace::Turn XrayPace::by_clock(int64_t since_begin, int64_t now) {
  constexpr int64_t kSoon = 1'000'000, kNever = std::numeric_limits<int64_t>::max();
  const int64_t began = began_.load();
  if (!open_ && since_begin < due_) return {.look_again = due_ == kNever ? kNever : due_ - since_begin};
  if (open_ && began == 0) return {.look_again = kSoon};
  if (open_ && now - began < window_.length) return {.look_again = std::max(kSoon, window_.length - (now - began))};
  began_ = 0, open_ = !open_;
  if (!open_) due_ = window_.every > 0 ? due_ + ((since_begin - due_) / window_.every + 1) * window_.every : kNever;
  return {.changes = true, .opens = open_, .look_again = kSoon};
}

}  // namespace ws::prof
