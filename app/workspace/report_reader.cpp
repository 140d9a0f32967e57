#include "app/workspace/report_reader.h"

#include <algorithm>
#include <utility>

#include "profiling/analysis/trace_queries.h"

namespace ws::app {
namespace {

constexpr int kReadSoonMs = 150, kReadLiveMs = 1500;

template <class Counts>
size_t spans_on(const prof::Trace& trace, Counts counts) {
  size_t spans = 0;
  for (const prof::Track& track : trace.tracks())
    if (counts(track)) spans += track.spans;
  return spans;
}

}  // namespace

ReportReader::ReportReader(QObject* parent) : QObject(parent) {
  soon_.setSingleShot(true);
  connect(&soon_, &QTimer::timeout, this, &ReportReader::refresh);
}

void ReportReader::setRun(Run* run) {
  if (run_ == run) return;
  run_ = run, spans_ = 0, again_ = false;
  job_.drop();
  clear();
  emit changed();
}

void ReportReader::refreshSoon() {
  if (!soon_.isActive()) soon_.start(run_ && run_->live() ? kReadLiveMs : kReadSoonMs);
}

void ReportReader::refresh() {
  if (!run_) return;
  if (job_.running()) return static_cast<void>(again_ = true);
  const size_t spans = spansOf(run_->trace);
  if (spans == 0 || (spans == spans_ && live_ == run_->live())) return;
  spans_ = spans, live_ = run_->live();
  Work work = workOn(TraceSource(*run_));
  job_.start([read = std::move(work.read)](const Job::Side& side) { read(side.cancelled()); },
             [this, take = std::move(work.take)](const QString& problem) {
               if (!problem.isEmpty()) emit failed(problem);
               take();
               emit changed();
               if (std::exchange(again_, false)) refreshSoon();
             });
}

size_t MultiprocessorReader::spansOf(const prof::Trace& trace) const {
  return spans_on(trace, [](const prof::Track& track) { return track.kind == prof::TrackKind::Inner; });
}

std::optional<SpanChoice> MultiprocessorReader::spanOf(const prof::InnerBar& bar) const {
  if (!run()) return std::nullopt;
  auto found = prof::span_of(run()->trace, *report(), bar);
  while (!found && run()->fetch(bar.begin, bar.end)) found = prof::span_of(run()->trace, *report(), bar);
  if (!found) return std::nullopt;
  return SpanChoice{run(), found->track, found->span};
}

bool several_ranks(const prof::Trace& trace) {
  int first = -1;
  return std::ranges::any_of(trace.tracks(), [&first](const prof::Track& track) {
    if (track.rank < 0 || track.spans == 0) return false;
    if (first < 0) first = track.rank;
    return track.rank != first;
  });
}

size_t RankReader::spansOf(const prof::Trace& trace) const {
  if (!several_ranks(trace)) return 0;
  return spans_on(trace, [](const prof::Track& track) { return track.rank >= 0; });
}

TimeRange RankReader::timeOf(size_t step) const {
  const prof::TimeNs begin = report()->step_begins[step];
  return {begin, begin + static_cast<prof::TimeNs>(report()->step_us * 1000)};
}

std::optional<SpanChoice> RankReader::spanOf(size_t step) const {
  if (!run()) return std::nullopt;
  const TimeRange near = timeOf(step);
  const auto& tracks = run()->trace.tracks();
  for (size_t i = 0; i < tracks.size(); ++i) {
    if (tracks[i].kind != prof::TrackKind::Steps) continue;
    std::optional<SpanChoice> found;
    prof::for_each_span(tracks[i], near.begin, near.end, [&](const prof::Span& span) {
      if (int64_t{span.step} == report()->steps[step] + 1) found = SpanChoice{run(), i, span};
      return !found;
    });
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace ws::app
