#include "profiling/collectors/op_join.h"

#include <algorithm>
#include <map>

namespace ws::prof {

void OpJoin::node_cloned(uint64_t original, uint64_t clone) {
  if (const auto it = nodes_.find(original); it != nodes_.end()) nodes_[clone] = NodeOp(it->second);
  if (const auto it = node_works_.find(original); it != node_works_.end()) node_works_[clone] = NcclWork(it->second);
}

NcclWork OpJoin::work(uint32_t correlation, uint64_t node) const {
  if (node != 0) {
    const auto it = node_works_.find(node);
    return it == node_works_.end() ? NcclWork{} : it->second;
  }
  const NcclWork* work = works_.find(correlation);
  return work ? *work : NcclWork{};
}

OpAt OpJoin::in_graph(uint32_t correlation, const NodeOp& node) const {
  const Launch* launch = graphs_.find(correlation);
  if (!launch || launch->first == 0) return {node.op, 0};
  return {node.op, launch->first + std::min(node.offset, launch->count ? launch->count - 1 : 0)};
}

OpAt OpJoin::find(uint32_t correlation, uint64_t node) const {
  if (node != 0) {
    if (const auto it = nodes_.find(node); it != nodes_.end()) return in_graph(correlation, it->second);
  }
  if (const OpAt* at = calls_.find(correlation)) return *at;
  if (const Launch* launch = graphs_.find(correlation)) return {kNoOp, launch->first};
  return {};
}

StampMap map_stamps(const StampedLaunch& launch, TimeNs kernel_start, TimeNs kernel_end) {
  if (launch.stamps.empty()) return {1, 0, kernel_start};
  uint64_t begin = launch.begin, end = launch.end;
  if (end <= begin) {
    const auto [low, high] = std::ranges::minmax_element(launch.stamps, {}, &DeviceStamp::globaltimer);
    begin = low->globaltimer, end = high->globaltimer;
  }
  const auto stamped = static_cast<TimeNs>(end - begin);
  const TimeNs ran = std::max<TimeNs>(kernel_end - kernel_start, 0);
  if (stamped > ran) return {static_cast<double>(ran) / static_cast<double>(stamped), begin, kernel_start};
  return {1, begin, kernel_start + (ran - stamped) / 2};
}

namespace {

std::vector<Span> spans_of_lane(std::vector<DeviceStamp>& stamps, const StampMap& map) {
  std::ranges::stable_sort(stamps, {}, &DeviceStamp::globaltimer);
  std::vector<Span> spans;
  for (size_t i = 0; i + 1 < stamps.size(); ++i) {
    if (stamps[i].op == kNoOp) continue;
    Span span;
    span.start = map(stamps[i].globaltimer);
    span.duration = static_cast<uint64_t>(std::max<TimeNs>(map(stamps[i + 1].globaltimer) - span.start, 0));
    span.kind = static_cast<uint64_t>(SpanKind::Inner);
    span.op = stamps[i].op;
    span.step = stamps[i].step;
    spans.push_back(span);
  }
  return spans;
}

}  // namespace

std::vector<StampedLane> spans_of_stamps(std::span<const DeviceStamp> stamps, const StampMap& map) {
  std::map<uint16_t, std::vector<DeviceStamp>> by_lane;
  for (const DeviceStamp& stamp : stamps) by_lane[stamp.lane].push_back(stamp);
  std::vector<StampedLane> result;
  for (auto& [lane, list] : by_lane) result.push_back({lane, spans_of_lane(list, map)});
  return result;
}

}  // namespace ws::prof
