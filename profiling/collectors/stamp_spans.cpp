#include "profiling/collectors/stamp_spans.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "profiling/trace/kernel_names.h"

namespace ws::prof {
namespace {

constexpr size_t kMostWaiting = 1024;
constexpr size_t kMostParts = 200'000;
constexpr int kRounds = 32;         // two seconds, after which stamps are drawn without a kernel record
constexpr TimeNs kSlack = 20'000;   // error of the first measurement of the clocks, and their drift between kernels
constexpr TimeNs kOutside = 1'000;  // a kernel record is shorter than the kernel by less

TimeNs distance(const ResidentKernel& kernel, TimeNs first, TimeNs last) {
  return std::max<TimeNs>(kernel.start - first, 0) + std::max<TimeNs>(last - kernel.end, 0);
}

// Multiprocessors have three digits, because lanes are sorted by name.
std::string lane_name(const RingPart& part, bool by_warp) {
  const auto padded = [](uint32_t number, size_t digits) {
    const std::string text = std::to_string(number);
    return std::string(digits - std::min(digits, text.size()), '0') + text;
  };
  return "SM " + padded(part.multiprocessor, 3) + (by_warp ? " warp " + padded(part.warp, 2) : "");
}

// Tags are few, and a program may make a ring for each launch.
OpTag tag_of(const std::vector<std::string>& names) {
  static std::map<std::vector<std::string>, OpTag> known;
  if (const auto at = known.find(names); at != known.end()) return at->second;
  std::vector<OpInfo> infos;
  for (const std::string& name : names) {
    OpInfo info;
    info.name = name, info.meaning = meaning_of_kernel(name);
    infos.push_back(std::move(info));
  }
  return known[names] = register_ops(std::move(infos));
}

}  // namespace

void StampSpans::draw(std::vector<StampedLaunch> fresh, bool last) {
  std::ranges::move(fresh, std::back_inserter(waiting_));
  std::erase_if(waiting_, [&](const StampedLaunch& launch) {
    for (const ResidentKernel& kernel : context_.resident_kernels) {
      if (kernel.op != launch.kernel_op || kernel.step != launch.first_step) continue;
      draw(launch, kernel);
      return true;
    }
    return last;
  });
  if (waiting_.size() > kMostWaiting) waiting_.erase(waiting_.begin(), waiting_.end() - kMostWaiting);
}

void StampSpans::draw(const StampedLaunch& launch, const ResidentKernel& kernel) {
  const StampMap map = map_stamps(launch, kernel.start, kernel.end);
  for (StampedLane& lane : spans_of_stamps(launch.stamps, map)) {
    const StampedLaneName of = lane.lane < launch.lanes.size() ? launch.lanes[lane.lane]
                                                               : StampedLaneName{"block " + std::to_string(lane.lane)};
    put(lane.spans, of.name, kernel.device, 0, of.helper ? kHelper : 0);
  }
}

// `step`: 0 if the spans have their own.
void StampSpans::put(std::vector<Span>& spans, const std::string& name, uint32_t device, uint32_t step, uint8_t flags) {
  auto& row = context_.batch.row(TrackKind::Inner, name, "GPU " + std::to_string(device));
  for (Span& span : spans) {
    span.name = context_.batch.id(context_.name_of(span.op));
    span.meaning = static_cast<uint64_t>(context_.meaning_of(span.op));
    span.flags = flags;
    if (step != 0) span.step = step;
    row.spans.push_back(span);
  }
}

void StampSpans::draw_rings(std::vector<RingCopy> fresh, bool last) {
  for (const RingCopy& copy : fresh) read(copy);
  find_kernels();
  for (auto& [device, shift] : shifts_) align(device);
  std::erase_if(parts_, [&](Waiting& waiting) { return draw(waiting, last || parts_.size() > kMostParts); });
}

void StampSpans::read(const RingCopy& copy) {
  Ring& ring = rings_[copy.ring->number];
  if (!ring.stamps) ring.stamps = std::make_unique<RingStamps>(*copy.ring, tag_of(copy.ring->names));
  shifts_.try_emplace(copy.ring->device, 0);
  for (RingPart& part : ring.stamps->read(copy)) {
    for (DeviceStamp& stamp : part.stamps)
      stamp.globaltimer = static_cast<uint64_t>(
          context_.from_steady(static_cast<int64_t>(stamp.globaltimer) - copy.ring->clock_offset));
    parts_.push_back({std::move(part), copy.ring});
  }
  const RingStamps::Losses& losses = ring.stamps->losses();
  const uint64_t lost = losses.overwritten + losses.invalid;
  context_.batch.losses().dropped_records += lost - std::exchange(ring.reported, lost);
}

// The kernel around a part is the one that the part protrudes from least.
void StampSpans::find_kernels() {
  std::vector<const ResidentKernel*> kernels;
  for (const ResidentKernel& kernel : context_.resident_kernels) kernels.push_back(&kernel);
  std::ranges::sort(kernels, {}, [](const ResidentKernel* kernel) { return kernel->start; });
  for (Waiting& waiting : parts_) {
    constexpr std::ptrdiff_t kMostLooks = 64;
    const TimeNs shift = shifts_[waiting.ring->device];
    const TimeNs first = static_cast<TimeNs>(waiting.part.stamps.front().globaltimer) + shift;
    const TimeNs last = static_cast<TimeNs>(waiting.part.stamps.back().globaltimer) + shift;
    auto at = std::ranges::upper_bound(kernels, first + kSlack, {}, [](const ResidentKernel* k) { return k->start; });
    TimeNs least = kSlack + 1;
    waiting.kernel = nullptr;
    for (std::ptrdiff_t looks = std::min(at - kernels.begin(), kMostLooks); looks > 0; --looks) {
      const ResidentKernel* kernel = *--at;
      if (kernel->device != waiting.ring->device || distance(*kernel, first, last) >= least) continue;
      waiting.kernel = kernel, least = distance(*kernel, first, last);
    }
  }
}

// Moves the stamps of a device as little as possible, so that they lie inside the newest kernels that they belong to.
void StampSpans::align(uint32_t device) {
  std::map<std::pair<TimeNs, TimeNs>, std::pair<TimeNs, TimeNs>> stamped;  // first and last stamp by kernel
  for (const Waiting& waiting : parts_) {
    if (!waiting.kernel || waiting.ring->device != device) continue;
    const auto first = static_cast<TimeNs>(waiting.part.stamps.front().globaltimer);
    const auto last = static_cast<TimeNs>(waiting.part.stamps.back().globaltimer);
    const auto [at, fresh] = stamped.try_emplace({waiting.kernel->start, waiting.kernel->end}, first, last);
    at->second = {std::min(at->second.first, first), std::max(at->second.second, last)};
  }
  TimeNs& shift = shifts_[device];
  for (const auto& [kernel, times] : stamped) {
    const TimeNs low = kernel.first - times.first, high = kernel.second - times.second;
    if (low <= high) shift = std::clamp(shift, low, high);
  }
}

// Returns false if the kernel record may still come.
bool StampSpans::draw(Waiting& waiting, bool last) {
  if (!waiting.kernel && !last && ++waiting.rounds < kRounds) return false;
  auto& stamps = waiting.part.stamps;
  const StampMap map{1, 0, shifts_[waiting.ring->device]};
  const TimeNs time = map(stamps.front().globaltimer) + context_.origin;
  if (context_.gaps.clock.at(time) || context_.gaps.uncaptured.at(time)) return true;  // between two windows
  const bool inside = waiting.kernel && distance(*waiting.kernel, map(stamps.front().globaltimer),
                                                 map(stamps.back().globaltimer)) <= kOutside;
  if (!inside && !context_.resident_kernels.empty()) outside_ += stamps.size();
  const std::string name = lane_name(waiting.part, waiting.ring->by_warp);
  const uint8_t flags = kHelper | (inside ? 0 : kEstimated);  // ranges of a program need not fill their kernel
  for (StampedLane& lane : spans_of_stamps(stamps, map))
    put(lane.spans, name, waiting.ring->device, waiting.kernel ? waiting.kernel->step : 0, flags);
  return true;
}

std::string StampSpans::ring_problems() const {
  RingStamps::Losses sum;
  uint32_t group = 0;  // most stamps that are overwritten together
  for (const auto& [number, ring] : rings_) {
    const RingStamps::Losses& losses = ring.stamps->losses();
    group = std::max(group, ring.stamps->segment_stamps());
    sum.overwritten += losses.overwritten, sum.invalid += losses.invalid;
    sum.unmatched += losses.unmatched + ring.stamps->open_ranges();
  }
  std::string text;
  const auto add = [&text](uint64_t count, const std::string& what) {
    if (count > 0) text += (text.empty() ? "" : " ") + what;
  };
  add(sum.overwritten,
      std::to_string(sum.overwritten) + " groups of up to " + std::to_string(group) +
          " stamps of kernels were overwritten before they were read. Give KernelRanges a larger capacity.");
  add(sum.unmatched, std::to_string(sum.unmatched) + " ranges in kernels have only a begin or only an end.");
  add(sum.invalid, std::to_string(sum.invalid) + " stamps of kernels have a name or a place that does not exist.");
  add(outside_,
      std::to_string(outside_) + " stamps of kernels lie outside of every kernel record. Their times are estimated.");
  return text;
}

}  // namespace ws::prof
