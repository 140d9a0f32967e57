#include "app/timeline/timeline_view.h"

#include <QEvent>
#include <QPainter>
#include <QTimerEvent>
#include <QToolTip>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {
constexpr int kSmallWidth = 1040, kMostUndo = 60, kOneZoomMs = 450;
}

TimelineView::TimelineView(TimelineModel* model, Selection* selection, QWidget* parent)
    : QWidget(parent), model_(model), selection_(selection), painter_(*model) {
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setObjectName("timeline");
  setAccessibleName(tr("Timeline"));
  connect(model_, &TimelineModel::lanesChanged, this, [this] {
    painter_.forget(), overview_.clear();
    setScroll(geometry_.scroll), stale();
  });
  connect(model_, &TimelineModel::dataChanged, this, &TimelineView::stale);
  connect(model_, &TimelineModel::alignChanged, this, &TimelineView::stale);
  connect(model_, &TimelineModel::marksChanged, this, qOverload<>(&QWidget::update));
  connect(model_->cursor(), &TimeCursor::rangeChanged, this, &TimelineView::stale);
  connect(model_->cursor(), &TimeCursor::cursorChanged, this, qOverload<>(&QWidget::update));
  connect(selection_, &Selection::changed, this, [this] {
    if (selection_->ranges().empty()) selected_.reset();
    describe();
    update();
  });
  connect(selection_, &Selection::revealed, this, &TimelineView::showSelected);
}

void TimelineView::stale() {
  stale_ = true;
  geometry_.range = model_->range();
  update();
}

int TimelineView::scrollLimit() const { return std::max(0, model_->contentHeight() - (height() - geometry_.top())); }

void TimelineView::setScroll(int y) {
  const int limit = scrollLimit();
  const int wanted = std::clamp(y, 0, limit);
  if (wanted != geometry_.scroll) geometry_.scroll = wanted, stale();
  emit scrollChanged(wanted, limit);
}

void TimelineView::resizeEvent(QResizeEvent*) {
  const bool small = width() < kSmallWidth;
  if (small != geometry_.small) geometry_.gutter = small ? 112 : 150;
  geometry_.small = small;
  geometry_.size = size();
  model_->setViewport(height() - geometry_.top(), small);
  setScroll(geometry_.scroll);
  stale();
}

// New lanes go straight to the widget: while following, each picture is shown once. Only when the same lanes are wanted
// again, under a moving cursor, is a copy kept.
void TimelineView::paintLanes(QPainter& painter) {
  geometry_.size = size();
  geometry_.range = model_->range();
  const qreal ratio = devicePixelRatioF();
  if (stale_ || lanes_ratio_ != ratio) {
    painter_.paint(painter, geometry_);
    stale_ = kept_ = false, lanes_ratio_ = ratio;
    return;
  }
  if (!kept_) {
    if (lanes_.size() != size() * ratio) lanes_ = QPixmap(size() * ratio);
    lanes_.setDevicePixelRatio(ratio);
    QPainter copy(&lanes_);
    painter_.paint(copy, geometry_);
    kept_ = true;
  }
  painter.drawPixmap(0, 0, lanes_);
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintLanes(painter);
  paintOverview(painter);
  if (model_->runCount() == 0 || model_->lanes().size() <= model_->runCount()) return paintEmpty(painter);
  paintRange(painter);
  paintSelection(painter);
  paintRuler(painter);
  paintMarks(painter);
  paintCursor(painter);
  paintCard(painter);
}

void TimelineView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange ||
      event->type() == QEvent::StyleChange) {
    painter_.setTheme();
    stale();
  }
  QWidget::changeEvent(event);
}

const Lane* TimelineView::laneOf(int run, size_t track) const {
  for (const Lane& lane : model_->lanes())
    if (lane.run == run && lane.kind == LaneKind::Spans && !lane.gpu_steps &&
        std::find(lane.tracks.begin(), lane.tracks.end(), track) != lane.tracks.end())
      return &lane;
  return nullptr;
}

QRectF TimelineView::boxOf(int run, size_t track, const prof::Span& span) const {
  const Lane* lane = laneOf(run, track);
  return lane ? painter_.spanBox(*lane, track, span.start, span.end(), geometry_) : QRectF();
}

std::optional<TimelineView::Hit> TimelineView::hitAt(QPoint at) {
  if (!geometry_.plot().contains(at)) return std::nullopt;
  Hit hit;
  hit.lane = lane_at(model_->lanes(), at.y() - geometry_.top() + geometry_.scroll);
  if (hit.lane < 0) return std::nullopt;
  const Lane& lane = model_->lanes()[static_cast<size_t>(hit.lane)];
  hit.box = QRect(geometry_.gutter, geometry_.laneY(lane), width() - geometry_.gutter, lane.height);
  if (lane.kind != LaneKind::Spans) return std::nullopt;
  const auto x = static_cast<float>(at.x() - geometry_.gutter);
  for (auto track = lane.tracks.rbegin(); track != lane.tracks.rend(); ++track) {
    const RowInLane row = row_in(lane, *track);
    if (const double y = at.y() - hit.box.top(); y < row.top || y > row.top + row.height) continue;
    for (float reach : {0.5F, 2.5F}) {  // a thin block is hit from beside it as well
      const auto& rects = painter_.rects(lane, *track, geometry_);
      auto it =
          std::partition_point(rects.begin(), rects.end(), [&](const prof::LodRect& r) { return r.x0 <= x + reach; });
      if (it == rects.begin() || std::max((it - 1)->x1, (it - 1)->x0 + 1) + reach < x) continue;
      hit.track = *track, hit.rect = *(it - 1);
      return hit;
    }
  }
  return std::nullopt;
}

// A wheel turn or a held key is one zoom to undo, not fifty.
void TimelineView::setRange(TimeRange range, bool remember) {
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

void TimelineView::undoZoom() {
  if (undo_.empty()) return;
  redo_.push_back(model_->range());
  const TimeRange range = undo_.back();
  undo_.pop_back();
  setRange(range, false);
  last_zoom_.invalidate();
}

void TimelineView::redoZoom() {
  if (redo_.empty()) return;
  undo_.push_back(model_->range());
  const TimeRange range = redo_.back();
  redo_.pop_back();
  setRange(range, false);
  last_zoom_.invalidate();
}

void TimelineView::zoomBy(double factor) {
  const TimeRange range = model_->range();
  const auto cursor = model_->cursor()->cursor();
  const prof::TimeNs anchor = cursor && range.contains(*cursor) ? *cursor : range.begin + range.length() / 2;
  setRange(zoomed(range, anchor, factor));
}

void TimelineView::panBy(double share) { setRange(panned(model_->range(), share)); }


std::optional<TimeRange> TimelineView::chosenTime() const {
  if (const auto* span = selection_->get<SpanChoice>()) {
    const int run = model_->indexOf(span->run);
    if (run >= 0) return TimeRange{span->span.start - model_->offset(run), span->span.end() - model_->offset(run)};
  }
  return std::nullopt;
}

void TimelineView::fit() {
  const TimeRange all = padded(model_->extent(), 0.01);
  std::optional<TimeRange> wanted = selected_ ? selected_ : chosenTime();
  if (wanted) wanted = padded(*wanted, selected_ ? 0.02 : 1.0);
  const bool there = wanted && model_->range() == *wanted;
  setRange(wanted && !there ? *wanted : all);
  last_zoom_.invalidate();
}

void TimelineView::selectRange(TimeRange range) {
  selected_ = range;
  std::vector<RunRange> ranges;
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i)
    ranges.push_back({model_->run(i), model_->runRange(i, range)});
  selection_->chooseRanges(std::move(ranges));
}

void TimelineView::clearSelection() {
  selected_.reset();
  card_.reset();
  selection_->clear();
}

// What a screen reader says about the chosen span.
void TimelineView::describe() {
  QString text;
  if (const auto* span = selection_->get<SpanChoice>()) {
    const prof::Trace& trace = span->run->trace;
    text = span_card(trace, span->track, span->span).title + ", " +
           span_time(static_cast<prof::TimeNs>(span->span.duration)) + ", " +
           QString::fromStdString(trace.tracks()[span->track].name) + ", " + span->run->title;
  } else if (selected_) {
    text = tr("Range of %1").arg(span_time(selected_->length()));
  }
  setAccessibleDescription(text);
}

void TimelineView::timerEvent(QTimerEvent* event) {
  if (event->timerId() != hover_timer_.timerId()) return QWidget::timerEvent(event);
  hover_timer_.stop();
  hover(pointer_);
}

}  // namespace ws::app
