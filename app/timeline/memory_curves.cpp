#include "app/timeline/memory_curves.h"

#include <algorithm>

namespace ws::app {
namespace { constexpr size_t kMostPoints = 1'000'000; }

void MemoryCurves::update(const prof::Trace& trace) {
  const auto& events = trace.memory();
  if (events.size() < taken_) *this = MemoryCurves();  // another trace, or one that began again
  for (; taken_ < events.size(); ++taken_) take(events[taken_]);
}

void MemoryCurves::take(const prof::MemoryEvent& event) {
  using Kind = prof::MemoryEventKind;
  const bool segment = event.kind == Kind::Reserve || event.kind == Kind::Release;
  auto& known = segment ? segments_ : blocks_;
  uint64_t& total = segment ? held_ : live_;
  if (event.kind == Kind::Allocate || event.kind == Kind::Reserve) {
    total += event.bytes;
    known[event.address] = event.bytes;
  } else if (auto it = known.find(event.address); it != known.end()) {
    total -= std::min(total, it->second);
    known.erase(it);
  }
  put(used_, event.time, static_cast<double>(live_));
  // Without a pool each block is taken from the device for itself.
  put(reserved_, event.time, static_cast<double>(std::max(held_, segments_.empty() ? live_ : held_)));
}

void MemoryCurves::put(prof::CounterTrack& track, prof::TimeNs time, double value) {
  if (!track.points.empty()) time = std::max(time, track.points.back().time);
  track.points.push_back({time, value});
  if (track.points.size() > kMostPoints) track.points.pop_front();
}

}  // namespace ws::app
