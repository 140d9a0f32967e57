#include "app/timeline/span_colour.h"

#include <algorithm>

#include "app/widgets/theme.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::Meaning, prof::PartKind, prof::SpanKind;

const prof::PartId* part_of_phase(std::string_view phase) {
  static constexpr std::pair<std::string_view, prof::PartId> kPhases[] = {{"forward", {Meaning::Other, PartKind::HostForward}},
                                                                          {"backward", {Meaning::Other, PartKind::HostBackward}},
                                                                          {"optimizer", {Meaning::Optimizer, PartKind::HostOptimizer}},
                                                                          {"data", {Meaning::Idle, PartKind::HostData}}};
  const auto at = std::ranges::find(kPhases, phase, [](const auto& each) { return each.first; });
  return at == std::end(kPhases) ? nullptr : &at->second;
}

bool is_work(SpanKind kind) {
  return kind == SpanKind::Kernel || kind == SpanKind::Op || kind == SpanKind::Phase || kind == SpanKind::Other;
}

}  // namespace

QColor rank_wait_colour() { return part_colour({Meaning::Communication, PartKind::RankWait}); }

QColor span_colour(const prof::Trace& trace, const prof::Track& track, const prof::Span& span, Meaning meaning) {
  constexpr int kDeepestPhase = 1;  // deeper ranges are modules: their names say more
  const bool range = prof::broad_kind(track.kind) == prof::TrackKind::Phases, gpu = prof::used_gpu(trace);
  if (track.kind == prof::TrackKind::Steps) return {};
  if (!range && (meaning != Meaning::Other || !is_work(span.span_kind()))) return theme().of(meaning);
  if (!range) return hashed_colour(trace.name(span.name));
  const prof::PartId* part = span.op < trace.ops.size() ? part_of_phase(trace.ops[span.op].phase) : nullptr;
  if (part && (!gpu || part->kind == PartKind::HostData) && track.depth <= kDeepestPhase) return part_colour(*part);
  return gpu ? QColor() : hashed_colour(trace.name(span.name), Hashed::Muted);
}

}  // namespace ws::app
