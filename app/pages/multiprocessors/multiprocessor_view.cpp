#include "app/pages/multiprocessors/multiprocessor_view.h"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/report/drawing_painter.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"
#include "app/widgets/tip.h"

namespace ws::app {
namespace {

constexpr double kStepsTop = 22, kStepsHigh = 28, kStepsArea = 60;  // above the picture

}  // namespace

MultiprocessorView::MultiprocessorView(QWidget* parent)
    : QWidget(parent), report_(std::make_shared<prof::MultiprocessorReport>()) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Multiprocessors over the time of a step"));
}

// Keeps the chosen step and bar if the new report still has them.
void MultiprocessorView::setReport(MultiprocessorReader::Report report) {
  const auto before = std::exchange(report_, std::move(report));
  size_t step = report_->typical;
  if (chosen_ && map_.step < before->steps.size()) {
    const prof::TimeNs begin = before->steps[map_.step].begin;
    const auto same = std::ranges::find(report_->steps, begin, &prof::InnerStep::begin);
    chosen_ = same != report_->steps.end();
    if (chosen_) step = static_cast<size_t>(same - report_->steps.begin());
  }
  if (!chosen_) bar_.reset();
  map_.step = step;
  if (bar_) bar_->step = static_cast<uint32_t>(step);
  layOut(QSizeF(size()));
}

void MultiprocessorView::chooseStep(size_t step) {
  if (step >= report_->steps.size()) return;
  chosen_ = true, map_.step = step;
  if (bar_ && bar_->step != step) bar_.reset();
  layOut(QSizeF(size()));
}

void MultiprocessorView::chooseBar(std::optional<prof::InnerBar> bar) {
  bar_ = bar;
  if (bar) return chooseStep(bar->step);
  update();
}

void MultiprocessorView::layOut(QSizeF size) {
  map_ = step_map(*report_, map_.step, size.width(), size.height() - kStepsArea);
  drawing_ = step_figure(*report_, map_, window_ink(), size.width());
  setAccessibleDescription(report_->any() ? text(prof::step_caption(*report_, map_.step)) : QString());
  update();
}

QRectF MultiprocessorView::boxOf(const prof::InnerBar& bar) const {
  const BarBox box = bar_box(*report_, map_, bar);
  return {box.x, box.y + kStepsArea, box.width, box.height};
}

std::optional<prof::InnerBar> MultiprocessorView::barAt(QPointF at) const {
  std::optional<prof::InnerBar> found;
  if (map_.rows.empty()) return found;
  for (const prof::InnerBar& bar : report_->bars_of(map_.step)) {
    const QRectF box = boxOf(bar).adjusted(-0.5, 0, 0.5, 0);
    if (box.contains(at) && (!found || bar.end - bar.begin <= found->end - found->begin)) found = bar;
  }
  return found;
}

QRectF MultiprocessorView::stepBox(size_t step) const {
  const auto count = static_cast<double>(report_->steps.size());
  const double wide = (map_.right - map_.left) / count, most = 2 * report_->step_us;
  const double high = std::clamp(report_->steps[step].us() / most, 0.03, 1.0) * kStepsHigh;
  return {map_.left + wide * static_cast<double>(step), kStepsTop + kStepsHigh - high, wide, high};
}

std::optional<size_t> MultiprocessorView::stepAt(QPointF at) const {
  if (!report_->any() || at.y() < 0 || at.y() > kStepsTop + kStepsHigh + 4 || at.x() < map_.left || at.x() >= map_.right)
    return std::nullopt;
  const double share = (at.x() - map_.left) / (map_.right - map_.left);
  return std::min(report_->steps.size() - 1, static_cast<size_t>(share * static_cast<double>(report_->steps.size())));
}

QString MultiprocessorView::tipAt(QPointF at) const {
  if (const auto step = stepAt(at)) {
    QString words = text(prof::step_caption(*report_, *step));
    for (const prof::LateEnd& late : report_->steps[*step].late) words += "\n" + text(prof::late_text(*report_, late));
    return words + "\n" + tr("Click: show this step.");
  }
  const auto bar = barAt(at);
  if (!bar) return {};
  QString words = text(prof::bar_text(*report_, *bar));
  for (const prof::LateEnd& late : report_->steps[map_.step].late)
    if (late.row == bar->row && late.part == bar->part) words += "\n" + text(prof::late_text(*report_, late));
  return words + "\n" + tr("Click: move the timeline here. Double-click: show the timeline.");
}

// Steps with a late multiprocessor have the colour of lateness. A bar at the top takes twice the median or more.
void MultiprocessorView::paintSteps(QPainter& painter) const {
  const Theme& t = theme();
  const size_t steps = report_->steps.size();
  for (size_t i = 0; i < steps; ++i) {
    QRectF box = stepBox(i);
    box.setWidth(std::max(1.0, box.width() - (box.width() >= 4 ? 1 : 0)));
    painter.fillRect(box, report_->steps[i].late.empty() ? t.of(prof::Meaning::Sync) : t.late);
  }
  painter.setPen(QPen(t.strong_border, 1));
  const double floor = kStepsTop + kStepsHigh + 0.5;
  painter.drawLine(QPointF(map_.left, floor), QPointF(map_.right, floor));
  painter.setFont(ui_font(11));
  painter.setPen(t.quiet);
  painter.drawText(QRectF(10, kStepsTop, map_.left - 18, kStepsHigh), Qt::AlignLeft | Qt::AlignBottom, tr("step time"));
  const bool any_late = std::ranges::any_of(report_->steps, [](const auto& step) { return !step.late.empty(); });
  const QString key = any_late ? tr("a multiprocessor is late") : QString();
  const double key_width = any_late ? painter.fontMetrics().horizontalAdvance(key) + 26 : 0;
  const QRectF head(map_.left, 0, map_.right - map_.left, kStepsTop - 4);
  painter.drawText(head, Qt::AlignRight | Qt::AlignVCenter, key);
  if (any_late) painter.fillRect(QRectF(head.right() - key_width + 12, head.center().y() - 4.5, 9, 9), t.late);
  painter.setPen(t.text);
  painter.setFont(ui_font(12, 600));
  const double caption = head.width() - key_width;
  painter.drawText(QRectF(head.left(), head.top(), caption, head.height()), Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(text(prof::step_caption(*report_, map_.step)), Qt::ElideMiddle, static_cast<int>(caption)));
  const QRectF chosen = stepBox(map_.step);
  const double wide = std::max(5.0, chosen.width());
  painter.setPen(QPen(t.focus, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(chosen.center().x() - wide / 2 - 1, kStepsTop - 1, wide + 2, kStepsHigh + 3));
}

void MultiprocessorView::render(QPainter& painter, const QRectF& area) {
  const Theme& t = theme();
  painter.fillRect(area, t.base);
  if (!report_->any()) return;
  if (area.size() != QSizeF(size())) layOut(area.size());
  painter.save();
  painter.translate(area.topLeft());
  paintSteps(painter);
  paint_drawing(painter, drawing_, QPointF(0, kStepsArea));
  if (bar_ && bar_->step == map_.step) {
    painter.setPen(QPen(t.text, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(boxOf(*bar_).adjusted(-1, -1, 1, 1));
  }
  painter.restore();
  if (area.size() != QSizeF(size())) layOut(QSizeF(size()));
}

void MultiprocessorView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
  if (!hasFocus()) return;
  painter.setPen(QPen(theme().focus, 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void MultiprocessorView::pick(const std::optional<prof::InnerBar>& bar) {
  if (!bar) return;
  chooseBar(bar);
  emit barChosen(*bar);
}

void MultiprocessorView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (const auto step = stepAt(event->position())) return chooseStep(*step);
  pick(barAt(event->position()));
}

void MultiprocessorView::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton)) return;
  if (const auto step = stepAt(event->position())) chooseStep(*step);
}

void MultiprocessorView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto bar = barAt(event->position())) emit barOpened(*bar);
}

void MultiprocessorView::moveStep(int64_t to) {
  if (report_->any()) chooseStep(static_cast<size_t>(std::clamp<int64_t>(to, 0, std::ssize(report_->steps) - 1)));
}

void MultiprocessorView::keyPressEvent(QKeyEvent* event) {
  const auto step = static_cast<int64_t>(map_.step);
  switch (event->key()) {
    case Qt::Key_Left:
      return moveStep(step - 1);
    case Qt::Key_Right:
      return moveStep(step + 1);
    case Qt::Key_Home:
      return moveStep(0);
    case Qt::Key_End:
      return moveStep(std::ssize(report_->steps));
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (bar_) emit barOpened(*bar_);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void MultiprocessorView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) layOut(QSizeF(size()));
  QWidget::changeEvent(event);
}

bool MultiprocessorView::event(QEvent* event) {
  return showed_tip(event, this, [this](QPointF at) { return tipAt(at); }) || QWidget::event(event);
}

}  // namespace ws::app
