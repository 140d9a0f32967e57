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

ReportJob::ReportJob(Run* run) : run_(run) {
  soon_.setSingleShot(true);
  connect(&soon_, &QTimer::timeout, this, &ReportJob::refresh);
}

void ReportJob::refreshSoon() {
  if (!soon_.isActive()) soon_.start(run_ && run_->live() ? kReadLiveMs : kReadSoonMs);
}

void ReportJob::refresh() {
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

void ReportReader::setRun(Run* run) {
  if (this->run() == run && (job_ || !run)) return;
  if (job_) disconnect(job_.get(), nullptr, this, nullptr);
  job_ = run ? jobOf(run) : nullptr;
  if (job_) {
    connect(job_.get(), &ReportJob::changed, this, &ReportReader::changed);
    connect(job_.get(), &ReportJob::failed, this, &ReportReader::failed);
  }
  emit changed();
}

void ReportReader::refresh() {
  if (job_) job_->refresh();
}

void ReportReader::refreshSoon() {
  if (job_) job_->refreshSoon();
}

size_t spans_inside_kernels(const prof::Trace& trace) {
  return spans_on(trace, [](const prof::Track& track) { return track.kind == prof::TrackKind::Inner; });
}

std::optional<SpanChoice> MultiprocessorReader::spanOf(const prof::InnerBar& bar) const {
  if (!run()) return std::nullopt;
  auto found = prof::span_of(run()->trace, *report(), bar);
  while (!found && run()->fetch(bar.begin, bar.end)) found = prof::span_of(run()->trace, *report(), bar);
  if (!found) return std::nullopt;
  return SpanChoice{run(), found->track, found->span};
}

size_t spans_of_ranks(const prof::Trace& trace) {
  if (!prof::several_ranks(trace)) return 0;
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
