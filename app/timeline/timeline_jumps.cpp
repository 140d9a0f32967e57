// Ways to get somewhere: the next of the same name, a step, the longest gap, a mark, what was found.
#include "app/panels/units.h"
#include "app/timeline/timeline_view.h"

namespace ws::app {

void TimelineView::goTo(int run, const FoundSpan& found) {
  const prof::TimeNs offset = model_->offset(run);
  const TimeRange view = model_->range();
  const TimeRange span{found.span.start - offset, found.span.end() - offset};
  if (span.length() > view.length())
    setRange(padded(span, 0.05));
  else if (span.begin < view.begin || span.end > view.end)
    setRange(centred(view, span.begin + span.length() / 2));
  if (const Lane* lane = laneOf(run, found.track)) {
    const int y = lane->y, room = height() - geometry_.top();
    if (y < geometry_.scroll || y + lane->height > geometry_.scroll + room) setScroll(y - room / 3);
  }
  selection_->choose(SpanChoice{model_->run(run), found.track, found.span});
}

void TimelineView::nextSame(bool forward) {
  const auto* chosen = selection_->get<SpanChoice>();
  const int run = chosen ? model_->indexOf(chosen->run) : -1;
  if (run < 0)
    return emit said(tr("Choose a span first: then . and , go to the next and the previous of the same name."));
  const prof::Track& track = chosen->run->trace.tracks()[chosen->track];
  const prof::Span& span = chosen->span;
  const prof::Span* next =
      forward ? prof::next_named(track, span.name, span.start) : prof::previous_named(track, span.name, span.start);
  if (!next) return emit said(forward ? tr("This was the last of that name.") : tr("This was the first of that name."));
  goTo(run, {chosen->track, *next});
}

void TimelineView::addMark() {
  const auto cursor = model_->cursor()->cursor();
  const auto chosen = chosenTime();
  const TimeRange view = model_->range();
  if (model_->runCount() == 0) return emit said(tr("No run is ticked: a mark belongs to a run."));
  // That of the chosen span, else the first.
  const auto* span = selection_->get<SpanChoice>();
  const int run = span ? std::max(0, model_->indexOf(span->run)) : 0;
  model_->addMark({chosen ? chosen->begin : cursor.value_or(view.begin + view.length() / 2), {}, run});
}

void TimelineView::nextMark(bool forward) {
  const TimeRange view = model_->range();
  const prof::TimeNs middle = view.begin + view.length() / 2;
  const Mark* best = nullptr;
  for (const Mark& mark : model_->marks()) {
    if (forward ? mark.time <= middle + 1 : mark.time >= middle - 1) continue;
    if (!best || (forward ? mark.time < best->time : mark.time > best->time)) best = &mark;
  }
  if (best) setRange(centred(view, best->time));
}

// As the GPU ran it where the host ran ahead: then there is a range to show and no span of the trace to choose.
bool TimelineView::showStep(int run, const prof::Span& step, double margin) {
  const prof::TimeNs offset = model_->offset(run);
  const TimeRange own{step.start - offset, step.end() - offset};
  setRange(padded(own, margin));
  if (model_->run(run)->hasGpuSteps()) {
    selectRange(own);
    return true;
  }
  const auto& tracks = model_->run(run)->trace.tracks();
  for (size_t track = 0; track < tracks.size(); ++track)
    if (tracks[track].kind == prof::TrackKind::Steps) {
      goTo(run, {track, step});
      return true;
    }
  return false;
}

bool TimelineView::jumpToStep(int64_t step) {
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i) {
    const prof::Span* span = span_of_step(model_->run(i)->marks(), step);
    if (!span) continue;
    if (i == 0) model_->alignAtStep(step);
    if (!showStep(i, *span, 0.05)) continue;
    stale();
    return true;
  }
  emit said(tr("Step %1 is not in the history of a ticked run.").arg(count_text(step)));
  return false;
}

void TimelineView::jumpToSlowestStep() {
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i)
    if (const auto slowest = slowest_step(model_->run(i)->marks())) {
      showStep(i, slowest->span, 0.2);
      return;
    }
  emit said(tr("No ticked run has steps in its trace."));
}

void TimelineView::jumpToLongestGap() {
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i)
    if (const auto gap = longest_gap(model_->run(i)->trace)) {
      const prof::TimeNs offset = model_->offset(i);
      const TimeRange view{gap->begin - offset, gap->end - offset};
      setRange(padded(view, 0.3));
      return selectRange(view);
    }
  emit said(tr("No ticked run has GPU streams in its trace."));
}

bool TimelineView::find(const QString& text, bool forward) {
  if (text.trimmed().isEmpty()) return false;
  QString digits = text.trimmed();
  if (digits.startsWith("step ", Qt::CaseInsensitive)) digits = digits.mid(5).remove(' ');
  bool is_step = false;
  if (const int64_t step = digits.toLongLong(&is_step); is_step) return jumpToStep(step);
  const auto holds = [&](const std::string& name) {
    return QString::fromStdString(name).contains(text, Qt::CaseInsensitive);
  };
  const auto* chosen = selection_->get<SpanChoice>();
  std::optional<FoundSpan> best;
  int best_run = -1;
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i) {
    const prof::Trace& trace = model_->run(i)->trace;
    std::vector<prof::NameId> names;
    std::vector<prof::OpTag> ops;
    for (size_t n = 0; n < trace.name_count(); ++n)
      if (holds(trace.name(static_cast<prof::NameId>(n)))) names.push_back(static_cast<prof::NameId>(n));
    for (size_t op = 1; op < trace.ops.size(); ++op)
      if (holds(trace.ops[op].name) || holds(trace.ops[op].layer) || holds(trace.ops[op].detail))
        ops.push_back(static_cast<prof::OpTag>(op));
    if (names.empty() && ops.empty()) continue;
    const TimeRange view = model_->runRange(i, model_->range());
    const prof::TimeNs from = chosen && chosen->run == model_->run(i) ? chosen->span.start
                              : forward                               ? view.begin - 1
                                                                      : view.end;
    auto found = find_span(trace, names, ops, from, forward);
    if (!found) found = find_span(trace, names, ops, forward ? INT64_MIN / 2 : INT64_MAX / 2, forward);  // goes round
    const auto at = [&](const FoundSpan& f, int run) { return f.span.start - model_->offset(run); };
    if (found && (!best || (forward ? at(*found, i) < at(*best, best_run) : at(*found, i) > at(*best, best_run))))
      best = found, best_run = i;
  }
  if (best)
    goTo(best_run, *best);
  else
    emit said(tr("Nothing is called “%1”.").arg(text));
  return best.has_value();
}

// A panel chose something: bring it into view.
void TimelineView::showSelected() {
  if (const auto* span = selection_->get<SpanChoice>())
    if (const int run = model_->indexOf(span->run); run >= 0) return goTo(run, {span->track, span->span});
  const auto* op = selection_->get<OpChoice>();
  const auto* name = selection_->get<NameChoice>();
  const int run = op ? model_->indexOf(op->run) : name ? model_->indexOf(name->run) : -1;
  if (run < 0) return;
  const TimeRange view = model_->runRange(run, model_->range());
  const std::vector<prof::NameId> names = name ? std::vector{name->name} : std::vector<prof::NameId>{};
  const std::vector<prof::OpTag> ops = op ? std::vector{op->op} : std::vector<prof::OpTag>{};
  auto found = find_span(model_->run(run)->trace, names, ops, view.begin - 1, true);
  if (!found) found = find_span(model_->run(run)->trace, names, ops, view.end, false);
  if (found) goTo(run, *found);
}

}  // namespace ws::app
