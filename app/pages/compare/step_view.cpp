#include "app/pages/compare/step_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr double kZoomStep = 1.25, kPanStep = 0.15;
constexpr int kDragFrom = 4, kFetchMs = 120;

}  // namespace

StepView::StepView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Timelines of the compared runs"));
  setAccessibleDescription(tr("W and S zoom, A and D pan, F fits; a drag selects a range in all runs."));
}

void StepView::setRuns(std::vector<Shown> runs) {
  const bool same =
      runs.size() == shown_.runs.size() && std::equal(runs.begin(), runs.end(), shown_.runs.begin(),
                                                [](const Shown& a, const Shown& b) { return a.run == b.run; });
  shown_.runs = std::move(runs);
  if (!same) by_hand_ = false, selected_.reset(), shown_.scroll = 0;
  align_runs();
}

void StepView::setAlign(StepAlign align, int64_t step) {
  shown_.align = align;
  shown_.step = step;
  by_hand_ = false;
  selected_.reset();
  align_runs();
}

void StepView::setTinted(bool on) {
  shown_.tinted = on;
  stale();
}

void StepView::align_runs() {
  shown_.at.assign(shown_.runs.size(), 0);
  shown_.windows.assign(shown_.runs.size(), {});
  for (size_t i = 0; i < shown_.runs.size(); ++i) {
    if (!shown_.runs[i].run) continue;
    const prof::Trace& marks = shown_.runs[i].run->marks();
    if (shown_.align == StepAlign::Median) shown_.windows[i] = shown_.runs[i].sample.median_step;
    if (shown_.align == StepAlign::Step || (shown_.align == StepAlign::Median && shown_.windows[i].end <= shown_.windows[i].begin))
      shown_.windows[i] = prof::step_window(marks, shown_.align == StepAlign::Step ? shown_.step : 0);
    if (shown_.align == StepAlign::Start) shown_.windows[i] = prof::step_window(marks, 0);
    shown_.at[i] = shown_.windows[i].begin;
  }
  shown_.most_bytes = painter_.memory().mostBytes();
  setTight();
  if (!by_hand_) fit();
  fetch_.start(kFetchMs, this);
  stale();
}

// The aligned step of the slowest run fills the width. If aligned at the start, about twelve steps do.
void StepView::fit() {
  prof::TimeNs longest = 0;
  for (const prof::StepWindowNs& window : shown_.windows) longest = std::max(longest, window.end - window.begin);
  if (longest <= 0) longest = 1'000'000;
  setRange({-longest / 100, longest * (shown_.align == StepAlign::Start ? 12 : 1) + longest / 50});
  by_hand_ = false;
}

void StepView::setRange(TimeRange range) {
  if (range.length() < kShortestRange || range.length() > kLongestRange) return;
  by_hand_ = true;
  if (range == shown_.range) return;
  shown_.range = range;
  fetch_.start(kFetchMs, this);
  stale();
  emit rangeChanged();
}

// Spans that are only in the run files are read once the range stops changing.
void StepView::timerEvent(QTimerEvent* event) {
  if (event->timerId() != fetch_.timerId()) return QWidget::timerEvent(event);
  bool more = false;
  for (size_t i = 0; i < shown_.runs.size(); ++i)
    if (shown_.runs[i].run) {
      const TimeRange wanted = shown_.runRange(i, shown_.range);
      if (wanted.length() < 10'000'000'000) more = shown_.runs[i].run->fetch(wanted.begin, wanted.end) || more;
    }
  if (more)
    stale();
  else
    fetch_.stop();
}

void StepView::stale() {
  stale_ = true;
  update();
}

prof::TimeNs StepView::timeAt(double x) const { return shown_.scaleOf(painter_.plotOf(rect())).time(x); }

void StepView::zoomBy(double factor) {
  const QRectF plot = painter_.plotOf(rect());
  const double at = cursor_ ? std::max(*cursor_, plot.left()) : plot.center().x();
  setRange(zoomed(shown_.range, timeAt(at), factor));
}

void StepView::panBy(double share) { setRange(panned(shown_.range, share)); }

void StepView::wheelEvent(QWheelEvent* event) {
  const QPoint turn = event->angleDelta();
  const int along = turn.y() != 0 ? turn.y() : turn.x();
  const bool scrolls = painter_.contentHeight() > height() && !(event->modifiers() & Qt::ControlModifier);
  if (event->modifiers() & (Qt::ShiftModifier | Qt::AltModifier) || (turn.x() != 0 && turn.y() == 0)) {
    panBy(-along / 120.0 * 0.1);
  } else if (scrolls) {
    shown_.scroll = std::clamp(shown_.scroll - along / 2.0, 0.0, painter_.contentHeight() - height());
    stale();
  } else {
    cursor_ = event->position().x();
    zoomBy(std::pow(0.8, along / 120.0));
  }
  event->accept();
}

void StepView::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  pressed_ = event->position();
  range_at_press_ = shown_.range;
  scroll_at_press_ = shown_.scroll;
  const bool pan = event->button() == Qt::MiddleButton ||
                   (event->button() == Qt::LeftButton && event->modifiers() & Qt::ShiftModifier);
  drag_ = pan ? Drag::Pan : event->button() == Qt::LeftButton ? Drag::Press : Drag::None;
  if (pan) setCursor(Qt::ClosedHandCursor);
}

void StepView::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  cursor_ = at.x();
  if (drag_ == Drag::Press && std::abs(at.x() - pressed_.x()) >= kDragFrom) drag_ = Drag::Select;
  if (drag_ == Drag::Select) {
    const prof::TimeNs a = timeAt(pressed_.x()), b = timeAt(at.x());
    selected_ = TimeRange{std::min(a, b), std::max(a, b) + 1};
  } else if (drag_ == Drag::Pan) {
    const auto by = static_cast<prof::TimeNs>((pressed_.x() - at.x()) * shown_.scaleOf(painter_.plotOf(rect())).ns_per_px());
    if (painter_.contentHeight() > height())
      shown_.scroll = std::clamp(scroll_at_press_ + pressed_.y() - at.y(), 0.0, painter_.contentHeight() - height());
    stale();
    setRange({range_at_press_.begin + by, range_at_press_.end + by});
  }
  update();
}

void StepView::mouseReleaseEvent(QMouseEvent*) {
  const Drag drag = std::exchange(drag_, Drag::None);
  unsetCursor();
  if (drag == Drag::Press) selected_.reset(), update();
  if (drag == Drag::Select) sumSelection();
}

// Sums up in one line what each run did in the selected time.
void StepView::sumSelection() {
  QStringList parts;
  for (size_t i = 0; i < shown_.runs.size() && selected_; ++i) {
    if (!shown_.runs[i].run) continue;
    const TimeRange range = shown_.runRange(i, *selected_);
    const prof::Breakdown sum = prof::breakdown(shown_.runs[i].run->trace, range.begin, range.end);
    const auto us = [&](prof::Meaning m) { return static_cast<double>(sum.times[static_cast<size_t>(m)]) * 1e-3; };
    parts << tr("%1: kernels %2, allocator calls %3, sync %4 µs")
                 .arg(run_letter(shown_.runs[i].run->slot))
                 .arg(us_text(static_cast<double>(sum.kernels()) * 1e-3), us_text(us(prof::Meaning::Allocation)),
                      us_text(us(prof::Meaning::Sync) - static_cast<double>(sum.inner_wait) * 1e-3));
  }
  if (selected_)
    emit said(
        tr("%1 selected · %2").arg(time_axis_text(static_cast<double>(selected_->length()) * 1e-3), parts.join(" · ")));
}

void StepView::mouseDoubleClickEvent(QMouseEvent*) { fit(); }

void StepView::keyPressEvent(QKeyEvent* event) {
  if (event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier))
    return QWidget::keyPressEvent(event);
  const double much = event->modifiers() & Qt::ShiftModifier ? 3 : 1;
  switch (event->key()) {
    case Qt::Key_W:
      return zoomBy(std::pow(1 / kZoomStep, much));
    case Qt::Key_S:
      return zoomBy(std::pow(kZoomStep, much));
    case Qt::Key_A:
    case Qt::Key_Left:
      return panBy(-kPanStep * much);
    case Qt::Key_D:
    case Qt::Key_Right:
      return panBy(kPanStep * much);
    case Qt::Key_F:
      return fit();
    case Qt::Key_Escape:
      selected_.reset();
      return update();
    default:
      QWidget::keyPressEvent(event);
  }
}

void StepView::leaveEvent(QEvent*) {
  cursor_.reset();
  update();
}

// If not everything fits, all rows become a little lower, and then fewer, before scrolling is needed.
void StepView::setTight() {
  shown_.tight = shown_.few = false;
  shown_.tight = painter_.contentHeight() > height();
  shown_.few = shown_.runs.size() > 1 && painter_.contentHeight() > height();
}

void StepView::resizeEvent(QResizeEvent*) {
  setTight();
  shown_.scroll = std::clamp(shown_.scroll, 0.0, std::max(0.0, painter_.contentHeight() - height()));
  stale_ = true;
}

void StepView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) stale();
  QWidget::changeEvent(event);
}

void StepView::paintSelection(QPainter& painter) const {
  if (!selected_) return;
  const QRectF plot = painter_.plotOf(rect());
  const TimeScale scale = shown_.scaleOf(plot);
  const double x0 = std::clamp(scale.x(selected_->begin), plot.left(), plot.right()),
               x1 = std::clamp(scale.x(selected_->end), plot.left(), plot.right());
  QColor fill = theme().focus;
  fill.setAlphaF(0.12F);
  painter.fillRect(QRectF(x0, plot.top(), x1 - x0, plot.height()), fill);
  painter.setPen(QPen(theme().focus, 1));
  for (double x : {x0, x1}) painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
}

void StepView::paintCursor(QPainter& painter) const {
  const QRectF plot = painter_.plotOf(rect());
  if (!cursor_ || *cursor_ < plot.left() || *cursor_ > plot.right()) return;
  QPen pen(theme().text, 1);
  pen.setDashPattern({3, 2});
  painter.setPen(pen);
  painter.drawLine(QPointF(*cursor_, plot.top()), QPointF(*cursor_, plot.bottom()));
  const QString text = time_axis_text(static_cast<double>(timeAt(*cursor_)) * 1e-3);
  painter.setFont(ui_font(11, 600));
  const double width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 12;
  const QRectF flag(std::clamp(*cursor_ - width / 2, 0.0, this->width() - width), 2, width, 18);
  painter.fillRect(flag, theme().text);
  painter.setPen(theme().base);
  painter.drawText(flag, Qt::AlignCenter, text);
}

void StepView::paintEvent(QPaintEvent*) {
  const qreal ratio = devicePixelRatioF();
  if (stale_ || picture_.size() != size() * ratio) {
    picture_ = QPixmap(size() * ratio);
    picture_.setDevicePixelRatio(ratio);
    QPainter painter(&picture_);
    painter_.render(painter, rect());
    stale_ = false;
  }
  QPainter painter(this);
  painter.drawPixmap(0, 0, picture_);
  if (shown_.runs.empty()) return;
  if (const double all = painter_.contentHeight(); all > height()) {  // there is more below: draw a scroll bar
    const double length = height() * height() / all, at = shown_.scroll / (all - height()) * (height() - length);
    painter.fillRect(QRectF(width() - 5, at, 4, length), theme().strong_border);
  }
  paintSelection(painter);
  paintCursor(painter);
}

}  // namespace ws::app
