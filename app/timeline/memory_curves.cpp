#include "app/timeline/memory_curves.h"

#include <algorithm>

namespace ws::app {
namespace {
constexpr size_t kMostPoints = 1'000'000;
}

void MemoryCurves::update(const prof::Trace& trace) {
  const auto& events = trace.memory();
  if (events.size() < taken_) *this = MemoryCurves();  // another trace, or one that began again
  for (; taken_ < events.size(); ++taken_) take(events[taken_]);
}

void MemoryCurves::take(const prof::MemoryEvent& event) {
  using Kind = prof::MemoryEventKind;
  switch (event.kind) {
    case Kind::Reserve:
      held_ += event.bytes, pooled_ = true;
      break;
    case Kind::Release:
      held_ -= std::min(held_, event.bytes);
      break;  // a pool gives back in parts
    case Kind::Allocate:
      live_ += event.bytes, blocks_[event.address] = event.bytes, blocks_seen_ = true;
      break;
    case Kind::Free:
      if (auto it = blocks_.find(event.address); it != blocks_.end())
        live_ -= std::min(live_, it->second), blocks_.erase(it);
      break;
  }
  // An arena hands nothing out in a step; without a pool each block is taken from the device for itself.
  put(used_, event.time, static_cast<double>(blocks_seen_ ? live_ : held_));
  put(reserved_, event.time, static_cast<double>(pooled_ ? held_ : live_));
}

void MemoryCurves::put(prof::CounterTrack& track, prof::TimeNs time, double value) {
  if (!track.points.empty()) time = std::max(time, track.points.back().time);
  track.points.push_back({time, value});
  if (track.points.size() > kMostPoints) track.points.pop_front();
}

}  // namespace ws::app
