#include "profiling/collectors/ring_stamps.h"

#include <algorithm>
#include <cstring>

namespace ws::prof {
namespace {

using warpsight::RangeSegment;
using warpsight::RangeStamp;

constexpr uint32_t kMostMultiprocessors = 1024, kMostWarps = 64;
constexpr size_t kDeepest = 64, kMostWriters = 1 << 16;
constexpr uint64_t kClockWraps = 1'000'000'000;  // ns in which %clock may have begun again
constexpr uint64_t kLongMeasure = 100'000;       // ns after which the timer's steps of up to 1 µs matter little
constexpr uint64_t kTimerStep = 1024;            // ns

template <class Value>
Value value_at(std::span<const std::byte> bytes, size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// How far a clock went on, of which only the low half is known. A clock may seem to go back a little.
uint32_t advance(uint64_t from, uint32_t low) {
  const uint32_t by = low - static_cast<uint32_t>(from);
  return by > 0xffffffff - kTimerStep ? 0 : by;
}

}  // namespace

RingStamps::RingStamps(const StampRing& ring, OpTag first)
    : segments_(ring.segments),
      stamps_(ring.stamps),
      names_(static_cast<uint32_t>(ring.names.size())),
      first_(first),
      seen_(ring.segments) {}

std::vector<RingPart> RingStamps::read(const RingCopy& copy) {
  const size_t each = copy.ring->segment_bytes();
  const auto count = static_cast<uint32_t>(std::min<size_t>(copy.bytes.size() / each, segments_));
  count_overwritten(copy.first, count);
  std::vector<RingPart> parts;
  for (uint32_t i = 0; i < count; ++i) {
    RingPart part = read_segment(copy.first + i, std::span(copy.bytes).subspan(i * each, each));
    if (part.stamps.size() > 1) parts.push_back(std::move(part));
  }
  return parts;
}

// Segment numbers have 32 bits and wrap around.
void RingStamps::count_overwritten(uint32_t first, uint32_t count) {
  const auto missed = static_cast<int32_t>(first - next_);
  if (missed > 0) losses_.overwritten += static_cast<uint64_t>(missed);
  if (static_cast<int32_t>(first + count - next_) > 0) next_ = first + count;
}

RingPart RingStamps::read_segment(uint32_t number, std::span<const std::byte> bytes) {
  const auto head = value_at<RangeSegment>(bytes, 0);
  if (head.ticket != number + 1) return {};  // not written yet, or already another one
  if (head.multiprocessor >= kMostMultiprocessors || head.warp >= kMostWarps) {
    ++losses_.invalid;
    return RingPart{};
  }
  Seen& seen = seen_[number % segments_];
  const Writer writer{head.block, head.warp, head.multiprocessor};
  if (seen.ticket != head.ticket) {
    seen = {head.ticket, 0, {head.ns, head.clock}};
    if (const auto left = open_.find(writer); head.before == 0 && left != open_.end()) {
      losses_.unmatched += left->second.names.size();
      open_.erase(left);
    }
  }
  std::vector<Moment> moments{seen.last};
  std::vector<uint32_t> what;
  for (; seen.stamps < stamps_; ++seen.stamps) {
    const auto stamp = value_at<RangeStamp>(bytes, sizeof(RangeSegment) + seen.stamps * sizeof(RangeStamp));
    if (stamp.ticket != head.ticket) break;
    seen.last.ns += advance(seen.last.ns, stamp.ns);
    seen.last.cycles += advance(seen.last.cycles, stamp.clock);
    moments.push_back(seen.last);
    what.push_back(stamp.what);
  }
  if (what.empty()) return {};
  RingPart part{head.multiprocessor, head.warp, {}};
  Open& open = open_[writer];
  if (!open.names.empty()) part.stamps.push_back(open.last);
  const std::vector<uint64_t> when = times(moments);
  for (size_t i = 0; i < what.size(); ++i) {
    apply(what[i], open);
    const OpTag op = open.names.empty() ? kNoOp : static_cast<OpTag>(first_ + open.names.back());
    const uint64_t before = part.stamps.empty() ? 0 : part.stamps.back().globaltimer;
    open.last = {std::max(when[i + 1], before), 0, op, 0};
    part.stamps.push_back(open.last);
  }
  if (open.names.empty()) open_.erase(writer);
  if (open_.size() > kMostWriters) losses_.unmatched += open_ranges(), open_.clear();
  return part;
}

void RingStamps::apply(uint32_t what, Open& open) {
  const uint32_t name = what / 2;
  auto& names = open.names;
  if (name >= names_) {
    ++losses_.invalid;
  } else if (what % 2 == 0) {
    if (names.size() >= kDeepest) ++losses_.unmatched, names.erase(names.begin());
    names.push_back(name);
  } else if (const auto at = std::find(names.rbegin(), names.rend(), name); at == names.rend()) {
    ++losses_.unmatched;
  } else {
    losses_.unmatched += static_cast<uint64_t>(at - names.rbegin());
    names.erase(at.base() - 1, names.end());
  }
}

// The cycle counter is fine but has a rate of its own; the timer counts ns in steps of 32 ns (Hopper) or 1 µs (Ampere).
// So the counter is laid over the timer: its rate from the longest stretch, its offset from the mean of all moments.
std::vector<uint64_t> RingStamps::times(const std::vector<Moment>& moments) {
  std::vector<uint64_t> ns;
  bool counter_is_known = true;
  for (const Moment& m : moments) {
    counter_is_known = counter_is_known && (ns.empty() || m.ns - ns.back() < kClockWraps);
    ns.push_back(m.ns);
  }
  const uint64_t began = moments.front().ns, stretch = moments.back().ns - began;
  const uint64_t zero = moments.front().cycles, cycles = moments.back().cycles - zero;
  if (!counter_is_known || cycles == 0) return ns;
  if (stretch > 0 && (stretch >= kLongMeasure || stretch >= measured_over_)) {
    ns_per_cycle_ = static_cast<double>(stretch) / static_cast<double>(cycles);
    measured_over_ = std::min(stretch, kLongMeasure);
  }
  double offset = 0;
  for (const Moment& m : moments)
    offset += static_cast<double>(m.ns - began) - ns_per_cycle_ * static_cast<double>(m.cycles - zero);
  offset /= static_cast<double>(moments.size());
  for (size_t i = 0; i < ns.size(); ++i) {
    const double fine = offset + ns_per_cycle_ * static_cast<double>(moments[i].cycles - zero);
    const auto coarse = static_cast<double>(ns[i] - began);
    ns[i] =
        began + static_cast<uint64_t>(std::max(std::clamp(fine, coarse - kTimerStep, coarse + kTimerStep), 0.0) + 0.5);
  }
  return ns;
}

uint64_t RingStamps::open_ranges() const {
  uint64_t sum = 0;
  for (const auto& [writer, open] : open_) sum += open.names.size();
  return sum;
}

}  // namespace ws::prof
