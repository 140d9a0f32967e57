#include "app/timeline/timeline_model.h"

#include <QDataStream>
#include <QIODevice>
#include <algorithm>
#include <map>
#include <numeric>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::TimeNs;
using prof::TrackKind;

constexpr double kStepsShown = 4.2;
constexpr TimeNs kShortestFollowed = 20'000, kLongestFollowed = 10'000'000'000;
constexpr TimeNs kWithoutSteps = 2'000'000, kStacksOnly = 500'000'000;  // for a period that is not known

TimeNs followed_width(const prof::Trace& trace, const prof::Trace& marks) {
  TimeNs period = step_period(marks);
  if (period <= 0) period = prof::used_gpu(trace) ? kWithoutSteps : kStacksOnly;
  return std::clamp(static_cast<TimeNs>(static_cast<double>(period) * kStepsShown), kShortestFollowed, kLongestFollowed);
}

// The end of the newest `width` before `last` that was traced: tracing pauses leave empty lanes.
TimeNs traced_end(const prof::Trace& trace, TimeNs last, TimeNs width) {
  std::vector<TimeRange> pauses;
  for (const prof::Track& track : trace.tracks())
    if (prof::untraced(track))
      prof::each_span(track, trace.first_time(), last, [&](const prof::Span& s) { pauses.push_back({s.start, s.end()}); });
  for (auto pause = pauses.rbegin(); pause != pauses.rend(); ++pause)
    if (pause->end > last - width && pause->begin - width > trace.first_time()) last = std::min(last, pause->begin);
  return last;
}

// Where the newest steps are worth a look. The last step of a recorded program may also hold its end, without a kernel.
// Only some steps of a persistent kernel show its inside.
TimeNs newest_end(const prof::Trace& trace, const prof::Trace& marks, TimeNs width) {
  const prof::Span* newest = nearest_step(marks, INT32_MAX);  // an evaluation or a tracing pause may follow it
  if (!newest) return trace.last_time();
  const TimeNs end = newest->end() - newest->start > width ? newest->start + width / 2 : newest->end();
  TimeNs inside = 0;
  for (const prof::Track& track : trace.tracks())
    if (track.kind == TrackKind::Inner && track.spans > 0) inside = std::max(inside, track.last_start);
  return inside > 0 ? std::min(end, inside) : end;
}

int height_of(const std::vector<Lane>& lanes) {
  return std::accumulate(lanes.begin(), lanes.end(), 0, [](int height, const Lane& lane) { return height + lane.height; });
}

bool has_trace(const Run& run) { return run.trace.last_time() > run.trace.first_time(); }

// True if the value rarely changes. A step that allocates changes it at least twice. An arena changes it only where
// an evaluation begins and ends.
bool is_flat(const prof::CounterTrack& counter, int64_t steps) {
  int64_t left = std::max<int64_t>(8, steps / 10);
  for (size_t i = 1; i < counter.points.size() && left >= 0; ++i)
    left -= counter.points[i].value != counter.points[i - 1].value;
  return left >= 0;
}

QString shape_of(const std::vector<Lane>& lanes) {
  QString shape;
  for (const Lane& lane : lanes)
    shape += lane.key + QString(":%1:%2:%3:%4;")
                            .arg(lane.height)
                            .arg(lane.tracks.size() + lane.counters.size())
                            .arg(lane.folded)
                            .arg(lane.title + lane.detail);
  return shape;
}

}  // namespace

TimelineModel::TimelineModel(TimeCursor* cursor, QObject* parent) : QObject(parent), cursor_(cursor) {
  connect(cursor_, &TimeCursor::followChanged, this, [this](bool on) {
    if (!on) return;
    own_width_ = false;  // keep the user's zoom
    const int index = leader();
    if (index >= 0 && !run(index)->live()) moveTo(firstLook(index));
    follow();
  });
}

void TimelineModel::setRuns(const std::vector<Run*>& runs) {
  const bool same = std::ranges::equal(runs, runs_, [](const Run* a, const QPointer<Run>& b) { return a == b; });
  for (const auto& old : runs_)
    if (old) disconnect(old, nullptr, this, nullptr);
  runs_.assign(runs.begin(), runs.end());
  for (Run* run : runs) {
    connect(run, &Run::changed, this, &TimelineModel::onRunChanged);
    connect(run, &Run::foldsChanged, this, &TimelineModel::rebuild);
    connect(run, &QObject::destroyed, this, [this] {
      std::erase_if(runs_, [](const QPointer<Run>& r) { return r.isNull(); });
      curves_.assign(runs_.size(), {});
      rebuild();
      onRunChanged();
      readMarks();
    });
  }
  if (!same) looked_ = false, own_width_ = true, followed_ = false;  // else the range stays as another page left it
  shape_.clear();
  curves_.assign(runs_.size(), {});
  rebuild();
  onRunChanged();
  readMarks();
}

void TimelineModel::setShown(const Run* run) {
  if (shown_ == run) return;
  shown_ = run;
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

// A program may take long until its first step: Fit shows the steps. A run without steps is shown as a whole.
TimeRange TimelineModel::stepsExtent() const {
  std::optional<TimeRange> all;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const prof::Track* steps = first_track(runs_[i]->marks(), prof::TrackKind::Steps);
    const bool stepped = steps && !steps->blocks.empty();
    if (!stepped && !has_trace(*runs_[i])) continue;
    const TimeRange whole{runs_[i]->trace.first_time(), runs_[i]->trace.last_time()};
    const TimeRange shown = stepped ? TimeRange{steps->blocks.front().first, steps->blocks.back().reach} : whole;
    const TimeRange own{shown.begin - offsets_[i], shown.end - offsets_[i]};
    all = all ? TimeRange{std::min(all->begin, own.begin), std::max(all->end, own.end)} : own;
  }
  return all.value_or(extent());
}

std::optional<int64_t> TimelineModel::commonStep() const {
  int64_t first = 0, last = std::numeric_limits<int64_t>::max();
  for (const auto& run : runs_) {
    if (!has_trace(*run)) continue;
    const prof::Trace& marks = run->marks();
    const prof::Track* steps = first_track(marks, prof::TrackKind::Steps);
    if (!steps || steps->blocks.empty()) return std::nullopt;
    const prof::Span* newest = step_at(marks, std::min(steps->blocks.back().reach, prof::recorded_until(run->trace)) - 1);
    const prof::Span& oldest = steps->blocks.front().head;
    if (!newest || newest->step == 0 || oldest.step == 0) return std::nullopt;
    first = std::max(first, int64_t{oldest.step} - 1), last = std::min(last, int64_t{newest->step} - 1);
  }
  return last < std::numeric_limits<int64_t>::max() && first <= last ? std::optional(last) : std::nullopt;
}

const prof::CounterTrack& TimelineModel::counter(CounterRef ref) const {
  const prof::MemoryCurves& curves = curves_[static_cast<size_t>(ref.run)];
  if (ref.counter == kUsedCurve) return curves.used();
  if (ref.counter == kReservedCurve) return curves.reserved();
  return run(ref.run)->trace.counters()[ref.counter];
}

void TimelineModel::setAlign(Align align) {
  align_ = align;
  if (align == Align::Step && !runs_.empty())
    if (const prof::Span* step = step_at(runs_[0]->marks(), cursor_->begin() + offset(0)))
      aligned_step_ = static_cast<int64_t>(step->step) - 1;
  updateOffsets();
  emit alignChanged();
  emit dataChanged();
}

void TimelineModel::alignAtStep(int64_t step) {
  aligned_step_ = step;
  if (align_ == Align::Step) updateOffsets();
}

int64_t TimelineModel::alignedStepOf(int index) const {
  const prof::Span* step = nearest_step(run(index)->marks(), aligned_step_);
  return step && step->step > 0 ? int64_t{step->step} - 1 : aligned_step_;
}

TimeNs TimelineModel::offsetFor(const Run& run) const {
  const Run& first = *runs_[0];
  if (align_ == Align::Wall && run.created.isValid() && first.created.isValid())
    return run.created.msecsTo(first.created) * 1'000'000;
  const auto from = [this](const Run& aligned) {  // a run without steps is aligned by its start
    const prof::Span* step = align_ == Align::Step ? nearest_step(aligned.marks(), aligned_step_) : nullptr;
    return step ? step->start : aligned.trace.first_time();
  };
  return from(run) - from(first);
}

void TimelineModel::updateOffsets() {
  const std::vector<TimeNs> before = std::move(offsets_);
  offsets_.assign(runs_.size(), 0);
  for (size_t i = 1; i < runs_.size(); ++i) offsets_[i] = offsetFor(*runs_[i]);
  if (offsets_ != before && !marks_.empty()) readMarks();
}

const prof::Trace& TimelineModel::traceOf(const Lane& lane) const {
  const Run& of = *run(lane.run);
  return lane.gpu_steps ? of.marks() : of.trace;
}

const Lane* TimelineModel::laneOf(int run, size_t track) const {
  for (const Lane& lane : lanes_)
    if (lane.run == run && lane.kind == LaneKind::Spans && !lane.gpu_steps &&
        std::find(lane.tracks.begin(), lane.tracks.end(), track) != lane.tracks.end())
      return &lane;
  return nullptr;
}

// Where the lanes of several runs do not fit, each run keeps its steps, kernels and calls, so that all runs are seen. Where curves
// would be cut, they begin folded.
std::vector<Lane> TimelineModel::built() const {
  constexpr int kTightest = 2;
  const bool may_leave_out = runs_.size() > 1 && !settings_.quiet_rows && settings_.filter.isEmpty() && viewport_ > 0;
  LaneSettings settings = settings_;
  std::vector<Lane> lanes = builtWith(settings);
  while (may_leave_out && settings.tight < kTightest && height_of(lanes) > viewport_) ++settings.tight, lanes = builtWith(settings);
  if (viewport_ <= 0 || least_height(lanes) <= viewport_) return lanes;
  settings.counters_begin_folded = true;
  return builtWith(settings);
}

std::vector<Lane> TimelineModel::builtWith(const LaneSettings& settings) const {
  std::vector<LaneSource> sources;
  for (size_t i = 0; i < runs_.size(); ++i) {
    Run& run = *runs_[i];
    sources.push_back({&run.trace, "run/" + run.id, title_among(run, {runs_.begin(), runs_.end()}), run.slot, !curves_[i].empty(),
                       run.hasGpuSteps() ? &run.marks() : nullptr, run.plan && run.plan->plan.layer_names.size() > 1, run.blocks(), run.foldedBlocks(), curves_[i].lines()});
  }
  std::vector<Lane> lanes = build_lanes(sources, settings);
  for (Lane& lane : lanes)
    if (!lane.counters.empty() && std::ranges::all_of(lane.counters, [this](const CounterRef& ref) {
          return is_flat(counter(ref), runs_[static_cast<size_t>(ref.run)]->stepsMade());
        }))
      lane.flat = true, lane.height = kFlatRow, lane.detail.clear();
  return lanes;
}

void TimelineModel::place(std::vector<Lane> lanes) {
  shape_ = shape_of(lanes);
  lanes_ = std::move(lanes);
  content_height_ = place_lanes(lanes_, viewport_);
  emit lanesChanged();
}

void TimelineModel::rebuild() {
  updateOffsets();
  curves_.resize(runs_.size());
  place(built());
}

void TimelineModel::onRunChanged() {
  curves_.resize(runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i) curves_[i].update(runs_[i]->trace);
  const int index = leader();
  const std::optional<TimeNs> before = leaderOffset();
  if (align_ != Align::Step || offsets_.size() != runs_.size()) updateOffsets();
  if (auto lanes = built(); shape_of(lanes) != shape_) updateOffsets(), place(std::move(lanes));
  keepInPlace(index, before);
  lookOnce();
  follow();
  emit dataChanged();
}

std::optional<TimeNs> TimelineModel::leaderOffset() const {
  const int index = leader();
  if (index < 0 || static_cast<size_t>(index) >= offsets_.size()) return std::nullopt;
  return offset(index);
}

// View time is the time of the first run. When that run is read after the leader, the leader gets another offset.
void TimelineModel::keepInPlace(int leading, std::optional<TimeNs> before) {
  const std::optional<TimeNs> now = leaderOffset();
  if (!looked_ || leading != leader() || !before || !now || *before == *now) return;
  moveTo({range().begin + *before - *now, range().end + *before - *now});
}

// A run from a file may get its trace later. A run that ended while it was followed shows its last steps.
void TimelineModel::lookOnce() {
  const bool live = leader() >= 0 && run(leader())->live();
  if (followed_ && !live && cursor_->follow()) looked_ = false;
  followed_ = live;
  const int index = tracedLeader();
  const auto traced = static_cast<size_t>(std::ranges::count_if(runs_, [](const auto& one) { return has_trace(*one); }));
  const bool another = looked_ && traced != looked_at_ && this->range() == first_look_;  // was read since, and nobody moved
  if ((looked_ && !another) || index < 0 || (live && cursor_->follow())) return;
  looked_ = true, looked_at_ = traced;
  TimeRange range = runRange(index, firstLook(index));
  const prof::Trace& marks = run(index)->marks();
  const prof::Span* step = step_at(marks, range.begin + range.length() / 2);
  if (step && step->start < range.begin) step = step_at(marks, range.end);  // prefer a step that begins in view
  if (const auto common = commonStep(); align_ == Align::Step && common && step && *common < int64_t{step->step} - 1) {
    step = nearest_step(marks, *common);
    const TimeNs begin = step->start - range.length() / 100;
    range = {begin, begin + range.length()};
  }
  if (step && align_ == Align::Step) aligned_step_ = static_cast<int64_t>(step->step) - 1, updateOffsets();
  moveTo({range.begin - offset(index), range.end - offset(index)});
  first_look_ = this->range();
}

int TimelineModel::leader() const {
  if (const int shown = shown_ ? indexOf(shown_) : -1; shown >= 0) return shown;
  for (size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i]->live()) return static_cast<int>(i);
  return runs_.empty() ? -1 : 0;
}

void TimelineModel::moveTo(TimeRange range) { cursor_->setRange(range.begin, range.end); }

// The leader; once it is read and has no trace, the first run that has one.
int TimelineModel::tracedLeader() const {
  const int index = leader();
  if (index < 0 || has_trace(*run(index))) return index;
  const auto traced = std::ranges::find_if(runs_, [](const auto& r) { return has_trace(*r); });
  return !run(index)->loaded || traced == runs_.end() ? -1 : static_cast<int>(traced - runs_.begin());
}

QString TimelineModel::emptyText() const {
  if (!settings_.filter.isEmpty()) return tr("No lane matches “%1”.").arg(settings_.filter);
  if (runs_.empty()) return tr("Press Train, or click a run in the Runs list, to see its kernels and calls here.");
  if (std::ranges::any_of(runs_, [](const auto& one) { return !one->loaded; })) return tr("Reading the run…");
  return tr("No spans. A run that is traced shows its kernels and calls here.");
}

TimeRange TimelineModel::firstLook(int index) const {
  const prof::Trace &trace = run(index)->trace, &marks = run(index)->marks();
  if (step_period(marks) <= 0 && !run(index)->live())
    return padded({trace.first_time() - offset(index), trace.last_time() - offset(index)}, 0.01);
  const TimeNs width = followed_width(trace, marks);
  const TimeNs last = traced_end(trace, newest_end(trace, marks, width), width);
  const prof::Span* step = step_at(marks, last - width);
  TimeNs begin = step ? step->start : std::max(trace.first_time(), last - width);
  if (last - begin > width) begin = last - width;  // an evaluation was between the last steps
  begin -= offset(index) + width / 100;
  return {begin, begin + width};
}

// Shows the newest steps like an oscilloscope trigger: the range begins at the begin of a step, so
// that a steady run does not move.
void TimelineModel::follow() {
  const int index = leader();
  if (!cursor_->follow() || index < 0 || !run(index)->live()) return;
  const prof::Trace &trace = run(index)->trace, &marks = run(index)->marks();
  if (trace.last_time() <= trace.first_time()) return;
  looked_ = true;
  const TimeNs width = own_width_ ? followed_width(trace, marks) : range().length();
  // While tracing pauses, there are only marks.
  const TimeNs end = std::min(run(index)->arrived(), prof::recorded_until(trace));
  const prof::Span* step = step_at(marks, end - width);
  TimeNs begin = end - width;
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

void TimelineModel::setFilter(const QString& filter) { settings_.filter = filter; rebuild(); }

namespace {
void toggle(QSet<QString>& set, const QString& key) {
  if (!set.remove(key)) set.insert(key);
}
}  // namespace

void TimelineModel::toggleFolded(const QString& key) { toggle(settings_.folded, key); rebuild(); }
void TimelineModel::togglePinned(const QString& key) { toggle(settings_.pinned, key); rebuild(); }

std::vector<std::pair<QString, QString>> TimelineModel::hidden() const {
  LaneSettings all;
  all.small = settings_.small, all.quiet_rows = true;
  std::map<QString, QString> titles;
  QString group;
  for (const Lane& lane : builtWith(all)) {
    if (lane.kind == LaneKind::Group) group = lane.title;
    titles[lane.key] = lane.kind == LaneKind::Group ? lane.title : lane.title + QStringLiteral(" · ") + group;
  }
  std::vector<std::pair<QString, QString>> hidden;
  for (const QString& key : settings_.hidden) {
    const auto known = titles.find(key);
    hidden.emplace_back(key, known == titles.end() ? key.section('/', -2, -2) : known->second);
  }
  std::ranges::sort(hidden, {}, &std::pair<QString, QString>::second);
  return hidden;
}

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

void TimelineModel::setQuietRows(bool shown) { settings_.quiet_rows = shown; rebuild(); }

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
  stream << settings_.folded << settings_.hidden << settings_.pinned << settings_.order << settings_.quiet_rows;
  return state;
}

void TimelineModel::restoreLanes(const QByteArray& state) {
  QDataStream stream(state);
  LaneSettings read = settings_;
  stream >> read.folded >> read.hidden >> read.pinned >> read.order >> read.quiet_rows;
  if (stream.status() == QDataStream::Ok) settings_ = read, rebuild();
}

void TimelineModel::readMarks() {
  marks_.clear();
  for (size_t i = 0; i < runs_.size(); ++i)
    for (const TimeMark& mark : runs_[i]->time_marks)
      marks_.push_back({mark.time - offsets_[i], mark.note, static_cast<int>(i)});
  std::ranges::stable_sort(marks_, {}, &Mark::time);
  emit marksChanged();
}

void TimelineModel::writeMarks() {
  std::vector<std::vector<TimeMark>> of(runs_.size());
  for (const Mark& mark : marks_)
    if (const auto run = static_cast<size_t>(mark.run); run < of.size())
      of[run].push_back({mark.time + offsets_[run], mark.note});
  for (size_t i = 0; i < of.size(); ++i) runs_[i]->setTimeMarks(std::move(of[i]));
}

void TimelineModel::addMark(Mark mark) {
  auto at =
      std::upper_bound(marks_.begin(), marks_.end(), mark.time, [](TimeNs t, const Mark& m) { return t < m.time; });
  marks_.insert(at, std::move(mark));
  writeMarks();
  emit marksChanged();
}

void TimelineModel::setNote(size_t mark, const QString& note) {
  marks_.at(mark).note = note;
  writeMarks();
  emit marksChanged();
}

void TimelineModel::removeMark(size_t mark) {
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(mark));
  writeMarks();
  emit marksChanged();
}

}  // namespace ws::app
