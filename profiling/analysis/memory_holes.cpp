#include "profiling/analysis/memory_holes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace ws::prof {

namespace {

constexpr uint64_t kPage = 2u << 20;  // the driver cuts small blocks from pages of this size

using Places = std::map<uint64_t, uint64_t>;  // address → bytes

// The addresses that blocks ever had, merged into few pieces without large gaps.
Places ever_used(const MemoryHistory& history) {
  std::vector<std::pair<uint64_t, uint64_t>> blocks;
  for (const MemoryBlock& block : history.blocks)
    if (!block.reserved) blocks.emplace_back(block.address, block.address + block.bytes);
  std::ranges::sort(blocks);
  Places places;
  uint64_t begin = 0, end = 0;
  const auto put = [&] {
    if (end > begin) places[begin] = end - begin;
  };
  for (const auto& [from, to] : blocks) {
    if (from > end + kPage || end == 0) put(), begin = from, end = to;
    end = std::max(end, to);
  }
  put();
  return places;
}

// True if the segments belong to a pool. Some pools report how much they hold, but not where. An allocator that takes
// each block from the driver separately is not a pool.
bool segments_hold_blocks(const MemoryHistory& history) {
  Places segments;
  std::set<std::pair<uint64_t, uint64_t>> whole;
  for (const MemoryBlock& block : history.blocks) {
    if (!block.reserved) continue;
    segments[block.address] = std::max(segments[block.address], block.bytes);
    whole.emplace(block.address, block.bytes);
  }
  return std::ranges::any_of(history.blocks, [&](const MemoryBlock& block) {
    auto at = segments.upper_bound(block.address);
    if (block.reserved || at == segments.begin() || whole.contains({block.address, block.bytes})) return false;
    --at;
    return block.address < at->first + at->second;
  });
}

// Steps through a history once, from the first moment to the last.
class Sweep {
 public:
  explicit Sweep(const MemoryHistory& history) : history_(history), by_end_(history.blocks.size()) {
    in_segments_ = segments_hold_blocks(history);
    if (!in_segments_) places_ = ever_used(history);
    std::iota(by_end_.begin(), by_end_.end(), size_t{0});
    std::ranges::stable_sort(by_end_, {}, [&](size_t i) { return history.blocks[i].end; });
  }

  MemoryMoment at(TimeNs time) {
    advance(time);
    MemoryMoment moment;
    moment.time = time;
    for (const auto& [address, block] : segments_) moment.reserved += history_.blocks[block].bytes;
    MemoryHistory live;
    for (const auto& [address, block] : used_) {
      moment.live += history_.blocks[block].bytes;
      live.blocks.push_back(history_.blocks[block]);
    }
    moment.sizes = size_histogram(live);
    find_holes(moment);
    return moment;
  }

 private:
  using Open = std::map<uint64_t, size_t>;  // address → index of the block

  void advance(TimeNs time) {
    const auto& blocks = history_.blocks;
    for (;;) {
      const TimeNs opens = next_ < blocks.size() ? blocks[next_].begin : kAlways;
      const TimeNs closes = ended_ < by_end_.size() ? blocks[by_end_[ended_]].end : kAlways;
      if (std::min(opens, closes) > time) return;
      if (closes <= opens)
        close(by_end_[ended_++]);
      else
        open(next_++);
      if (next_ == blocks.size() && ended_ == by_end_.size()) return;
    }
  }
  void open(size_t i) {
    const MemoryBlock& block = history_.blocks[i];
    if (block.freed && block.end <= block.begin) return;
    (block.reserved ? segments_ : used_)[block.address] = i;
  }
  void close(size_t i) {
    const MemoryBlock& block = history_.blocks[i];
    Open& known = block.reserved ? segments_ : used_;
    if (const auto at = known.find(block.address); block.freed && at != known.end() && at->second == i) known.erase(at);
  }

  void find_holes(MemoryMoment& moment) const {
    if (!in_segments_) {
      for (const auto& [address, bytes] : places_) holes_of(moment, address, bytes);
      return;
    }
    for (const auto& [address, block] : segments_) holes_of(moment, address, history_.blocks[block].bytes);
  }
  void holes_of(MemoryMoment& moment, uint64_t address, uint64_t bytes) const {
    uint64_t at = address;
    const uint64_t end = address + bytes;
    const auto hole = [&](uint64_t to) {
      if (to <= at) return;
      ++moment.holes;
      moment.free_bytes += to - at;
      moment.largest_hole = std::max(moment.largest_hole, to - at);
    };
    for (auto block = used_.lower_bound(address); block != used_.end() && block->first < end; ++block) {
      hole(block->first);
      at = std::max(at, std::min(end, block->first + history_.blocks[block->second].bytes));
    }
    hole(end);
  }

  const MemoryHistory& history_;
  std::vector<size_t> by_end_;
  Open used_, segments_;
  Places places_;
  bool in_segments_ = false;
  size_t next_ = 0, ended_ = 0;
};

}  // namespace

MemoryMoment memory_moment(const MemoryHistory& history, TimeNs time) { return Sweep(history).at(time); }

double fragmentation(const MemoryHistory& history, TimeNs time) { return memory_moment(history, time).fragmentation(); }

std::vector<MemoryMoment> memory_moments(const MemoryHistory& history, TimeNs begin, TimeNs end, size_t most) {
  std::vector<TimeNs> times;
  for (const MemoryPoint& point : history.points)
    if (point.time >= begin && point.time < end && (times.empty() || point.time > times.back()))
      times.push_back(point.time);
  Sweep sweep(history);
  std::vector<MemoryMoment> moments;
  const size_t count = std::min(most, times.size());
  for (size_t i = 0; i < count; ++i) moments.push_back(sweep.at(times[i * times.size() / count]));
  return moments;
}

}  // namespace ws::prof
