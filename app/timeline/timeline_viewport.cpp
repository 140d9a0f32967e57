#include "app/timeline/timeline_viewport.h"

#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {
constexpr int kSmallWidth = 1040, kMostUndo = 60, kOneZoomMs = 450;
}

TimelineViewport::TimelineViewport(TimelineModel* model, Focus* focus, QObject* parent)
    : QObject(parent), model_(model), focus_(focus) {
  connect(model_, &TimelineModel::lanesChanged, this, [this] {
    fitGutter();
    setScroll(geometry_.scroll);
    refresh();
  });
  connect(model_, &TimelineModel::dataChanged, this, &TimelineViewport::refresh);
  connect(model_, &TimelineModel::alignChanged, this, &TimelineViewport::refresh);
  connect(model_->cursor(), &TimeCursor::rangeChanged, this, &TimelineViewport::refresh);
  connect(focus_, &Focus::changed, this, [this] {
    if (focus_->ranges().empty()) selected_.reset();
  });
}

void TimelineViewport::refresh() {
  geometry_.range = model_->range();
  emit changed();
}

void TimelineViewport::resize(QSize size) {
  const bool small = size.width() < kSmallWidth;
  if (small != geometry_.small) own_gutter_ = false;
  geometry_.small = small;
  geometry_.size = size;
  model_->setViewport(geometry_.plot().height(), small);
  fitGutter();
  setScroll(geometry_.scroll);
  refresh();
}

// Wide enough for the names of the lanes, up to a limit.
void TimelineViewport::fitGutter() {
  if (own_gutter_) return;
  const QFontMetricsF metrics(ui_font(11));
  int wanted = geometry_.small ? 112 : 150;
  for (const Lane& lane : model_->lanes())
    if (lane.kind != LaneKind::Group && !lane.nested) wanted = std::max(wanted, geometry_.titleLeft(lane) + static_cast<int>(std::ceil(metrics.horizontalAdvance(lane.title))) + kTitleEnd + 1);
  geometry_.gutter = std::min(wanted, geometry_.small ? 176 : 200);
}

void TimelineViewport::setGutter(int width) {
  own_gutter_ = true;
  geometry_.gutter = std::clamp(width, 80, geometry_.size.width() / 2);
  refresh();
}

void TimelineViewport::setScroll(int y) {
  const int limit = scrollLimit();
  const int wanted = std::clamp(y, 0, limit);
  if (wanted != geometry_.scroll) geometry_.scroll = wanted, refresh();
  emit scrolled(wanted, limit);
}

void TimelineViewport::showLane(const Lane& lane) {
  const int space = geometry_.plot().height();
  if (lane.y < geometry_.scroll || lane.bottom() > geometry_.scroll + space) setScroll(lane.y - space / 3);
}

void TimelineViewport::showRun(int run) {
  const auto& lanes = model_->lanes();
  const auto first = std::ranges::find(lanes, run, &Lane::run);
  const auto last = std::ranges::find(lanes.rbegin(), lanes.rend(), run, &Lane::run);
  if (first != lanes.end() && last->bottom() > geometry_.scroll + geometry_.plot().height()) setScroll(first->y);
}

// Many wheel turns or repeats of a held key count as one zoom to undo.
void TimelineViewport::setRange(TimeRange range, bool remember) {
  const bool same_gesture = last_zoom_.isValid() && last_zoom_.elapsed() < kOneZoomMs;
  if (remember && !same_gesture) {
    undo_.push_back(model_->range());
    redo_.clear();
    if (undo_.size() > kMostUndo) undo_.erase(undo_.begin());
  }
  last_zoom_.start();
  model_->cursor()->setFollow(false);
  model_->cursor()->setRange(range.begin, range.end);
}

void TimelineViewport::undo() {
  if (undo_.empty()) return;
  redo_.push_back(model_->range());
  const TimeRange range = undo_.back();
  undo_.pop_back();
  setRange(range, false);
  endGesture();
}

void TimelineViewport::redo() {
  if (redo_.empty()) return;
  undo_.push_back(model_->range());
  const TimeRange range = redo_.back();
  redo_.pop_back();
  setRange(range, false);
  endGesture();
}

void TimelineViewport::zoomBy(double factor) {
  const TimeRange range = model_->range();
  const auto cursor = model_->cursor()->cursor();
  const prof::TimeNs anchor = cursor && range.contains(*cursor) ? *cursor : range.begin + range.length() / 2;
  setRange(zoomed(range, anchor, factor));
}

void TimelineViewport::panBy(double share) { setRange(panned(model_->range(), share)); }

std::optional<TimeRange> TimelineViewport::chosenTime() const {
  if (const auto* span = focus_->get<SpanChoice>()) {
    const int run = model_->indexOf(span->run);
    if (run >= 0) return TimeRange{span->span.start - model_->offset(run), span->span.end() - model_->offset(run)};
  }
  return std::nullopt;
}

void TimelineViewport::fit() {
  const TimeRange steps = padded(model_->stepsExtent(), 0.01);
  const TimeRange all = model_->range() == steps ? padded(model_->extent(), 0.01) : steps;  // once more: with its start
  std::optional<TimeRange> wanted = selected_ ? selected_ : chosenTime();
  if (wanted) wanted = padded(*wanted, selected_ ? 0.02 : 1.0);
  const bool there = wanted && model_->range() == *wanted;
  setRange(wanted && !there ? *wanted : all);
  endGesture();
}

void TimelineViewport::selectRange(TimeRange range) {
  selected_ = range;
  std::vector<RunRange> ranges;
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i)
    ranges.push_back({model_->run(i), model_->runRange(i, range)});
  focus_->chooseRanges(std::move(ranges));
}

void TimelineViewport::chooseSpan(int run, size_t track, const prof::Span& span) {
  selected_.reset();
  focus_->chooseRanges({});
  focus_->choose(SpanChoice{model_->run(run), track, span});
}

void TimelineViewport::clearSelection() {
  selected_.reset();
  focus_->clear();
}

}  // namespace ws::app
