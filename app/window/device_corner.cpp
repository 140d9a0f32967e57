#include "app/window/device_corner.h"

#include <QPainter>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

QString device_text(const DeviceInfo* info, bool compact) {
  if (!info) return QObject::tr("looking for a GPU…");
  const QString name = QString::fromStdString(info->name);
  if (!info->cuda)
    return compact ? QObject::tr("this machine: CPU") : QObject::tr("this machine: CPU, %1 threads, no GPU").arg(info->cpu_threads);
  if (compact) return name;
  return QObject::tr("%1 · %2 SMs · %3 · driver %4 · CUDA %5")
      .arg(name)
      .arg(info->multiprocessors)
      .arg(bytes_text(static_cast<double>(info->memory_bytes)), QString::fromStdString(info->driver),
           QString::fromStdString(info->runtime));
}

}  // namespace

DeviceCorner::DeviceCorner(QWidget* parent) : QWidget(parent) { setFixedHeight(26); }

void DeviceCorner::show(const DeviceInfo* info, bool compact) {
  showText(device_text(info, compact), info && info->cuda);
}

void DeviceCorner::showText(const QString& text, bool good) {
  text_ = text, good_ = good;
  setAccessibleName(tr("Device"));
  setAccessibleDescription(text_);
  setToolTip(text_);
  setFixedWidth(static_cast<int>(QFontMetricsF(ui_font(12)).horizontalAdvance(text_)) + 30);
  update();
}

void DeviceCorner::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), theme().header);
  painter.fillRect(QRect(0, height() - 1, width(), 1), theme().border);
  painter.setPen(Qt::NoPen);
  painter.setBrush(good_ ? theme().better : theme().quiet);
  painter.drawEllipse(QPointF(8, height() / 2.0), 3.5, 3.5);
  painter.setFont(ui_font(12));
  painter.setPen(theme().secondary);
  painter.drawText(QRect(18, 0, width() - 18, height()), Qt::AlignVCenter, text_);
}

}  // namespace ws::app
