// Mouse and keys of the timeline.
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <cmath>

#include "app/timeline/timeline_view.h"

namespace ws::app {
namespace {

constexpr int kHoverMs = 150, kDragFrom = 4, kHandle = 5;
constexpr double kZoomStep = 1.25, kPanStep = 0.15;

// Positions of the keys, so that W A S D stay under the same fingers on every layout (evdev codes + 8).
int by_position(quint32 scan_code) {
  switch (scan_code) {
    case 25:
      return Qt::Key_W;
    case 38:
      return Qt::Key_A;
    case 39:
      return Qt::Key_S;
    case 40:
      return Qt::Key_D;
    default:
      return 0;
  }
}

}  // namespace

int TimelineView::keyOf(const QKeyEvent* event) const {
  const QString platform = QGuiApplication::platformName();
  if (platform == "xcb" || platform.startsWith("wayland"))
    if (const int key = by_position(event->nativeScanCode())) return key;
  return event->key();
}

bool TimelineView::moveKey(int key, Qt::KeyboardModifiers modifiers) {
  const double much = modifiers & Qt::ShiftModifier ? 3 : 1;
  switch (key) {
    case Qt::Key_W:
      zoomBy(std::pow(1 / kZoomStep, much));
      return true;
    case Qt::Key_S:
      zoomBy(std::pow(kZoomStep, much));
      return true;
    case Qt::Key_A:
    case Qt::Key_Left:
      panBy(-kPanStep * much);
      return true;
    case Qt::Key_D:
    case Qt::Key_Right:
      panBy(kPanStep * much);
      return true;
    case Qt::Key_Up:
      setScroll(geometry_.scroll - 30);
      return true;
    case Qt::Key_Down:
      setScroll(geometry_.scroll + 30);
      return true;
    case Qt::Key_PageUp:
      setScroll(geometry_.scroll - geometry_.plot().height());
      return true;
    case Qt::Key_PageDown:
      setScroll(geometry_.scroll + geometry_.plot().height());
      return true;
    default:
      return false;
  }
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  const auto modifiers =
      event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::ShiftModifier | Qt::MetaModifier);
  if (modifiers == Qt::AltModifier && event->key() == Qt::Key_Left) return undoZoom();
  if (modifiers == Qt::AltModifier && event->key() == Qt::Key_Right) return redoZoom();
  if (modifiers & ~Qt::ShiftModifier) return QWidget::keyPressEvent(event);
  if (moveKey(keyOf(event), modifiers)) return;
  switch (event->key()) {
    case Qt::Key_F:
      return fit();
    case Qt::Key_Period:
      return nextSame(true);
    case Qt::Key_Comma:
      return nextSame(false);
    case Qt::Key_M:
      return addMark();
    case Qt::Key_Backspace:
      return undoZoom();
    case Qt::Key_BracketRight:
      return nextMark(true);
    case Qt::Key_BracketLeft:
      return nextMark(false);
    case Qt::Key_Home:
      return setRange({model_->extent().begin, model_->extent().begin + model_->range().length()});
    case Qt::Key_End:
      return setRange({model_->extent().end - model_->range().length(), model_->extent().end});
    case Qt::Key_Escape:
      if (card_ || selected_ || selection_->choice().index() != 0) return clearSelection();
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (jump_to_) return goTo(jump_run_, *jump_to_);
      return click(pointer_, Qt::NoModifier);
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

// Letters are keys of the timeline while it has the focus, not shortcuts of the window.
bool TimelineView::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    auto* key = static_cast<QKeyEvent*>(event);
    const bool plain = !(key->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
    static constexpr int kOwn[] = {Qt::Key_W, Qt::Key_A,      Qt::Key_S,     Qt::Key_D,        Qt::Key_F,
                                   Qt::Key_M, Qt::Key_Period, Qt::Key_Comma, Qt::Key_Backspace};
    if (plain && (std::find(std::begin(kOwn), std::end(kOwn), keyOf(key)) != std::end(kOwn))) {
      event->accept();
      return true;
    }
  }
  return QWidget::event(event);
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  const QPoint turn = event->angleDelta();
  const int along = turn.y() != 0 ? turn.y() : turn.x();
  if (event->modifiers() & Qt::ControlModifier) {
    const prof::TimeNs anchor = geometry_.scale().time(std::max<double>(geometry_.gutter, event->position().x()));
    setRange(zoomed(model_->range(), anchor, std::pow(0.8, along / 120.0)));
  } else if (event->modifiers() & (Qt::ShiftModifier | Qt::AltModifier) || (turn.x() != 0 && turn.y() == 0)) {
    panBy(-along / 120.0 * 0.1);
  } else {
    setScroll(geometry_.scroll - along / 2);
  }
  event->accept();
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  pressed_ = pointer_ = event->pos();
  card_.reset();
  range_at_press_ = model_->range();
  scroll_at_press_ = geometry_.scroll;
  anchor_ = geometry_.scale().time(pressed_.x());
  drag_ = Drag::None;
  if (event->button() == Qt::MiddleButton ||
      (event->button() == Qt::LeftButton && event->modifiers() & Qt::ShiftModifier)) {
    drag_ = Drag::Pan;
    setCursor(Qt::ClosedHandCursor);
    return;
  }
  if (event->button() != Qt::LeftButton) return;
  if (pressed_.y() < TimelineGeometry::kOverview) return drag_ = Drag::Overview, overviewTo(pressed_.x());
  if (std::abs(pressed_.x() - geometry_.gutter) <= 3) {
    drag_ = Drag::Gutter;
    return;
  }
  if (jump_to_ && jump_arrow_.contains(pressed_)) return goTo(jump_run_, *jump_to_);
  if (const int mark = markAt(pressed_); mark >= 0) return emit noteWanted(mark);
  const TimeScale scale = geometry_.scale();
  if (selected_ && std::abs(scale.x(selected_->begin) - pressed_.x()) <= kHandle)
    drag_ = Drag::RangeBegin;
  else if (selected_ && std::abs(scale.x(selected_->end) - pressed_.x()) <= kHandle)
    drag_ = Drag::RangeEnd;
  else
    drag_ = Drag::Press;
}

void TimelineView::dragTo(QPoint at) {
  const TimeScale scale = geometry_.scale();
  const prof::TimeNs time = scale.time(std::clamp(at.x(), geometry_.gutter, width()));
  switch (drag_) {
    case Drag::Press:
      if ((at - pressed_).manhattanLength() < kDragFrom) return;
      if (pressed_.x() >= geometry_.gutter) {
        drag_ = Drag::Range;
        return dragTo(at);
      }
      if (const int lane = lane_at(model_->lanes(), pressed_.y() - geometry_.top() + geometry_.scroll); lane >= 0) {
        drag_ = Drag::Lane, dragged_lane_ = model_->lanes()[static_cast<size_t>(lane)].key;
        setCursor(Qt::SizeVerCursor);
      }
      return;
    case Drag::Range:
      return selectRange({std::min(anchor_, time), std::max(anchor_, time) + 1});
    case Drag::RangeBegin:
      return selectRange({std::min(time, selected_->end - 1), selected_->end});
    case Drag::RangeEnd:
      return selectRange({selected_->begin, std::max(time, selected_->begin + 1)});
    case Drag::Pan: {
      const auto by = static_cast<prof::TimeNs>((pressed_.x() - at.x()) * scale.ns_per_px());
      setScroll(scroll_at_press_ + pressed_.y() - at.y());
      if (by != 0) setRange({range_at_press_.begin + by, range_at_press_.end + by});
      return;
    }
    case Drag::Gutter:
      geometry_.gutter = std::clamp(at.x(), 80, width() / 2);
      return stale();
    case Drag::Overview:
      return overviewTo(at.x());
    case Drag::Lane: {
      const int target = lane_at(model_->lanes(), at.y() - geometry_.top() + geometry_.scroll);
      int own = -1;
      for (size_t i = 0; i < model_->lanes().size(); ++i)
        if (model_->lanes()[i].key == dragged_lane_) own = static_cast<int>(i);
      if (target >= 0 && own >= 0 && target != own) model_->moveLane(dragged_lane_, target - own);
      return;
    }
    case Drag::None:
      return;
  }
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  pointer_ = event->pos();
  if (drag_ != Drag::None) return dragTo(pointer_);
  const bool on_edge = std::abs(pointer_.x() - geometry_.gutter) <= 3;
  const TimeScale scale = geometry_.scale();
  const bool on_handle = selected_ && (std::abs(scale.x(selected_->begin) - pointer_.x()) <= kHandle ||
                                       std::abs(scale.x(selected_->end) - pointer_.x()) <= kHandle);
  setCursor(on_edge || on_handle ? Qt::SplitHCursor : Qt::ArrowCursor);
  if (pointer_.x() >= geometry_.gutter && pointer_.y() >= TimelineGeometry::kOverview)
    model_->cursor()->setCursor(scale.time(pointer_.x()));
  if (card_) card_.reset(), update();
  hover_timer_.start(kHoverMs, this);
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  const Drag drag = std::exchange(drag_, Drag::None);
  setCursor(Qt::ArrowCursor);
  last_zoom_.invalidate();
  if (drag == Drag::Press && event->button() == Qt::LeftButton) click(event->pos(), event->modifiers());
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto hit = hitAt(event->pos());
  if (!hit) return;
  const TimeScale scale{geometry_.range, 0, geometry_.scale().width};
  setRange(
      padded({scale.time(static_cast<double>(hit->rect.x0)), scale.time(static_cast<double>(hit->rect.x1)) + 1}, 0.4));
}

void TimelineView::leaveEvent(QEvent*) {
  hover_timer_.stop();
  if (card_) card_.reset(), update();
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event) {
  const int lane = lane_at(model_->lanes(), event->pos().y() - geometry_.top() + geometry_.scroll);
  if (event->pos().y() < geometry_.top() || lane < 0) return;
  card_.reset();
  emit laneMenuWanted(model_->lanes()[static_cast<size_t>(lane)].key, event->globalPos());
}

void TimelineView::overviewTo(int x) {
  const double width_px = std::max(1, width() - geometry_.gutter - 14);
  const TimeScale scale{overview_range_, static_cast<double>(geometry_.gutter), width_px};
  setRange(centred(model_->range(), scale.time(x)));
}

void TimelineView::click(QPoint at, Qt::KeyboardModifiers) {
  const int index =
      at.y() < geometry_.top() ? -1 : lane_at(model_->lanes(), at.y() - geometry_.top() + geometry_.scroll);
  if (index >= 0 && model_->lanes()[static_cast<size_t>(index)].kind == LaneKind::Group)
    return model_->toggleFolded(model_->lanes()[static_cast<size_t>(index)].key);
  const auto hit = hitAt(at);
  if (!hit) return clearSelection();
  const Lane& lane = model_->lanes()[static_cast<size_t>(hit->lane)];
  if (hit->rect.count > 1) return setRange(zoomed(model_->range(), geometry_.scale().time(at.x()), 0.2));
  if (lane.gpu_steps) {  // no span of the trace: the range of that step, summed
    const prof::TimeNs offset = model_->offset(lane.run);
    return selectRange({hit->rect.span.start - offset, hit->rect.span.end() - offset});
  }
  selected_.reset();
  selection_->chooseRanges({});
  selection_->choose(SpanChoice{model_->run(lane.run), hit->track, hit->rect.span});
}

void TimelineView::hover(QPoint at) {
  const auto hit = hitAt(at);
  card_.reset();
  if (hit) {
    const Lane& lane = model_->lanes()[static_cast<size_t>(hit->lane)];
    const prof::Trace& trace = model_->traceOf(lane);
    const TimeScale scale{model_->runRange(lane.run, geometry_.range), 0, geometry_.scale().width};
    const TimeRange column{scale.time(static_cast<double>(hit->rect.x0)),
                           scale.time(static_cast<double>(hit->rect.x1)) + 1};
    card_ = hit->rect.count > 1 ? folded_card(trace, hit->track, hit->rect, column)
                                : span_card(trace, hit->track, hit->rect.span, model_->run(lane.run)->device);
    card_lane_ = hit->box;
  }
  update();
}

int TimelineView::markAt(QPoint at) const {
  if (at.y() < TimelineGeometry::kOverview || at.y() > geometry_.top()) return -1;
  for (size_t i = 0; i < model_->marks().size(); ++i)
    if (std::abs(geometry_.scale().x(model_->marks()[i].time) + 8 - at.x()) < 14) return static_cast<int>(i);
  return -1;
}

}  // namespace ws::app
