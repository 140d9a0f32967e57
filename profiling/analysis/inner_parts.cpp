#include "profiling/analysis/inner_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

constexpr size_t kNewest = 512;  // spans of a lane: some tens of steps

// The newest spans of a lane, in order.
std::span<const Span> newest(const Track& track) {
  if (track.blocks.empty()) return {};
  const auto& spans = track.blocks.back().spans;
  return {spans.end() - static_cast<std::ptrdiff_t>(std::min(spans.size(), kNewest)), spans.end()};
}

bool computes(const Track& track) {
  const auto spans = newest(track);
  return track.kind == TrackKind::Inner && !spans.empty() && (spans.front().flags & kHelper) == 0;
}

struct Sums {
  std::map<std::tuple<Meaning, NameId, OpTag>, double> ns;
  double all = 0, steps = 0;  // steps: summed over all lanes
};

void add_lane(std::map<OpTag, Sums>& sums, const Track& track, const std::vector<Span>& kernels) {
  uint32_t step = 0;
  for (const Span& span : newest(track)) {
    const Span* kernel = kernel_around(kernels, span);
    if (!kernel) continue;
    Sums& sum = sums[kernel->op];
    const auto ns = static_cast<double>(span.duration);
    sum.ns[{span.span_meaning(), span.name, span.op}] += ns, sum.all += ns;
    if (span.step != step) step = span.step, ++sum.steps;
  }
}

}  // namespace

std::vector<Span> kernels_since(const Trace& trace, const std::string& group, TimeNs begin) {
  std::vector<Span> kernels;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::Stream || track.group != group) continue;
    each_span(track, begin, trace.last_time() + 1, [&](const Span& span) {
      if (is_kernel(span)) kernels.push_back(span);
    });
  }
  order_by_start(kernels);
  return kernels;
}

const Span* kernel_around(const std::vector<Span>& kernels, const Span& inner) {
  auto at = std::ranges::upper_bound(kernels, inner.start, {}, [](const Span& span) { return TimeNs{span.start}; });
  if (at == kernels.begin()) return nullptr;
  --at;
  return at->end() >= inner.end() ? &*at : nullptr;
}

InnerParts::InnerParts(const Trace& trace) {
  std::map<std::string, TimeNs> begins;  // begin of the newest spans in the lanes of each GPU
  for (const Track& track : trace.tracks()) {
    if (!computes(track)) continue;
    const TimeNs begin = newest(track).front().start;
    const auto [at, fresh] = begins.try_emplace(track.group, begin);
    at->second = std::min(at->second, begin);
  }
  std::map<OpTag, Sums> sums;
  for (const auto& [group, begin] : begins) {
    const std::vector<Span> kernels = kernels_since(trace, group, begin);
    for (const Track& track : trace.tracks())
      if (track.group == group && computes(track)) add_lane(sums, track, kernels);
  }
  for (const auto& [op, sum] : sums) {
    if (sum.all <= 0) continue;
    Kernel kernel{op, {}};
    for (const auto& [part, ns] : sum.ns)
      kernel.parts.push_back({std::get<0>(part), std::get<1>(part), std::get<2>(part), ns / sum.all, ns / sum.steps});
    kernels_.push_back(std::move(kernel));
  }
}

std::span<const InnerPart> InnerParts::of(OpTag kernel) const {
  const auto at = std::ranges::find(kernels_, kernel, &Kernel::op);
  return at == kernels_.end() ? std::span<const InnerPart>() : at->parts;
}

std::vector<InnerPart> InnerParts::all() const {
  std::vector<InnerPart> parts;
  for (const Kernel& kernel : kernels_) parts.insert(parts.end(), kernel.parts.begin(), kernel.parts.end());
  return parts;
}

}  // namespace ws::prof
