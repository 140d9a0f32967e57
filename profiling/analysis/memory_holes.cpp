#include "profiling/analysis/memory_holes.h"

#include <algorithm>
#include <bit>
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

// Blocks that are live, in the order of their addresses. Every address that a block ever has is known before.
class LiveBlocks {
 public:
  explicit LiveBlocks(const MemoryHistory& history) : rank_of_(history.blocks.size()) {
    for (const MemoryBlock& block : history.blocks)
      if (!block.reserved) addresses_.push_back(block.address);
    std::ranges::sort(addresses_);
    addresses_.erase(std::ranges::unique(addresses_).begin(), addresses_.end());
    for (size_t i = 0; i < history.blocks.size(); ++i) rank_of_[i] = rank_at(history.blocks[i].address);
    held_.resize(addresses_.size());
    bits_.resize(addresses_.size() / 64 + 1);
  }
  void put(size_t block, uint64_t bytes) {
    const size_t rank = rank_of_[block];
    erase(rank);
    held_[rank] = {block, bytes};
    bits_[rank / 64] |= uint64_t{1} << rank % 64;
    bytes_ += bytes;
    sizes_.add(bytes);
  }
  void take(size_t block) {
    if (const size_t rank = rank_of_[block]; is_live(rank) && held_[rank].block == block) erase(rank);
  }
  // The first address that a block ever has at or behind `address`.
  size_t rank_at(uint64_t address) const {
    return static_cast<size_t>(std::ranges::lower_bound(addresses_, address) - addresses_.begin());
  }
  // Calls found(address, bytes) for live blocks below `end`, the first of which has this rank or a later one.
  template <typename Found>
  void each(size_t rank, uint64_t end, const Found& found) const {
    for (rank = next_live(rank); rank < addresses_.size() && addresses_[rank] < end; rank = next_live(rank + 1))
      found(addresses_[rank], held_[rank].bytes);
  }
  uint64_t bytes() const { return bytes_; }
  std::vector<SizeBin> sizes() const { return sizes_.bins(); }

 private:
  struct Held {
    size_t block = 0;
    uint64_t bytes = 0;
  };
  bool is_live(size_t rank) const { return bits_[rank / 64] >> rank % 64 & 1; }
  size_t next_live(size_t rank) const {
    if (rank >= addresses_.size()) return addresses_.size();
    size_t word = rank / 64;
    for (uint64_t bits = bits_[word] & ~uint64_t{0} << rank % 64;; bits = bits_[word]) {
      if (bits != 0) return word * 64 + static_cast<size_t>(std::countr_zero(bits));
      if (++word == bits_.size()) return addresses_.size();
    }
  }
  void erase(size_t rank) {
    if (!is_live(rank)) return;
    bits_[rank / 64] &= ~(uint64_t{1} << rank % 64);
    bytes_ -= held_[rank].bytes;
    sizes_.remove(held_[rank].bytes);
  }

  std::vector<uint64_t> addresses_, bits_;
  std::vector<size_t> rank_of_;  // by block
  std::vector<Held> held_;
  uint64_t bytes_ = 0;
  SizeBins sizes_;
};

// Steps through a history once, from the first moment to the last.
class Sweep {
 public:
  explicit Sweep(const MemoryHistory& history) : history_(history), by_end_(history.blocks.size()), used_(history) {
    in_segments_ = segments_hold_blocks(history);
    if (!in_segments_)
      for (const auto& [address, bytes] : ever_used(history)) places_.push_back({address, bytes, used_.rank_at(address)});
    std::iota(by_end_.begin(), by_end_.end(), size_t{0});
    std::ranges::stable_sort(by_end_, {}, [&](size_t i) { return history.blocks[i].end; });
  }

  MemoryMoment at(TimeNs time) {
    advance(time);
    MemoryMoment moment;
    moment.time = time;
    for (const auto& [address, block] : segments_) moment.reserved += history_.blocks[block].bytes;
    moment.live = used_.bytes();
    moment.sizes = used_.sizes();
    find_holes(moment);
    return moment;
  }

 private:
  struct Place {
    uint64_t address, bytes;
    size_t rank;  // of the first block in it
  };

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
    if (block.reserved)
      segments_[block.address] = i;
    else
      used_.put(i, block.bytes);
  }
  void close(size_t i) {
    const MemoryBlock& block = history_.blocks[i];
    if (!block.freed) return;
    if (!block.reserved)
      used_.take(i);
    else if (const auto at = segments_.find(block.address); at != segments_.end() && at->second == i)
      segments_.erase(at);
  }

  void find_holes(MemoryMoment& moment) const {
    for (const Place& place : places_) holes_of(moment, place);
    if (!in_segments_) return;
    for (const auto& [address, block] : segments_)
      holes_of(moment, {address, history_.blocks[block].bytes, used_.rank_at(address)});
  }
  void holes_of(MemoryMoment& moment, const Place& place) const {
    uint64_t at = place.address;
    const uint64_t end = place.address + place.bytes;
    const auto hole = [&](uint64_t to) {
      if (to <= at) return;
      ++moment.holes;
      moment.free_bytes += to - at;
      moment.largest_hole = std::max(moment.largest_hole, to - at);
    };
    used_.each(place.rank, end, [&](uint64_t address, uint64_t bytes) {
      hole(address);
      at = std::max(at, std::min(end, address + bytes));
    });
    hole(end);
  }

  const MemoryHistory& history_;
  std::vector<size_t> by_end_;
  LiveBlocks used_;
  std::map<uint64_t, size_t> segments_;  // address → index of the block
  std::vector<Place> places_;
  bool in_segments_ = false;
  size_t next_ = 0, ended_ = 0;
};

}  // namespace

MemoryMoment memory_moment(const MemoryHistory& history, TimeNs time) { return Sweep(history).at(time); }

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
