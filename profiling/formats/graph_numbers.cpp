#include "profiling/formats/graph_numbers.h"

#include <algorithm>

#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

int64_t graph_number(const Trace& trace, const Span& graph_run) {
  return std::clamp<int64_t>(number_in(trace.name(graph_run.name), 0), 0, 0x7fffffff);
}

GraphNumbers::GraphNumbers(const Trace& trace) {
  int64_t last = 0;  // graphs recorded as a whole keep their numbers
  std::vector<uint32_t> order;
  for (size_t t = 0; t < trace.tracks().size(); ++t) {
    const Track& track = trace.tracks()[t];
    if (!on_gpu(track)) continue;
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (span.span_kind() == SpanKind::GraphRun) last = std::max(last, graph_number(trace, span));
      if (!(span.flags & kInGraph)) return;
      const auto [launch, fresh] = launches_.try_emplace(span.correlation);
      if (fresh) order.push_back(span.correlation);
      const uint64_t node =
          uint64_t{t} << 48 ^ uint64_t { static_cast<uint16_t>(span.detail) } << 32 ^ static_cast<uint32_t>(span.name);
      launch->second.nodes = (launch->second.nodes ^ (node + 1)) * 0x9e3779b97f4a7c15u;
      launch->second.nodes ^= launch->second.nodes >> 29;
    });
  }
  std::unordered_map<uint64_t, int64_t> graphs;
  for (const uint32_t correlation : order) {
    Launch& launch = launches_[correlation];
    const auto [graph, fresh] = graphs.try_emplace(launch.nodes, last + 1);
    last += fresh;
    launch.graph = graph->second;
  }
}

GraphNumbers::Node GraphNumbers::next(const Span& span) {
  const auto at = launches_.find(span.correlation);
  if (at == launches_.end()) return {};
  Launch& launch = at->second;
  return {launch.graph, launch.graph << 32 | launch.asked++};
}

}  // namespace ws::prof
