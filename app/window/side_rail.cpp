#include "app/window/side_rail.h"

#include <QPainter>
#include <QVBoxLayout>

#include "app/widgets/theme.h"

namespace ws::app {

RailButton::RailButton(const QString& name, bool left, QWidget* parent) : QAbstractButton(parent), left_(left) {
  setText(name);
  setCheckable(true);
  setAccessibleName(tr("Show %1").arg(name));
  setToolTip(tr("Show or hide %1").arg(name));
  setFocusPolicy(Qt::StrongFocus);
  setFixedSize(sizeHint());
}

QSize RailButton::sizeHint() const {
  return {24, static_cast<int>(QFontMetricsF(ui_font(12.5, 500)).horizontalAdvance(text())) + 20};
}

void RailButton::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  if (isChecked() || underMouse()) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(isChecked() ? t.chosen : t.button);
    painter.drawRoundedRect(rect(), 3, 3);
  }
  if (hasFocus()) {
    painter.setPen(QPen(t.focus, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 3, 3);
  }
  painter.setFont(ui_font(12.5, 500));
  painter.setPen(isChecked() ? t.text : t.secondary);
  painter.translate(left_ ? 0 : width(), left_ ? height() : 0);
  painter.rotate(left_ ? -90 : 90);
  painter.drawText(QRect(0, 0, height(), width()), Qt::AlignCenter, text());
}

SideRail::SideRail(bool left, QWidget* parent) : QWidget(parent), left_(left), column_(new QVBoxLayout(this)) {
  setFixedWidth(26);
  column_->setContentsMargins(1, 5, 1, 5);
  column_->setSpacing(4);
  column_->addStretch(1);
}

RailButton* SideRail::add(const QString& name) {
  auto* button = new RailButton(name, left_, this);
  column_->insertWidget(column_->count() - 1, button, 0, Qt::AlignHCenter);
  return button;
}

void SideRail::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().header);
  painter.fillRect(QRect(left_ ? width() - 1 : 0, 0, 1, height()), theme().border);
}

}  // namespace ws::app
