#include "app/workspace/multiprocessor_reader.h"

#include <utility>

#include "app/workspace/trace_source.h"

namespace ws::app {
namespace {

constexpr int kReadSoonMs = 150, kReadLiveMs = 1500;

size_t spans_inside(const prof::Trace& trace) {
  size_t spans = 0;
  for (const prof::Track& track : trace.tracks())
    if (track.kind == prof::TrackKind::Inner) spans += track.spans;
  return spans;
}

}  // namespace

MultiprocessorReader::MultiprocessorReader(QObject* parent)
    : QObject(parent), report_(std::make_shared<prof::MultiprocessorReport>()) {
  soon_.setSingleShot(true);
  connect(&soon_, &QTimer::timeout, this, &MultiprocessorReader::refresh);
}

void MultiprocessorReader::setRun(Run* run) {
  if (run_ == run) return;
  run_ = run, spans_ = 0, again_ = false;
  job_.drop();
  report_ = std::make_shared<prof::MultiprocessorReport>();
  emit changed();
}

void MultiprocessorReader::refreshSoon() {
  if (!soon_.isActive()) soon_.start(run_ && run_->live() ? kReadLiveMs : kReadSoonMs);
}

void MultiprocessorReader::refresh() {
  if (!run_) return;
  if (job_.running()) return static_cast<void>(again_ = true);
  const size_t spans = spans_inside(run_->trace);
  if (spans == 0 || (spans == spans_ && live_ == run_->live())) return;
  spans_ = spans, live_ = run_->live();
  const auto read = std::make_shared<prof::MultiprocessorReport>();
  job_.start([source = TraceSource(*run_), read](const Job::Side& side) { *read = source.multiprocessors(side.cancelled()); },
             [this, read](const QString& problem) {
               if (!problem.isEmpty()) emit failed(problem);
               report_ = read;
               emit changed();
               if (std::exchange(again_, false)) refreshSoon();
             });
}

std::optional<SpanChoice> MultiprocessorReader::spanOf(const prof::InnerBar& bar) const {
  if (!run_) return std::nullopt;
  auto found = prof::span_of(run_->trace, *report_, bar);
  while (!found && run_->fetch(bar.begin, bar.end)) found = prof::span_of(run_->trace, *report_, bar);
  if (!found) return std::nullopt;
  return SpanChoice{run_, found->track, found->span};
}

}  // namespace ws::app
