#include "app/core/remote/line_pace.h"

#include <algorithm>

namespace ws::app {
namespace {

constexpr uint64_t kLeast = 32u << 10, kMost = 8u << 20, kStep = 16u << 10;
constexpr int64_t kQueueNs = 60'000'000;  // longest time that bytes may wait on the line

}  // namespace

void LinePace::sent(uint64_t bytes, int64_t now_ns) {
  sent_ += bytes;
  marks_.push_back({sent_, now_ns});
}

void LinePace::received(uint64_t all, int64_t now_ns) {
  if (all <= received_ || all > sent_) return;
  const uint64_t more = all - received_;
  received_ = all;
  int64_t took_ns = -1, when_ns = 0;
  for (; !marks_.empty() && marks_.front().sent <= all; marks_.pop_front())
    took_ns = now_ns - marks_.front().time_ns, when_ns = marks_.front().time_ns;
  if (took_ns < 0) return;
  least_ns_ = std::min(least_ns_, took_ns);
  if (took_ns > least_ns_ + kQueueNs) {
    if (when_ns < shrunk_ns_) return;  // sent before the window was reduced
    found_ = true;
    window_ = std::max(kLeast, window_ * 7 / 10);
    shrunk_ns_ = now_ns;
  } else {
    window_ = std::min(kMost, window_ + (found_ ? std::max<uint64_t>(1, more * kStep / window_) : more));
  }
}

}  // namespace ws::app
