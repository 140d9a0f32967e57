#include "profiling/analysis/roofline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "profiling/base/sort_rows.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

struct Work {
  int64_t time = 0;
  uint64_t kernels = 0, samples = 0;
  double dram = 0;  // share of the peak, summed over the samples
  std::unordered_set<uint32_t> steps;
};

// Memory reads and writes as a share of the peak bandwidth, at each sample time of the counters.
std::vector<CounterPoint> dram_shares(const Trace& trace) {
  std::map<TimeNs, double> sums;
  for (const CounterTrack& counter : trace.counters())
    if (counter.kind == CounterKind::Dram)
      for (const CounterPoint& point : counter.points) sums[point.time] += point.value / 100;
  std::vector<CounterPoint> shares;
  for (const auto& [time, share] : sums) shares.push_back({time, share});
  return shares;
}

void add_samples(Work& work, const std::vector<CounterPoint>& shares, const Span& span) {
  auto at = std::ranges::lower_bound(shares, span.start, {}, &CounterPoint::time);
  for (; at != shares.end() && at->time < span.end(); ++at) work.dram += at->value, ++work.samples;
}

void add(RooflinePoint& point, OpTag tag, const OpInfo& op, const Work& work) {
  const uint64_t executions = work.steps.empty() ? work.kernels : work.steps.size();  // an op runs once per step
  if (point.ops.empty() || executions > point.executions) point.op = tag;
  point.ops.push_back(tag);
  point.executions += executions;
  point.time_ns += work.time;
  constexpr uint64_t kLeastSamples = 8;
  if (work.samples >= kLeastSamples) point.dram_share = work.dram / static_cast<double>(work.samples);
  point.flops += static_cast<double>(executions) * static_cast<double>(op.flops);
  point.bytes += static_cast<double>(executions) * static_cast<double>(op.bytes);
}

void rate(RooflinePoint& point, const Ceilings& ceilings) {
  const double seconds = static_cast<double>(point.time_ns) * 1e-9;
  point.flops_per_s = point.flops / seconds;
  point.bytes_per_s = point.bytes / seconds;
  point.intensity = point.bytes > 0 ? point.flops / point.bytes : 0;
  const double of_flops = ceilings.flops_per_s > 0 ? point.flops_per_s / ceilings.flops_per_s : 0;
  const double of_bytes = ceilings.bytes_per_s > 0 ? point.bytes_per_s / ceilings.bytes_per_s : 0;
  point.memory_bound = of_bytes >= of_flops;
  point.share = std::max(of_bytes, of_flops);
}

RooflinePoint named_after(const OpInfo& op) {
  RooflinePoint point;
  point.name = op.name, point.layer = op.layer, point.phase = op.phase, point.meaning = op.meaning;
  return point;
}

}  // namespace

RooflinePoint roofline_point(const OpInfo& op, OpTag tag, double ns, const Ceilings& ceilings) {
  RooflinePoint point = named_after(op);
  add(point, tag, op, {static_cast<int64_t>(ns), 1, 0, 0, {}});
  rate(point, ceilings);
  return point;
}

std::vector<RooflinePoint> roofline(const Trace& trace, TimeNs begin, TimeNs end, const Ceilings& ceilings) {
  const bool gpu = used_gpu(trace);
  std::vector<Work> works(trace.ops.size());
  const std::vector<CounterPoint> shares = dram_shares(trace);
  for (const Track& track : trace.tracks()) {
    // On a trace with a GPU, the host span of an op only launches.
    if (gpu ? !on_gpu(track) : track.kind != TrackKind::CpuThread) continue;
    each_span(track, begin, end, [&](const Span& span) {
      const bool work = is_kernel(span) || (track.kind == TrackKind::CpuThread && span.span_kind() == SpanKind::Op);
      if (!work || span.op == kNoOp || span.op >= works.size()) return;
      works[span.op].time += static_cast<int64_t>(span.duration);
      ++works[span.op].kernels;
      if (gpu) add_samples(works[span.op], shares, span);
      if (span.step != 0) works[span.op].steps.insert(span.step);
    });
  }
  std::map<std::tuple<std::string, std::string, std::string>, RooflinePoint> alike;
  for (size_t op = 1; op < works.size(); ++op) {
    const OpInfo& info = trace.ops[op];
    if (works[op].time <= 0 || (info.flops <= 0 && info.bytes <= 0)) continue;
    RooflinePoint& point = alike.try_emplace({info.name, info.layer, info.phase}, named_after(info)).first->second;
    add(point, static_cast<OpTag>(op), info, works[op]);
  }
  std::vector<RooflinePoint> points;
  for (auto& [key, point] : alike) {
    rate(point, ceilings);
    points.push_back(std::move(point));
  }
  sort_rows(points, [](const RooflinePoint& a, const RooflinePoint& b) { return a.time_ns > b.time_ns; });
  return points;
}

}  // namespace ws::prof
