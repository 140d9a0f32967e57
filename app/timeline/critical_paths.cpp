#include "app/timeline/critical_paths.h"

#include <algorithm>

#include "app/text/qt_text.h"
#include "app/timeline/timeline_model.h"
#include "app/workspace/compared_live_run.h"

namespace ws::app {
namespace {

constexpr int kStillMs = 120;

// A part of a wide view is enough, as long as it is in the middle of it.
bool covers(prof::TimeRange window, prof::TimeRange view) {
  const bool all = window.begin <= view.begin && view.end <= window.end;
  return all || (view.length() > window.length() && window.contains(view.begin + view.length() / 2));
}

}  // namespace

// The view of a live run that is followed never stands still. Its data always comes.
CriticalPaths::CriticalPaths(const TimelineModel* model) : model_(model) {
  still_.setSingleShot(true), still_.setInterval(kStillMs);
  connect(&still_, &QTimer::timeout, this, &CriticalPaths::update);
  connect(model->cursor(), &TimeCursor::rangeChanged, this, [this] {
    if (shown_) still_.start();
  });
  connect(model, &TimelineModel::dataChanged, this, [this] {
    if (shown_ && !still_.isActive()) still_.start();
  });
}

void CriticalPaths::setShown(bool shown) {
  if (shown_ == shown) return;
  shown_ = shown;
  if (shown) update();
  emit changed();
}

const CriticalPaths::Known* CriticalPaths::known(const Run* run) const {
  const auto found = std::ranges::find(known_, run, [](const Known& one) { return one.run.get(); });
  return found == known_.end() ? nullptr : &*found;
}

const prof::SpanPath* CriticalPaths::of(const Run* run) const {
  const Known* one = shown_ ? known(run) : nullptr;
  return one ? one->path.get() : nullptr;
}

QString CriticalPaths::whyNot() const {
  for (size_t i = 0; i < model_->runCount(); ++i)
    if (prof::may_have_causes(model_->run(static_cast<int>(i))->trace)) return {};
  return model_->runCount() == 0 ? tr("No run is chosen.") : text(prof::kNothingToReplay);
}

prof::TimeRange CriticalPaths::viewOf(int run) const {
  const prof::Trace& trace = model_->run(run)->trace;
  const prof::TimeRange view = model_->runRange(run, model_->range());
  return {std::max(view.begin, trace.first_time()), std::min(view.end, trace.last_time() + 1)};
}

QString CriticalPaths::note() const {
  const int leader = model_->leader();
  if (!shown_ || leader < 0 || !whyNot().isEmpty()) return {};
  const Known* one = known(model_->run(leader));
  if (!one) return model_->run(leader)->live() && model_->cursor()->follow() ? tr("critical path once the view stands still") : tr("zoom in to see the critical path");
  const prof::TimeRange view = viewOf(leader), window = one->path ? one->path->window() : one->wanted;
  if (window.begin <= view.begin && view.end <= window.end) return {};
  const std::string steps = prof::which_steps(one->which);
  return steps.empty() ? QString() : tr("critical path of %1").arg(text(steps));
}

void CriticalPaths::update() {
  std::erase_if(known_, [this](const Known& one) { return model_->indexOf(one.run) < 0; });
  for (int run = 0; run < static_cast<int>(model_->runCount()); ++run) {
    const Known* one = known(model_->run(run));
    const prof::TimeRange view = viewOf(run);
    if (view.length() > 0 && !(one && (one->view == view || covers(one->wanted, view)))) compute(run);
  }
  emit changed();
}

// The other thread gets a copy: the trace may grow meanwhile.
void CriticalPaths::compute(int index) {
  Run* const run = model_->run(index);
  const prof::StepCausesFacts facts = causes_facts(*run);
  const prof::StepsAround steps = prof::steps_around(run->trace, run->marks(), viewOf(index), facts.most_spans);
  if (steps.window.length() <= 0) return;
  if (!known(run)) known_.push_back({run, {}, {}, {}, nullptr});
  const auto entry = [this, run = QPointer<const Run>(run)] { return std::ranges::find_if(known_, [&](const Known& one) { return run && one.run == run; }); };
  entry()->view = viewOf(index), entry()->wanted = steps.window;
  const auto part = std::make_shared<prof::Trace>();
  prof::copy_trace(run->trace, steps.window, *part);
  const auto found = std::make_shared<std::shared_ptr<const prof::SpanPath>>();
  job_.start([part, found, window = steps.window, gap = usual_gap_ns(facts)](const Job::Side&) { *found = std::make_shared<prof::SpanPath>(prof::cause_graph(*part, window, gap), *part); },
             [this, entry, found, steps](const QString&) {
               const auto at = entry();
               if (at == known_.end() || at->wanted != steps.window || !*found) return;
               at->which = steps.which, at->path = *found;
               emit changed();
             });
}

}  // namespace ws::app
