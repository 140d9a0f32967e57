#include "app/timeline/timeline_model.h"

#include <QDataStream>
#include <QIODevice>
#include <algorithm>

namespace ws::app {
namespace {

using prof::TimeNs;

constexpr double kStepsShown = 5.2;
constexpr TimeNs kShortestFollowed = 20'000, kLongestFollowed = 10'000'000'000, kWithoutSteps = 2'000'000;

TimeNs step_period(const prof::Trace& trace) {
  const double us = recent_numbers(trace, 40).step_us;
  return us > 0 ? static_cast<TimeNs>(us * 1000) : kWithoutSteps;
}

TimeNs followed_width(const prof::Trace& trace) {
  return std::clamp(static_cast<TimeNs>(static_cast<double>(step_period(trace)) * kStepsShown), kShortestFollowed,
                    kLongestFollowed);
}

}  // namespace

TimelineModel::TimelineModel(TimeCursor* cursor, QObject* parent) : QObject(parent), cursor_(cursor) {
  connect(cursor_, &TimeCursor::followChanged, this, [this](bool on) {
    if (!on) return;
    own_width_ = false;  // keep what the person zoomed to
    follow();
  });
}

void TimelineModel::setRuns(const std::vector<Run*>& runs) {
  for (const auto& old : runs_)
    if (old) disconnect(old, nullptr, this, nullptr);
  runs_.assign(runs.begin(), runs.end());
  for (Run* run : runs) {
    connect(run, &Run::changed, this, &TimelineModel::onRunChanged);
    connect(run, &QObject::destroyed, this, [this] {
      std::erase_if(runs_, [](const QPointer<Run>& r) { return r.isNull(); });
      curves_.assign(runs_.size(), {});
      rebuild();
      onRunChanged();
    });
  }
  looked_ = false, own_width_ = true;
  shape_.clear();
  curves_.assign(runs_.size(), {});
  rebuild();
  onRunChanged();
}

int TimelineModel::indexOf(const Run* run) const {
  for (size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i] == run) return static_cast<int>(i);
  return -1;
}

TimeRange TimelineModel::extent() const {
  std::optional<TimeRange> all;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const prof::Trace& trace = runs_[i]->trace;
    if (trace.last_time() <= trace.first_time()) continue;
    const TimeRange own{trace.first_time() - offsets_[i], trace.last_time() - offsets_[i]};
    all = all ? TimeRange{std::min(all->begin, own.begin), std::max(all->end, own.end)} : own;
  }
  return all.value_or(TimeRange{0, 1'000'000});
}

const prof::CounterTrack& TimelineModel::counter(CounterRef ref) const {
  const MemoryCurves& curves = curves_[static_cast<size_t>(ref.run)];
  if (ref.counter == kUsedCurve) return curves.used();
  if (ref.counter == kReservedCurve) return curves.reserved();
  return run(ref.run)->trace.counters()[ref.counter];
}

void TimelineModel::setAlign(Align align) {
  align_ = align;
  if (align == Align::Step && !runs_.empty())
    if (const prof::Span* step = step_at(runs_[0]->trace, cursor_->begin() + offset(0)))
      aligned_step_ = static_cast<int64_t>(step->step) - 1;
  updateOffsets();
  emit alignChanged();
  emit dataChanged();
}

void TimelineModel::alignAtStep(int64_t step) {
  aligned_step_ = step;
  if (align_ == Align::Step) updateOffsets();
}

TimeNs TimelineModel::offsetFor(const Run& run) const {
  const Run& first = *runs_[0];
  if (align_ == Align::Wall && run.created.isValid() && first.created.isValid())
    return run.created.msecsTo(first.created) * 1'000'000;
  if (align_ == Align::Step) {
    const prof::Span* own = nearest_step(run.trace, aligned_step_);
    const prof::Span* reference = nearest_step(first.trace, aligned_step_);
    if (own && reference) return own->start - reference->start;
  }
  return run.trace.first_time() - first.trace.first_time();
}

void TimelineModel::updateOffsets() {
  offsets_.assign(runs_.size(), 0);
  for (size_t i = 1; i < runs_.size(); ++i) offsets_[i] = offsetFor(*runs_[i]);
}

void TimelineModel::rebuild() {
  updateOffsets();
  std::vector<LaneSource> sources;
  curves_.resize(runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i)
    sources.push_back({&runs_[i]->trace, "run/" + runs_[i]->id, runs_[i]->title, runs_[i]->slot, !curves_[i].empty()});
  lanes_ = build_lanes(sources, settings_);
  content_height_ = place_lanes(lanes_, viewport_);
  emit lanesChanged();
}

void TimelineModel::onRunChanged() {
  std::vector<size_t> shape;
  curves_.resize(runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const auto& run = runs_[i];
    curves_[i].update(run->trace);
    shape.push_back(curves_[i].empty() ? 5 : 6);
    for (const auto& track : run->trace.tracks()) shape.push_back(track.spans > 0 ? 1 + (allocates(track) ? 1 : 0) : 0);
    for (const auto& counter : run->trace.counters()) shape.push_back(counter.points.empty() ? 3 : 4);
    shape.push_back(static_cast<size_t>(run->slot + 8));
  }
  if (shape != shape_) shape_ = std::move(shape), rebuild();
  if (align_ != Align::Step || offsets_.size() != runs_.size()) updateOffsets();
  // A run from a file may have its trace only later.
  const bool traced = std::any_of(runs_.begin(), runs_.end(),
                                  [](const auto& r) { return r->trace.last_time() > r->trace.first_time(); });
  if (!looked_ && traced) {
    const bool any_live = leader() >= 0 && run(leader())->live();
    if (!any_live || !cursor_->follow()) looked_ = true, moveTo(firstLook());
  }
  follow();
  emit dataChanged();
}

int TimelineModel::leader() const {
  for (size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i]->live()) return static_cast<int>(i);
  return runs_.empty() ? -1 : 0;
}

void TimelineModel::moveTo(TimeRange range) { cursor_->setRange(range.begin, range.end); }

TimeRange TimelineModel::firstLook() const {
  if (runs_.empty()) return {0, 1'000'000};
  const prof::Trace& trace = runs_[0]->trace;
  const prof::Span* newest = nearest_step(trace, INT32_MAX);  // an evaluation or a rest may follow it
  const TimeNs width = followed_width(trace), last = newest ? newest->end() : trace.last_time();
  const prof::Span* step = step_at(trace, last - width);
  const TimeNs begin = step ? step->start : std::max(trace.first_time(), last - width);
  return {begin - width / 100, begin - width / 100 + width};
}

// The newest steps, like the trigger of an oscilloscope: the range begins where a step does, so that a steady run
// stands still.
void TimelineModel::follow() {
  const int index = leader();
  if (!cursor_->follow() || index < 0 || !run(index)->live()) return;
  const prof::Trace& trace = run(index)->trace;
  if (trace.last_time() <= trace.first_time()) return;
  const TimeNs width = own_width_ ? followed_width(trace) : range().length();
  looked_ = true;
  const prof::Span* step = step_at(trace, trace.last_time() - width);
  TimeNs begin = trace.last_time() - width;
  if (step && begin - step->start < width) begin = step->start;
  if (step && align_ == Align::Step) aligned_step_ = static_cast<int64_t>(step->step) - 1, updateOffsets();
  begin -= offset(index) + width / 200;
  moveTo({begin, begin + width});
}

void TimelineModel::setViewport(int height, bool small) {
  if (height == viewport_ && small == settings_.small) return;
  viewport_ = height, settings_.small = small;
  rebuild();
}

void TimelineModel::setFilter(const QString& filter) { settings_.filter = filter, rebuild(); }

namespace {
void toggle(QSet<QString>& set, const QString& key) {
  if (!set.remove(key)) set.insert(key);
}
}  // namespace

void TimelineModel::toggleFolded(const QString& key) { toggle(settings_.folded, key), rebuild(); }
void TimelineModel::togglePinned(const QString& key) { toggle(settings_.pinned, key), rebuild(); }

void TimelineModel::setHidden(const QString& key, bool hidden) {
  if (hidden)
    settings_.hidden.insert(key);
  else
    settings_.hidden.remove(key);
  rebuild();
}

void TimelineModel::showAll() {
  settings_.hidden.clear(), settings_.folded.clear(), settings_.filter.clear();
  rebuild();
}

void TimelineModel::moveLane(const QString& key, int by) {
  auto at = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return l.key == key; });
  if (at == lanes_.end() || at->kind == LaneKind::Group) return;
  auto first = at, last = at;
  while (first->kind != LaneKind::Group && first != lanes_.begin()) --first;
  while (last != lanes_.end() && (last == first || last->kind != LaneKind::Group)) ++last;
  QStringList keys;
  for (auto lane = first + 1; lane < last; ++lane) keys << lane->key;
  const auto from = keys.indexOf(key), to = std::clamp<qsizetype>(from + by, 0, keys.size() - 1);
  keys.move(from, to);
  for (const QString& moved : keys) settings_.order.removeAll(moved);
  settings_.order << keys;
  rebuild();
}

QByteArray TimelineModel::saveLanes() const {
  QByteArray state;
  QDataStream stream(&state, QIODevice::WriteOnly);
  stream << settings_.folded << settings_.hidden << settings_.pinned << settings_.order;
  return state;
}

void TimelineModel::restoreLanes(const QByteArray& state) {
  QDataStream stream(state);
  LaneSettings read = settings_;
  stream >> read.folded >> read.hidden >> read.pinned >> read.order;
  if (stream.status() == QDataStream::Ok) settings_ = read, rebuild();
}

void TimelineModel::addMark(Mark mark) {
  auto at =
      std::upper_bound(marks_.begin(), marks_.end(), mark.time, [](TimeNs t, const Mark& m) { return t < m.time; });
  marks_.insert(at, std::move(mark));
  emit marksChanged();
}

void TimelineModel::setNote(size_t mark, const QString& note) {
  marks_.at(mark).note = note;
  emit marksChanged();
}

void TimelineModel::removeMark(size_t mark) {
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(mark));
  emit marksChanged();
}

std::unique_ptr<Run> TimelineModel::freeze(int index, double seconds) const {
  const Run& from = *run(index);
  auto kept = std::make_unique<Run>();
  const TimeNs end = from.trace.last_time(), begin = end - static_cast<TimeNs>(seconds * 1e9);
  kept->id = from.id + QString("-kept-%1").arg(end);
  kept->title = from.title + QString(" · last %1 s kept").arg(seconds);
  kept->device = from.device, kept->spec = from.spec, kept->plan = from.plan, kept->created = from.created;
  kept->origin = RunOrigin::Imported, kept->steps = from.steps, kept->evals = from.evals;
  copy_trace(from.trace, {begin, end}, kept->trace);
  return kept;
}

}  // namespace ws::app
