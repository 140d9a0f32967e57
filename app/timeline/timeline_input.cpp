#include "app/timeline/timeline_input.h"

#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <QWidget>
#include <cmath>

#include "app/workspace/rank_count.h"

namespace ws::app {
namespace {

constexpr int kRestMs = 150, kDragFrom = 4, kHandle = 5;
constexpr double kZoomStep = 1.25, kPanStep = 0.15;

// Uses key positions, so that W A S D are under the same fingers on every layout (evdev codes + 8).
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

int key_of(const QKeyEvent& event) {
  const QString platform = QGuiApplication::platformName();
  if (platform == "xcb" || platform.startsWith("wayland"))
    if (const int key = by_position(event.nativeScanCode())) return key;
  return event.key();
}

// True for letters that the timeline handles while it has the focus, instead of shortcuts of the window.
bool is_own_key(const QKeyEvent& event) {
  static constexpr int kOwn[] = {Qt::Key_W, Qt::Key_A,      Qt::Key_S,     Qt::Key_D,        Qt::Key_F,
                                 Qt::Key_M, Qt::Key_Period, Qt::Key_Comma, Qt::Key_Backspace};
  const bool plain = !(event.modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
  return plain && std::ranges::find(kOwn, key_of(event)) != std::end(kOwn);
}

// A column of several spans has its time on the path.
std::optional<prof::PathOfSpan> part_of(const prof::SpanPath& path, const TimelinePainter::Hit& hit, TimeRange column) {
  if (hit.rect.count == 1) return path.of(hit.track, hit.rect.span);
  const auto ns = path.on_path(hit.track, column);
  return ns ? std::optional(prof::PathOfSpan{*ns, column.length(), prof::kNoSlack}) : std::nullopt;
}

}  // namespace

TimelineInput::TimelineInput(QWidget* surface, TimelineModel* model, TimelineViewport* viewport,
                             TimelineOverlay* overlay, TimelineSearch* search)
    : surface_(surface), model_(model), viewport_(viewport), overlay_(overlay), search_(search) {
  surface->installEventFilter(this);
}

bool TimelineInput::eventFilter(QObject*, QEvent* event) {
  switch (event->type()) {
    case QEvent::ShortcutOverride:
      if (!is_own_key(*static_cast<QKeyEvent*>(event))) return false;
      event->accept();
      return true;
    case QEvent::KeyPress:
      return keyPress(*static_cast<QKeyEvent*>(event));
    case QEvent::Wheel:
      wheel(*static_cast<QWheelEvent*>(event));
      return true;
    case QEvent::MouseButtonPress:
      press(*static_cast<QMouseEvent*>(event));
      return true;
    case QEvent::MouseMove:
      moveTo(static_cast<QMouseEvent*>(event)->pos());
      return true;
    case QEvent::MouseButtonRelease:
      release(*static_cast<QMouseEvent*>(event));
      return true;
    case QEvent::MouseButtonDblClick:
      zoomTo(static_cast<QMouseEvent*>(event)->pos());
      return true;
    case QEvent::ContextMenu:
      askForMenu(*static_cast<QContextMenuEvent*>(event));
      return true;
    case QEvent::Leave:
      rest_timer_.stop();
      hideCard();
      model_->cursor()->leave();
      return false;
    default:
      return false;
  }
}

void TimelineInput::hideCard() {
  if (overlay_->hideCard()) surface_->update();
}

bool TimelineInput::moveKey(int key, Qt::KeyboardModifiers modifiers) {
  const double much = modifiers & Qt::ShiftModifier ? 3 : 1;
  switch (key) {
    case Qt::Key_W:
      viewport_->zoomBy(std::pow(1 / kZoomStep, much));
      return true;
    case Qt::Key_S:
      viewport_->zoomBy(std::pow(kZoomStep, much));
      return true;
    case Qt::Key_A:
    case Qt::Key_Left:
      viewport_->panBy(-kPanStep * much);
      return true;
    case Qt::Key_D:
    case Qt::Key_Right:
      viewport_->panBy(kPanStep * much);
      return true;
    case Qt::Key_Up:
      viewport_->setScroll(geometry().scroll - 30);
      return true;
    case Qt::Key_Down:
      viewport_->setScroll(geometry().scroll + 30);
      return true;
    case Qt::Key_PageUp:
      viewport_->setScroll(geometry().scroll - geometry().plot().height());
      return true;
    case Qt::Key_PageDown:
      viewport_->setScroll(geometry().scroll + geometry().plot().height());
      return true;
    default:
      return false;
  }
}

bool TimelineInput::commandKey(const QKeyEvent& event) {
  switch (event.key()) {
    case Qt::Key_F:
      viewport_->fit();
      return true;
    case Qt::Key_Period:
      search_->nextSame(true);
      return true;
    case Qt::Key_Comma:
      search_->nextSame(false);
      return true;
    case Qt::Key_M:
      search_->addMark();
      return true;
    case Qt::Key_Backspace:
      viewport_->undo();
      return true;
    case Qt::Key_BracketRight:
      search_->nextMark(true);
      return true;
    case Qt::Key_BracketLeft:
      search_->nextMark(false);
      return true;
    case Qt::Key_Home:
      viewport_->setRange({model_->extent().begin, model_->extent().begin + model_->range().length()});
      return true;
    case Qt::Key_End:
      viewport_->setRange({model_->extent().end - model_->range().length(), model_->extent().end});
      return true;
    case Qt::Key_Escape:
      if (!overlay_->hideCard() && !viewport_->anythingChosen()) return false;
      viewport_->clearSelection();
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (const auto jump = overlay_->jump())
        search_->goTo(jump->run, jump->to);
      else
        click(pointer_);
      return true;
    default:
      return false;
  }
}

bool TimelineInput::keyPress(const QKeyEvent& event) {
  const auto modifiers =
      event.modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::ShiftModifier | Qt::MetaModifier);
  if (modifiers == Qt::AltModifier && event.key() == Qt::Key_Left) {
    viewport_->undo();
    return true;
  }
  if (modifiers == Qt::AltModifier && event.key() == Qt::Key_Right) {
    viewport_->redo();
    return true;
  }
  if (modifiers & ~Qt::ShiftModifier) return false;
  return moveKey(key_of(event), modifiers) || commandKey(event);
}

void TimelineInput::wheel(QWheelEvent& event) {
  const QPoint turn = event.angleDelta();
  const int along = turn.y() != 0 ? turn.y() : turn.x();
  if (event.modifiers() & Qt::ControlModifier) {
    const prof::TimeNs anchor = geometry().scale().time(std::max<double>(geometry().gutter, event.position().x()));
    viewport_->setRange(zoomed(model_->range(), anchor, std::pow(0.8, along / 120.0)));
  } else if (event.modifiers() & (Qt::ShiftModifier | Qt::AltModifier) || (turn.x() != 0 && turn.y() == 0)) {
    viewport_->panBy(-along / 120.0 * 0.1);
  } else {
    viewport_->setScroll(geometry().scroll - along / 2);
  }
  event.accept();
}

void TimelineInput::press(const QMouseEvent& event) {
  surface_->setFocus(Qt::MouseFocusReason);
  pressed_ = pointer_ = event.pos();
  rest_timer_.stop();  // no card comes up during a drag
  overlay_->hideCard();
  range_at_press_ = model_->range();
  scroll_at_press_ = geometry().scroll;
  anchor_ = geometry().scale().time(pressed_.x());
  drag_ = Drag::None;
  if (event.button() == Qt::MiddleButton ||
      (event.button() == Qt::LeftButton && event.modifiers() & Qt::ShiftModifier)) {
    drag_ = Drag::Pan;
    surface_->setCursor(Qt::ClosedHandCursor);
    return;
  }
  if (event.button() != Qt::LeftButton) return;
  if (pressed_.y() < TimelineGeometry::kOverview) {
    drag_ = Drag::Overview;
    return overviewTo(pressed_.x());
  }
  if (std::abs(pressed_.x() - geometry().gutter) <= 3) {
    drag_ = Drag::Gutter;
    return;
  }
  if (overlay_->onJumpArrow(pressed_)) return search_->goTo(overlay_->jump()->run, overlay_->jump()->to);
  if (const int mark = overlay_->markAt(pressed_); mark >= 0) return emit noteWanted(mark);
  drag_ = onHandle(pressed_).value_or(Drag::Press);
}

std::optional<TimelineInput::Drag> TimelineInput::onHandle(QPoint at) const {
  const auto& selected = viewport_->selected();
  if (!selected) return std::nullopt;
  const TimeScale scale = geometry().scale();
  if (std::abs(scale.x(selected->begin) - at.x()) <= kHandle) return Drag::RangeBegin;
  if (std::abs(scale.x(selected->end) - at.x()) <= kHandle) return Drag::RangeEnd;
  return std::nullopt;
}

void TimelineInput::dragTo(QPoint at) {
  const TimeScale scale = geometry().scale();
  const TimeRange selected = viewport_->selected().value_or(TimeRange{});
  const prof::TimeNs time = scale.time(std::clamp(at.x(), geometry().gutter, geometry().size.width()));
  switch (drag_) {
    case Drag::Press:
      if ((at - pressed_).manhattanLength() < kDragFrom) return;
      if (pressed_.x() >= geometry().gutter) {
        drag_ = Drag::Range;
        return dragTo(at);
      }
      if (const int lane = lane_at(model_->lanes(), pressed_.y() - geometry().top() + geometry().scroll); lane >= 0) {
        drag_ = Drag::Lane, dragged_lane_ = model_->lanes()[static_cast<size_t>(lane)].key;
        surface_->setCursor(Qt::SizeVerCursor);
      }
      return;
    case Drag::Range:
      return viewport_->selectRange({std::min(anchor_, time), std::max(anchor_, time) + 1});
    case Drag::RangeBegin:
      return viewport_->selectRange({std::min(time, selected.end - 1), selected.end});
    case Drag::RangeEnd:
      return viewport_->selectRange({selected.begin, std::max(time, selected.begin + 1)});
    case Drag::Pan: {
      const auto by = static_cast<prof::TimeNs>((pressed_.x() - at.x()) * scale.ns_per_px());
      viewport_->setScroll(scroll_at_press_ + pressed_.y() - at.y());
      if (by != 0) viewport_->setRange({range_at_press_.begin + by, range_at_press_.end + by});
      return;
    }
    case Drag::Gutter:
      return viewport_->setGutter(at.x());
    case Drag::Overview:
      return overviewTo(at.x());
    case Drag::Lane: {
      const int target = lane_at(model_->lanes(), at.y() - geometry().top() + geometry().scroll);
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

void TimelineInput::moveTo(QPoint at) {
  pointer_ = at;
  if (drag_ != Drag::None) return dragTo(at);
  const bool on_edge = std::abs(at.x() - geometry().gutter) <= 3;
  surface_->setCursor(on_edge || onHandle(at) ? Qt::SplitHCursor : Qt::ArrowCursor);
  if (at.x() >= geometry().gutter && at.y() >= TimelineGeometry::kOverview)
    model_->cursor()->setCursor(geometry().scale().time(at.x()));
  hideCard();
  rest_timer_.start(kRestMs, this);
}

void TimelineInput::release(const QMouseEvent& event) {
  const Drag drag = std::exchange(drag_, Drag::None);
  surface_->setCursor(Qt::ArrowCursor);
  viewport_->endGesture();
  if (drag == Drag::Press && event.button() == Qt::LeftButton) click(event.pos());
}

void TimelineInput::zoomTo(QPoint at) {
  const auto hit = overlay_->hitAt(at);
  if (!hit) return;
  const TimeScale scale{geometry().range, 0, geometry().scale().width};
  viewport_->setRange(
      padded({scale.time(static_cast<double>(hit->rect.x0)), scale.time(static_cast<double>(hit->rect.x1)) + 1}, 0.4));
}

void TimelineInput::askForMenu(const QContextMenuEvent& event) {
  const int lane = geometry().laneAt(model_->lanes(), event.pos().y());
  if (lane < 0) return;
  overlay_->hideCard();
  emit laneMenuWanted(model_->lanes()[static_cast<size_t>(lane)].key, event.globalPos());
}

void TimelineInput::overviewTo(int x) {
  viewport_->setRange(centred(model_->range(), overlay_->overviewScale().time(x)));
}

void TimelineInput::click(QPoint at) {
  const int index = geometry().laneAt(model_->lanes(), at.y());
  if (index >= 0) {
    const Lane& lane = model_->lanes()[static_cast<size_t>(index)];
    const bool heading = lane.kind == LaneKind::Group || (lane.folded && at.x() < geometry().gutter);
    if (heading) return model_->toggleFolded(lane.key);
  }
  if (overlay_->foldBlockAt(at)) return;
  if (const auto layer = overlay_->layerAt(at)) return viewport_->selectRange(*layer);
  const auto hit = overlay_->hitAt(at);
  if (!hit) {
    overlay_->hideCard();
    return viewport_->clearSelection();
  }
  const Lane& lane = model_->lanes()[static_cast<size_t>(hit->lane)];
  if (hit->rect.count > 1) return viewport_->setRange(zoomed(model_->range(), geometry().scale().time(at.x()), 0.2));
  if (lane.gpu_steps) {  // no span of the trace: select the range of that step
    const prof::TimeNs offset = model_->offset(lane.run);
    return viewport_->selectRange({hit->rect.span.start - offset, hit->rect.span.end() - offset});
  }
  viewport_->chooseSpan(lane.run, hit->track, hit->rect.span);
}

void TimelineInput::showCard(QPoint at) {
  const auto hit = overlay_->hitAt(at);
  overlay_->hideCard();
  if (hit) {
    const Lane& lane = model_->lanes()[static_cast<size_t>(hit->lane)];
    const prof::Trace& trace = model_->traceOf(lane);
    const TimeScale scale{model_->runRange(lane.run, geometry().range), 0, geometry().scale().width};
    const TimeRange column{scale.time(static_cast<double>(hit->rect.x0)),
                           scale.time(static_cast<double>(hit->rect.x1)) + 1};
    const Run* run = model_->run(lane.run);
    const prof::SpanPath* path = lane.gpu_steps ? nullptr : model_->paths()->of(run);
    HoverCard card = hit->rect.count > 1 ? folded_card(trace, hit->track, hit->rect, column) : span_card(trace, hit->track, hit->rect.span, run->device, clock_error(*run));
    if (const auto part = path ? part_of(*path, *hit, column) : std::nullopt) add_path(card, *part);
    overlay_->showCard(std::move(card), hit->box, at);
  }
  surface_->update();
}

void TimelineInput::timerEvent(QTimerEvent*) {
  rest_timer_.stop();
  showCard(pointer_);
}

}  // namespace ws::app
