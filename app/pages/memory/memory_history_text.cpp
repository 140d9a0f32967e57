#include "app/pages/memory/memory_history_text.h"

#include <algorithm>

namespace ws::app {
namespace {

constexpr size_t kNewestEvents = 20'000;  // the page is recomputed each second while a run is live

void judge(FragmentationCurve& curve, const prof::MemoryHistory& history) {
  curve.at_peak = curve.worst = prof::memory_moment(history, history.peak_time).fragmentation();
  for (const prof::MemoryMoment& moment : curve.moments) curve.worst = std::max(curve.worst, moment.fragmentation());
}

// True if the program itself reports its blocks. An arena reports only what it holds.
bool reports_blocks(const prof::Trace& trace) {
  const auto& events = trace.memory();
  const auto own = [&](const prof::MemoryEvent& event) {
    return event.kind == prof::MemoryAction::Allocate && event.source < trace.memory_sources.size() &&
           !prof::is_driver_source(trace.memory_sources[event.source]);
  };
  return std::any_of(events.rbegin(),
                     events.rbegin() + static_cast<std::ptrdiff_t>(std::min(events.size(), kNewestEvents)), own);
}

// Time of the oldest of the newest events. A pool still holds what it took before that.
prof::TimeNs newest_from(const prof::Trace& trace) {
  const auto& events = trace.memory();
  return events.size() <= kNewestEvents ? -prof::kAlways : events[events.size() - kNewestEvents].time;
}

}  // namespace

FragmentationCurve plan_fragmentation(const MemoryMap& map) {
  FragmentationCurve curve;
  if (map.empty()) return curve;
  prof::MemoryHistory history;
  if (map.reserved > 0)
    history.blocks.push_back(
        {0, map.reserved, 0, static_cast<prof::TimeNs>(map.x_end), 0, prof::kNoOp, 0, true, false});
  for (const MapBlock& block : map.blocks)
    history.blocks.push_back({block.y0, block.bytes, static_cast<prof::TimeNs>(block.x0),
                              static_cast<prof::TimeNs>(block.x1), 0, prof::kNoOp, 0, false, true});
  std::ranges::stable_sort(history.blocks, {}, &prof::MemoryBlock::begin);
  for (int op = 0; op < static_cast<int>(map.x_end); ++op) history.points.push_back({op, 0, 0, 0});
  curve.moments = prof::memory_moments(history, -prof::kAlways, prof::kAlways, prof::kMemoryMoments);
  curve.of = QObject::tr("the plan"), curve.by_op = true;
  curve.x_begin = 0, curve.x_end = map.x_end;
  history.peak_time = static_cast<prof::TimeNs>(map.peak_x);
  judge(curve, history);
  return curve;
}

FragmentationCurve event_fragmentation(const prof::Trace& trace, int source) {
  FragmentationCurve curve;
  const bool own = source >= 0 || reports_blocks(trace);
  const prof::TimeNs from = newest_from(trace);
  QString name;
  const prof::MemoryHistory history = prof::memory_history(trace, [&](const prof::MemoryEvent& event) {
    if (source >= 0 && event.source != source) return false;
    const bool known = event.source < trace.memory_sources.size();
    if ((known && !prof::is_driver_source(trace.memory_sources[event.source])) != own) return false;
    const bool held = event.kind == prof::MemoryAction::Reserve || event.kind == prof::MemoryAction::Release;
    if (event.time < from && !held) return false;
    if (own && name.isEmpty()) name = QString::fromStdString(trace.memory_sources[event.source]);
    return true;
  });
  if (history.points.empty()) return curve;
  curve.moments = prof::memory_moments(history, from, prof::kAlways, prof::kMemoryMoments);
  if (curve.empty()) return curve;
  curve.of = own ? name : QObject::tr("cudaMalloc and similar calls");
  curve.x_begin = static_cast<double>(curve.moments.front().time);
  curve.x_end = static_cast<double>(std::max(curve.moments.back().time, curve.moments.front().time + 1));
  judge(curve, history);
  return curve;
}

}  // namespace ws::app
