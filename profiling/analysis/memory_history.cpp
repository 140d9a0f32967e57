#include "profiling/analysis/memory_history.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace ws::prof {

namespace {

using OpenBlocks = std::unordered_map<uint64_t, size_t>;  // address → index of the block

struct Builder {
  MemoryHistory history;
  OpenBlocks live, reserved;
  uint64_t live_bytes = 0, reserved_bytes = 0;

  void open(const MemoryEvent& event, bool segment) {
    OpenBlocks& known = segment ? reserved : live;
    if (known.contains(event.address)) close(event, segment);  // the free of the old block was not recorded
    known[event.address] = history.blocks.size();
    history.blocks.push_back(
        {event.address, event.bytes, event.time, event.time, event.step, event.op, event.source, segment, false});
    (segment ? reserved_bytes : live_bytes) += event.bytes;
    if (!segment) ++history.allocations;
  }

  void close(const MemoryEvent& event, bool segment) {
    OpenBlocks& known = segment ? reserved : live;
    const auto at = known.find(event.address);
    if (at == known.end()) {
      history.unmatched_frees += !segment;
      return;
    }
    MemoryBlock& block = history.blocks[at->second];
    block.end = event.time;
    block.freed = true;
    (segment ? reserved_bytes : live_bytes) -= block.bytes;
    known.erase(at);
    if (!segment) ++history.frees;
  }

  void add(const MemoryEvent& event) {
    switch (event.kind) {
      case MemoryAction::Allocate:
        open(event, false);
        break;
      case MemoryAction::Free:
        close(event, false);
        break;
      case MemoryAction::Reserve:
        open(event, true);
        break;
      case MemoryAction::Release:
        close(event, true);
        break;
    }
    history.points.push_back({event.time, live_bytes, reserved_bytes, static_cast<uint32_t>(live.size())});
    if (live_bytes > history.peak_live) history.peak_live = live_bytes, history.peak_time = event.time;
    history.peak_reserved = std::max(history.peak_reserved, reserved_bytes);
  }
};

}  // namespace

MemoryHistory memory_history(const Trace& trace, int source) {
  return memory_history(trace, [source](const MemoryEvent& event) { return source < 0 || event.source == source; });
}

MemoryHistory memory_history(const Trace& trace, const MemoryFilter& belongs) {
  Builder builder;
  std::vector<MemoryEvent> events;
  for (const MemoryEvent& event : trace.memory())
    if (belongs(event)) events.push_back(event);
  std::ranges::stable_sort(events, {}, &MemoryEvent::time);
  for (const MemoryEvent& event : events) builder.add(event);
  const TimeNs last = std::max(trace.last_time(), events.empty() ? 0 : events.back().time);
  for (MemoryBlock& block : builder.history.blocks) {
    if (!block.freed) block.end = last;
  }
  return std::move(builder.history);
}

void each_live_at_peak(const MemoryHistory& history, const std::function<void(const MemoryBlock&)>& found) {
  for (const MemoryBlock& block : history.blocks)
    if (!block.reserved && block.begin <= history.peak_time && (!block.freed || block.end > history.peak_time)) found(block);
}

std::vector<SizeBin> size_histogram(const MemoryHistory& history) {
  SizeBins sizes;
  for (const MemoryBlock& block : history.blocks)
    if (!block.reserved) sizes.add(block.bytes);
  return sizes.bins();
}

namespace {
size_t power_of(uint64_t bytes) { return bytes == 0 ? 0 : static_cast<size_t>(std::bit_width(bytes)) - 1; }
}  // namespace

void SizeBins::add(uint64_t bytes) {
  Sum& sum = sums_[power_of(bytes)];
  ++sum.count, sum.bytes += bytes;
}

void SizeBins::remove(uint64_t bytes) {
  Sum& sum = sums_[power_of(bytes)];
  --sum.count, sum.bytes -= bytes;
}

std::vector<SizeBin> SizeBins::bins() const {
  std::vector<SizeBin> bins;
  for (size_t power = 0; power < sums_.size(); ++power)
    if (const Sum& sum = sums_[power]; sum.count > 0)
      bins.push_back({power == 0 ? 0 : uint64_t{1} << power, power >= 63 ? ~uint64_t{0} : uint64_t{2} << power, sum.count, sum.bytes});
  return bins;
}

namespace {

bool of_driver(const Trace& trace, const MemoryEvent& event) {
  return event.source < trace.memory_sources.size() && is_driver_source(trace.memory_sources[event.source]);
}
bool has_own_allocator(const Trace& trace) {
  return std::ranges::any_of(trace.memory_sources, [](const std::string& source) { return !source.empty() && !is_driver_source(source); });
}

}  // namespace

AllocationCounts count_allocations(const Trace& trace, TimeNs begin, TimeNs end) {
  AllocationCounts counts;
  for (const MemoryEvent& event : trace.memory()) {
    if (event.kind != MemoryAction::Allocate || event.time < begin || event.time >= end) continue;
    const bool driver = of_driver(trace, event);
    ++(driver ? counts.driver : counts.program);
    (driver ? counts.driver_bytes : counts.program_bytes) += event.bytes;
  }
  if (!has_own_allocator(trace)) counts.program = counts.driver, counts.program_bytes = counts.driver_bytes;
  return counts;
}

uint64_t peak_live(const Trace& trace) {
  const bool own = has_own_allocator(trace);
  if (!own) return memory_history(trace, [&](const MemoryEvent& event) { return of_driver(trace, event); }).peak_live;
  uint64_t most = 0;
  for (size_t i = 0; i < trace.memory_sources.size(); ++i)
    if (!is_driver_source(trace.memory_sources[i])) most = std::max(most, memory_history(trace, static_cast<int>(i)).peak_live);
  return most;
}

}  // namespace ws::prof
