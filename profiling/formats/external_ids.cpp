#include "profiling/formats/external_ids.h"

#include <algorithm>
#include <vector>

#include "profiling/trace/span_walk.h"

namespace ws::prof {

struct ExternalIds::OpSpan {
  TimeNs start, end;
  uint64_t id;
};

namespace {

bool is_op(const Track& track, const Span& span) {
  const SpanKind kind = span.span_kind();
  return !on_gpu(track) && (kind == SpanKind::Op || kind == SpanKind::Other);
}

bool is_range(const Track& track, const Span& span) {
  const SpanKind kind = span.span_kind();
  return !on_gpu(track) && (kind == SpanKind::Phase || kind == SpanKind::Step);
}

// Identifies the thread of a row: ops and calls of one thread are on different rows.
std::string thread_of(const Track& track) {
  constexpr std::string_view kHead = "CUDA API, ", kTail = " calls";
  std::string_view name = track.name;
  if (name.starts_with(kHead)) name.remove_prefix(kHead.size());
  if (name.ends_with(kTail)) name.remove_suffix(kTail.size());
  return track.group + '\0' + std::string(name);
}

uint64_t marked(const Span& span) { return uint64_t{span.op} << 32 | span.step; }

}  // namespace

ExternalIds::ExternalIds(const Trace& trace) {
  std::unordered_map<std::string, std::vector<OpSpan>> ops;
  uint64_t id = 0;
  for (const Track& track : trace.tracks()) {
    std::vector<OpSpan>* row = nullptr;
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (is_op(track, span) || is_range(track, span)) ++id;
      if (!is_op(track, span)) return;
      if (!row) row = &ops[thread_of(track)];
      row->push_back({span.start, span.end(), id});
      if (span.op == kNoOp || span.step == 0) return;
      const auto [at, fresh] = by_marked_.try_emplace(marked(span), id);
      if (!fresh) at->second = 0;
    });
  }
  find_calls(trace, ops);
}

void ExternalIds::find_calls(const Trace& trace, std::unordered_map<std::string, std::vector<OpSpan>>& ops) {
  for (auto& [thread, list] : ops)
    std::ranges::sort(
        list, [](const OpSpan& a, const OpSpan& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::Api) continue;
    const std::vector<OpSpan>& list = ops[thread_of(track)];
    auto op = list.begin();
    std::vector<OpSpan> open;  // nested ops
    each_span(track, -kAlways, kAlways, [&](const Span& call) {
      for (; op != list.end() && op->start <= call.start; ++op) open.push_back(*op);
      while (!open.empty() && open.back().end < call.end()) open.pop_back();
      if (call.correlation != 0) by_call_.try_emplace(call.correlation, open.empty() ? 0 : open.back().id);
    });
  }
}

uint64_t ExternalIds::next(const Track& track, const Span& span) {
  if (is_op(track, span) || is_range(track, span)) return ++named_;
  if (const auto call = by_call_.find(span.correlation); span.correlation != 0 && call != by_call_.end())
    return call->second;
  // Calls were not recorded: finds the op by op tag and step.
  if (!on_gpu(track) || (span.flags & kInGraph) || span.op == kNoOp || span.step == 0) return 0;
  const auto op = by_marked_.find(marked(span));
  return op == by_marked_.end() ? 0 : op->second;
}

}  // namespace ws::prof
