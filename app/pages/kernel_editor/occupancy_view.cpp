#include "app/pages/kernel_editor/occupancy_view.h"

#include <QPainter>
#include <algorithm>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kBar = 14, kRow = 22, kNameWidth = 168, kNumberWidth = 76;

}  // namespace

OccupancyView::OccupancyView(QWidget* parent) : QWidget(parent) { setAccessibleName(tr("How much of the GPU the launch can use")); }

void OccupancyView::setOccupancy(const std::optional<own::Occupancy>& occupancy, int64_t blocks, int multiprocessors) {
  bars_.clear();
  if (occupancy && multiprocessors > 0) bars_.push_back({tr("multiprocessors with a block"), std::min<int64_t>(blocks, multiprocessors), multiprocessors});
  if (occupancy) bars_.push_back({tr("warps in a multiprocessor"), occupancy->warps, occupancy->most_warps});
  QStringList words;
  for (const Bar& bar : bars_) words << tr("%1: %2 of %3").arg(bar.name).arg(bar.used).arg(bar.all);
  setAccessibleDescription(words.join(QStringLiteral(", ")));
  update();
}

// A part that stays unused has the colour of a warning. Full bars are quiet: they do not say that the kernel is fast.
void OccupancyView::paintBar(QPainter& painter, const Bar& bar, double top) const {
  const Theme& t = theme();
  const QRectF line(0, top, width(), kBar), box = line.adjusted(kNameWidth, 0, -kNumberWidth, 0);
  painter.setPen(t.secondary);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, bar.name);
  painter.fillRect(box, t.header);
  const double share = static_cast<double>(bar.used) / static_cast<double>(std::max<int64_t>(1, bar.all));
  painter.fillRect(QRectF(box.topLeft(), QSizeF(box.width() * share, box.height())), bar.full() ? t.field_outline : t.worse);
  painter.setPen(t.border);
  painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
  painter.setPen(bar.full() ? t.text : t.worse);
  painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, tr("%1 of %2").arg(bar.used).arg(bar.all));
}

void OccupancyView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setFont(ui_font(bars_.empty() ? 12.5 : 11));
  if (bars_.empty()) {
    painter.setPen(theme().quiet);
    return painter.drawText(rect(), Qt::AlignCenter, tr("A build fills this."));
  }
  for (size_t i = 0; i < bars_.size(); ++i) paintBar(painter, bars_[i], kRow * static_cast<double>(i) + 3);
}

}  // namespace ws::app
