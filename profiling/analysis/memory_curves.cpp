#include "profiling/analysis/memory_curves.h"

#include <algorithm>

namespace ws::prof {
namespace {
constexpr size_t kMostPoints = 1'000'000;
}  // namespace

bool MemoryCurves::update(const Trace& trace, size_t most) {
  const auto& events = trace.memory();
  if (trace.memory_count() < taken_) *this = MemoryCurves();  // another trace, or one that began again
  // An allocator of the program reports the allocations of a step. The driver's calls would report them twice, and they
  // include the data set and the weights. So the driver counts only if no other allocator reports.
  const bool own = std::ranges::any_of(trace.memory_sources, [](const auto& s) { return !is_driver_source(s); });
  if (own && !own_) *this = MemoryCurves(), own_ = true;
  const size_t fresh = std::min(events.size(), trace.memory_count() - taken_);
  const size_t first = events.size() - fresh, last = first + std::min(fresh, most);
  for (size_t i = first; i < last; ++i) {
    const uint8_t source = events[i].source;
    const bool driver = source < trace.memory_sources.size() && is_driver_source(trace.memory_sources[source]);
    if (!own_ || !driver) take(events[i]);
  }
  taken_ = trace.memory_count() - (events.size() - last);
  return last == events.size();
}

void MemoryCurves::take(const MemoryEvent& event) {
  using Kind = MemoryAction;
  if (event.source >= allocators_.size()) allocators_.resize(event.source + size_t{1});
  Allocator& a = allocators_[event.source];
  switch (event.kind) {
    case Kind::Reserve:
      a.held += event.bytes, a.pooled = true;
      break;
    case Kind::Release:
      a.held -= std::min(a.held, event.bytes);
      break;  // a pool releases memory in parts
    case Kind::Allocate: {
      auto [block, fresh] = a.blocks.try_emplace(event.address, event.bytes);
      if (!fresh) a.live -= std::min(a.live, block->second);  // its free happened in an untraced stretch
      a.live += block->second = event.bytes, a.hands_out = true;
      break;
    }
    case Kind::Free:
      if (auto it = a.blocks.find(event.address); it != a.blocks.end())
        a.live -= std::min(a.live, it->second), a.blocks.erase(it);
      break;
  }
  uint64_t used = 0, reserved = 0;
  for (const Allocator& each : allocators_) used += each.used(), reserved += each.reserved();
  apart_ = apart_ || reserved > used, handed_out_ = handed_out_ || a.hands_out;
  put(used_, event.time, static_cast<double>(used));
  put(reserved_, event.time, static_cast<double>(reserved));
}

void MemoryCurves::put(CounterTrack& track, TimeNs time, double value) {
  if (!track.points.empty()) time = std::max(time, track.points.back().time);
  track.points.push_back({time, value});
  if (track.points.size() > kMostPoints) track.points.pop_front();
}

}  // namespace ws::prof
