#include "app/widgets/segmented_row.h"

#include <QButtonGroup>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPainter>
#include <utility>

#include "app/widgets/theme.h"

namespace ws::app {

Segment::Segment(const QString& value, const QString& label, QWidget* parent) : QAbstractButton(parent), value_(value) {
  setText(label);
  setCheckable(true);
  setFocusPolicy(Qt::StrongFocus);
  setFont(ui_font(12));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  const auto width = [&](double px) { return static_cast<int>(QFontMetricsF(ui_font(px, 600)).horizontalAdvance(label)); };
  wanted_width_ = width(12) + 10;
  least_width_ = width(11) + 4;
}

void Segment::setBlocked(bool blocked) {
  if (blocked_ == blocked) return;
  blocked_ = blocked;
  update();
}

void Segment::setOther(bool other) {
  if (std::exchange(other_, other) != other) update();
}

void Segment::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF box = QRectF(rect()).adjusted(first_ ? 1 : 0, 1, last_ ? -1 : 0, -1);
  if (isChecked()) {
    painter.fillRect(box, t.chosen);
    painter.fillRect(QRectF(box.left(), box.bottom() - 2, box.width(), 2), t.focus);
  } else if (underMouse() && !blocked_) {
    painter.fillRect(box, t.grid);
  }
  if (!last_) painter.fillRect(QRectF(width() - 1, 1, 1, height() - 2), t.border);
  const bool tight = QFontMetricsF(ui_font(12, isChecked() ? 600 : 400)).horizontalAdvance(text()) + 6 > width();
  painter.setFont(ui_font(tight ? 11 : 12, isChecked() ? 600 : 400));
  QColor ink = blocked_ && !isChecked() ? t.quiet : (isChecked() ? t.text : t.secondary);
  if (blocked_ && !isChecked()) ink.setAlphaF(0.75F);
  painter.setPen(ink);
  painter.drawText(box, Qt::AlignCenter, text());
  if (other_ && !isChecked()) {
    painter.setPen(QPen(t.secondary, 1, Qt::DashLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(1.5, 1.5, -2.5, -1.5));
  }
  if (hasFocus()) {
    painter.setPen(QPen(t.focus, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 2, 2);
  }
}

void Segment::enterEvent(QEnterEvent*) {
  update();
  emit hovered(value_);
}
void Segment::leaveEvent(QEvent*) {
  update();
  emit left();
}
void Segment::focusInEvent(QFocusEvent* event) {
  QAbstractButton::focusInEvent(event);
  emit hovered(value_);
}
void Segment::focusOutEvent(QFocusEvent* event) {
  QAbstractButton::focusOutEvent(event);
  emit left();
}
// The button group also calls this, to switch off the previous value.
void Segment::nextCheckState() {
  if (isChecked() || !blocked_) QAbstractButton::nextCheckState();
}

SegmentedRow::SegmentedRow(const QString& name, const std::vector<Value>& values, QWidget* parent)
    : QWidget(parent), name_(name), group_(new QButtonGroup(this)) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  group_->setExclusive(true);
  for (const Value& value : values) {
    auto* segment = new Segment(value.name, value.label, this);
    segment->setAccessibleName(name + ": " + value.name);
    segment->setExplanation(value.explain);
    segment->installEventFilter(this);
    group_->addButton(segment);
    row->addWidget(segment, segment->sizeHint().width());
    connect(segment, &Segment::hovered, this, &SegmentedRow::hovered);
    connect(segment, &Segment::left, this, [this] { emit hovered({}); });
    connect(segment, &QAbstractButton::clicked, this, [this, segment] {
      if (!segment->blocked()) emit picked(segment->value());
    });
    segments_.push_back(segment);
  }
  if (!segments_.empty()) {
    segments_.front()->setEnds(true, segments_.size() == 1);
    segments_.back()->setEnds(segments_.size() == 1, true);
  }
  setAccessibleName(name);
  setFixedHeight(23);
}

QString SegmentedRow::value() const {
  auto* segment = static_cast<Segment*>(group_->checkedButton());
  return segment ? segment->value() : QString();
}

void SegmentedRow::setValue(const QString& value) {
  for (Segment* segment : segments_)
    if (segment->value() == value) segment->setChecked(true);
}

void SegmentedRow::setOther(const QString& value) {
  for (Segment* segment : segments_) segment->setOther(segment->value() == value);
}

void SegmentedRow::setBlocked(const QString& value, const QString& reason) {
  for (Segment* segment : segments_) {
    if (segment->value() != value) continue;
    segment->setBlocked(!reason.isEmpty());
    const QString said = reason.isEmpty() ? segment->explanation() : reason + "\n" + segment->explanation();
    segment->setAccessibleDescription(said.trimmed());
    segment->setToolTip(said.trimmed());
  }
}

void SegmentedRow::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(theme().strong_border, 1));
  painter.setBrush(theme().dark() ? theme().header : theme().button);
  painter.drawRoundedRect(QRectF(rect()).adjusted(.5, .5, -.5, -.5), 3, 3);
}

// Arrow keys move over every value, also blocked ones, so that keyboard users can read the reason.
bool SegmentedRow::eventFilter(QObject* object, QEvent* event) {
  if (event->type() != QEvent::KeyPress) return QWidget::eventFilter(object, event);
  const int key = static_cast<QKeyEvent*>(event)->key();
  const int step = key == Qt::Key_Left ? -1 : key == Qt::Key_Right ? 1 : 0;
  if (step == 0) return QWidget::eventFilter(object, event);
  const auto at = std::find(segments_.begin(), segments_.end(), object) - segments_.begin();
  const auto to = at + step;
  if (to < 0 || to >= static_cast<std::ptrdiff_t>(segments_.size())) return true;
  Segment* segment = segments_[static_cast<size_t>(to)];
  segment->setFocus(Qt::OtherFocusReason);
  if (!segment->blocked()) segment->click();
  return true;
}

}  // namespace ws::app
