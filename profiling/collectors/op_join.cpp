#include "profiling/collectors/op_join.h"

#include <algorithm>
#include <map>

namespace ws::prof {

void OpJoin::node_cloned(uint64_t original, uint64_t clone) {
  if (const auto it = nodes_.find(original); it != nodes_.end()) nodes_[clone] = NodeOp(it->second);
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

StampMap map_stamps(std::span<const DeviceStamp> stamps, TimeNs kernel_start, TimeNs kernel_end) {
  if (stamps.empty()) return {1, 0, kernel_start};
  const auto [low, high] = std::ranges::minmax_element(stamps, {}, &DeviceStamp::globaltimer);
  const auto stamped = static_cast<TimeNs>(high->globaltimer - low->globaltimer);
  const TimeNs ran = std::max<TimeNs>(kernel_end - kernel_start, 0);
  if (stamped > ran) return {static_cast<double>(ran) / static_cast<double>(stamped), low->globaltimer, kernel_start};
  return {1, low->globaltimer, kernel_start + (ran - stamped) / 2};
}

namespace {

std::vector<Span> spans_of_block(std::vector<DeviceStamp>& stamps, const StampMap& map) {
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

std::vector<BlockSpans> spans_of_stamps(std::span<const DeviceStamp> stamps, const StampMap& map) {
  std::map<uint16_t, std::vector<DeviceStamp>> by_block;
  for (const DeviceStamp& stamp : stamps) by_block[stamp.block].push_back(stamp);
  std::vector<BlockSpans> result;
  for (auto& [block, list] : by_block) result.push_back({block, spans_of_block(list, map)});
  return result;
}

}  // namespace ws::prof
