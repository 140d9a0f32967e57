#include "app/timeline/timeline_search.h"

#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr prof::TimeNs kEver = prof::kAlways / 2;

bool is_stream(const prof::Track& track) { return track.kind == prof::TrackKind::Stream; }
bool is_steps_row(const prof::Track& track) { return track.kind == prof::TrackKind::Steps; }
bool is_gpu_row(const prof::Track& track) { return is_stream(track) || track.kind == prof::TrackKind::GraphLaunches; }
bool is_longer(const prof::Span& a, const prof::Span& b) { return a.duration > b.duration; }
// The time range that must be in memory for a correct answer: all times if the search wrapped around.
TimeRange searched(const std::optional<prof::FoundSpan>& found, prof::TimeNs from, bool forward) {
  if (!found || (forward ? found->span.start <= from : found->span.start >= from)) return {-kEver, kEver};
  return forward ? TimeRange{from, found->span.start} : TimeRange{found->span.start, from};
}
// Names and ops that contain the text.
struct Named {
  Named(const prof::Trace& trace, const QString& text) {
    const auto holds = [&](const std::string& name) {
      return QString::fromStdString(name).contains(text, Qt::CaseInsensitive);
    };
    for (size_t n = 0; n < trace.name_count(); ++n)
      if (holds(trace.name(static_cast<prof::NameId>(n)))) names.push_back(static_cast<prof::NameId>(n));
    for (size_t op = 1; op < trace.ops.size(); ++op)
      if (holds(trace.ops[op].name) || holds(trace.ops[op].layer) || holds(trace.ops[op].detail))
        ops.push_back(static_cast<prof::OpTag>(op));
  }
  bool has(const prof::Span& span) const {
    return std::ranges::binary_search(names, span.name) || std::ranges::binary_search(ops, span.op);
  }
  std::vector<prof::NameId> names;
  std::vector<prof::OpTag> ops;
};
QString no_file_text() { return QObject::tr("older spans were dropped, and there is no run file."); }
// Shows how much was searched.
QString searched_text(const QString& problem) {
  return problem.isEmpty() ? QObject::tr("All of the run was searched.")
                           : QObject::tr("Only what is in memory was searched: %1").arg(problem);
}
bool too_many_to_walk(const prof::Trace& trace) {
  return std::ranges::any_of(trace.tracks(),
                             [](const prof::Track& t) { return is_stream(t) && t.spans > prof::kWalkLimit; });
}

}  // namespace

TimelineSearch::TimelineSearch(TimelineModel* model, Focus* focus, TimelineViewport* viewport)
    : model_(model), focus_(focus), viewport_(viewport) {
  connect(focus_, &Focus::revealed, this, &TimelineSearch::showSelected);
}

void TimelineSearch::goTo(int run, const prof::FoundSpan& found) {
  const prof::TimeNs offset = model_->offset(run);
  const TimeRange view = model_->range();
  const TimeRange span{found.span.start - offset, found.span.end() - offset};
  if (span.length() > view.length())
    viewport_->setRange(padded(span, 0.05));
  else if (span.begin < view.begin || span.end > view.end)
    viewport_->setRange(centred(view, span.begin + span.length() / 2));
  if (const Lane* lane = model_->laneOf(run, found.track)) viewport_->showLane(*lane);
  focus_->choose(SpanChoice{model_->run(run), found.track, found.span});
}

void TimelineSearch::nextSame(bool forward) {
  const auto* chosen = focus_->get<SpanChoice>();
  const int run = chosen ? model_->indexOf(chosen->run) : -1;
  if (run < 0)
    return emit said(tr("Choose a span first. Then [.] and [,] go to the next and previous span of its name."));
  const prof::Track& track = chosen->run->trace.tracks()[chosen->track];
  const prof::Span& span = chosen->span;
  const prof::Span* next =
      forward ? prof::next_named(track, span.name, span.start) : prof::previous_named(track, span.name, span.start);
  const TimeRange between =
      forward ? TimeRange{span.start, next ? next->start : kEver} : TimeRange{next ? next->start : -kEver, span.start};
  const QString none = forward ? tr("No later span has this name.") : tr("No earlier span has this name.");
  std::optional<prof::FoundSpan> known;
  if (next) known = prof::FoundSpan{chosen->track, *next};
  if (!prof::in_memory(track, between.begin, between.end))
    return askNextSame(chosen->run, track, span, known, forward, none);
  if (!known) return emit said(none);
  goTo(run, *known);
}

void TimelineSearch::askNextSame(Run* run, const prof::Track& track, const prof::Span& span,
                                 std::optional<prof::FoundSpan> known, bool forward, const QString& none) {
  const std::string name = run->trace.name(span.name);
  const prof::TimeNs until = known ? known->span.start : forward ? kEver : -kEver;
  prof::Track like;
  like.kind = track.kind, like.name = track.name, like.group = track.group, like.depth = track.depth;
  const auto ask = [like, name, from = span.start, until, forward](prof::StoredSpans& file) {
    const auto same = [&](const prof::Span& s) { return file.trace().name(s.name) == name; };
    const auto row = track_of(file.trace(), like);
    if (!row) return std::optional<StoredHit>();
    return hit_of(file, forward ? file.next(*row, from, until, same) : file.previous(*row, from, until, same));
  };
  askFile(
      run, tr("Looking for the next %1 in the run file…").arg(QString::fromStdString(name)), known, none, ask,
      [this](int index, const prof::FoundSpan& found) { goTo(index, found); },
      [forward](const prof::Span& a, const prof::Span& b) { return forward ? a.start < b.start : a.start > b.start; });
}

void TimelineSearch::askFile(Run* run, const QString& what, std::optional<prof::FoundSpan> known, const QString& none,
                             StoredQuestion ask, const std::function<void(int run, const prof::FoundSpan& found)>& show,
                             const std::function<bool(const prof::Span& a, const prof::Span& b)>& better) {
  const auto answered = [=, this, run = QPointer<Run>(run)](const std::optional<StoredHit>& hit, size_t unread,
                                                            const QString& problem) {
    const int index = run ? model_->indexOf(run) : -1;
    if (index < 0) return;
    std::optional<prof::FoundSpan> best = known;
    const auto found = hit ? found_in(run->trace, *hit) : std::nullopt;
    if (found && (!best || better(found->span, best->span))) best = found;
    if (best) show(index, *best);
    if (problem.isEmpty() && unread > 0)
      emit said(
          tr("Not known: %1 spans of the run file cannot be read.").arg(count_text(static_cast<int64_t>(unread))));
    else
      emit said(problem.isEmpty() && !best ? none : searched_text(problem));
  };
  if (file_.ask<std::optional<StoredHit>>(*run, std::move(ask), answered)) return emit said(what);
  answered(std::nullopt, 0, no_file_text());
}

void TimelineSearch::addMark() {
  const auto cursor = model_->cursor()->cursor();
  const auto chosen = viewport_->chosenTime();
  const TimeRange view = model_->range();
  if (model_->runCount() == 0) return emit said(tr("No run is chosen: a mark belongs to a run."));
  // Use the run of the selected span, otherwise the first.
  const auto* span = focus_->get<SpanChoice>();
  const int run = span ? std::max(0, model_->indexOf(span->run)) : 0;
  model_->addMark({chosen ? chosen->begin : cursor.value_or(view.begin + view.length() / 2), {}, run});
}

void TimelineSearch::nextMark(bool forward) {
  const TimeRange view = model_->range();
  const prof::TimeNs middle = view.begin + view.length() / 2;
  const Mark* best = nullptr;
  for (const Mark& mark : model_->marks()) {
    if (forward ? mark.time <= middle + 1 : mark.time >= middle - 1) continue;
    if (!best || (forward ? mark.time < best->time : mark.time > best->time)) best = &mark;
  }
  if (best) viewport_->setRange(centred(view, best->time));
}

// If the host ran ahead, steps are the GPU's: a range to show, but no span of the trace to select.
bool TimelineSearch::showStep(int run, const prof::Span& step, double margin) {
  const prof::TimeNs offset = model_->offset(run);
  const TimeRange own{step.start - offset, step.end() - offset};
  viewport_->setRange(padded(own, margin));
  if (model_->run(run)->hasGpuSteps()) {
    viewport_->selectRange(own);
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

bool TimelineSearch::jumpToStep(int64_t step) {
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i) {
    const prof::Span* span = span_of_step(model_->run(i)->marks(), step);
    if (!span) continue;
    if (i == 0) model_->alignAtStep(step);
    if (showStep(i, *span, 0.05)) return true;
  }
  emit said(tr("Step %1 is not in the history of a ticked run.").arg(count_text(step)));
  return false;
}

void TimelineSearch::jumpToSlowestStep() {
  const auto show = [this](int index, const prof::FoundSpan& found) { showStep(index, found.span, 0.2); };
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i) {
    Run* run = model_->run(i);
    const auto slowest = slowest_step(run->marks());
    if (!slowest) continue;
    const bool on_gpu = run->hasGpuSteps();
    if (in_memory(run->trace, {-kEver, kEver}, on_gpu ? is_gpu_row : is_steps_row) &&
        in_memory(run->marks(), {-kEver, kEver}, is_steps_row))
      return show(i, *slowest);
    const auto ask = [on_gpu](prof::StoredSpans& file) {
      if (!on_gpu) return hit_of(file, file.slowest_step());
      const auto step = file.slowest_step_on_gpu();
      if (!step) return std::optional<StoredHit>();
      StoredHit hit;
      hit.span = *step;
      return std::optional(hit);
    };
    if (!on_gpu)
      return askFile(run, tr("Looking for the slowest step in the run file…"), slowest, {}, ask, show, is_longer);
    return askStepOnGpu(run, *slowest, ask);
  }
  emit said(tr("No ticked run has steps in its trace."));
}

// GPU steps are in no row of the trace, so only their times can be shown.
void TimelineSearch::askStepOnGpu(Run* run, const prof::FoundSpan& known, StoredQuestion ask) {
  const auto answered = [=, this, run = QPointer<Run>(run)](const std::optional<StoredHit>& hit, size_t,
                                                            const QString& problem) {
    const int index = run ? model_->indexOf(run) : -1;
    if (index < 0) return;
    showStep(index, hit && is_longer(hit->span, known.span) ? hit->span : known.span, 0.2);
    emit said(searched_text(problem));
  };
  if (file_.ask<std::optional<StoredHit>>(*run, std::move(ask), answered))
    return emit said(tr("Looking for the slowest step in the run file…"));
  answered(std::nullopt, 0, no_file_text());
}

void TimelineSearch::showGap(int run, TimeRange gap) {
  const prof::TimeNs offset = model_->offset(run);
  const TimeRange view{gap.begin - offset, gap.end - offset};
  viewport_->setRange(padded(view, 0.3));
  viewport_->selectRange(view);
}

void TimelineSearch::jumpToLongestGap() {
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i) {
    Run* run = model_->run(i);
    const auto known = longest_gap(run->trace);
    if (in_memory(run->trace, {-kEver, kEver}, is_stream) && !too_many_to_walk(run->trace)) {
      if (!known) continue;
      return showGap(i, *known);
    }
    using Gap = std::optional<prof::StoredSpans::Gap>;
    const auto answered = [this, known, run = QPointer<Run>(run)](const Gap& gap, size_t unread,
                                                                  const QString& problem) {
      const int index = run ? model_->indexOf(run) : -1;
      if (index < 0) return;
      std::optional<TimeRange> longest = known;
      if (gap && (!longest || gap->end - gap->begin > longest->length())) longest = TimeRange{gap->begin, gap->end};
      if (longest) showGap(index, *longest);
      emit said(problem.isEmpty() && unread > 0 ? tr("A longer one may be among the %1 spans that cannot be read.")
                                                      .arg(count_text(static_cast<int64_t>(unread)))
                                                : searched_text(problem));
    };
    if (file_.ask<Gap>(
            *run, [](prof::StoredSpans& file) { return file.longest_gap(); }, answered))
      return emit said(tr("Looking for the longest gap in the run file…"));
    return answered(std::nullopt, 0, no_file_text());
  }
  emit said(tr("No ticked run has GPU streams in its trace."));
}

bool TimelineSearch::find(const QString& text, bool forward) {
  if (text.trimmed().isEmpty()) return false;
  QString digits = text.trimmed();
  if (digits.startsWith("step ", Qt::CaseInsensitive)) digits = digits.mid(5).remove(' ');
  bool is_step = false;
  if (const int64_t step = digits.toLongLong(&is_step); is_step) return jumpToStep(step);
  const auto* chosen = focus_->get<SpanChoice>();
  std::optional<prof::FoundSpan> best;
  int best_run = -1;
  prof::TimeNs best_from = 0;  // start of the search in that run
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i) {
    const prof::Trace& trace = model_->run(i)->trace;
    const auto [names, ops] = Named(trace, text);
    if (names.empty() && ops.empty()) continue;
    const TimeRange view = model_->runRange(i, model_->range());
    const prof::TimeNs from = chosen && chosen->run == model_->run(i) ? chosen->span.start
                              : forward                               ? view.begin - 1
                                                                      : view.end;
    auto found = find_span(trace, names, ops, from, forward);
    if (!found) found = find_span(trace, names, ops, forward ? INT64_MIN / 2 : INT64_MAX / 2, forward);  // wraps around
    const auto at = [&](const prof::FoundSpan& f, int run) { return f.span.start - model_->offset(run); };
    if (found && (!best || (forward ? at(*found, i) < at(*best, best_run) : at(*found, i) > at(*best, best_run))))
      best = found, best_run = i, best_from = from;
    if (!found && best_run < 0 && !in_memory(trace, {-kEver, kEver})) best_run = i, best_from = from;
  }
  if (best_run >= 0 && !in_memory(model_->run(best_run)->trace, searched(best, best_from, forward))) {
    askFound(model_->run(best_run), text, best_from, best, forward);
    return true;
  }
  if (best)
    goTo(best_run, *best);
  else
    emit said(tr("No span is named “%1”.").arg(text));
  return best.has_value();
}

void TimelineSearch::askFound(Run* run, const QString& text, prof::TimeNs from, std::optional<prof::FoundSpan> known,
                              bool forward) {
  const auto ask = [text, from, forward](prof::StoredSpans& file) {
    const prof::Trace& trace = file.trace();
    const Named named(trace, text);
    const auto wanted = [&](const prof::Span& s) { return named.has(s); };
    std::optional<prof::StoredSpans::Found> best;
    for (const prof::TimeNs begin : {from, forward ? -kEver : kEver}) {  // then it wraps around
      for (size_t t = 0; t < trace.tracks().size(); ++t) {
        const prof::TimeNs until = best ? best->span.start : forward ? kEver : -kEver;
        const auto found = forward ? file.next(t, begin, until, wanted) : file.previous(t, begin, until, wanted);
        if (found) best = found;
      }
      if (best) break;
    }
    return hit_of(file, best);
  };
  const auto better = [from, forward](const prof::Span& a, const prof::Span& b) {
    const auto rank = [&](const prof::Span& s) {
      return std::pair(forward ? s.start <= from : s.start >= from, forward ? s.start : -s.start);
    };
    return rank(a) < rank(b);
  };
  askFile(
      run, tr("Looking for “%1” in the run file…").arg(text), known, tr("No span is named “%1”.").arg(text), ask,
      [this](int index, const prof::FoundSpan& found) { goTo(index, found); }, better);
}

// Makes the selection of a panel visible.
void TimelineSearch::showSelected() {
  if (const auto* span = focus_->get<SpanChoice>())
    if (const int run = model_->indexOf(span->run); run >= 0) return goTo(run, {span->track, span->span});
  const auto* op = focus_->get<OpChoice>();
  const auto* name = focus_->get<NameChoice>();
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
