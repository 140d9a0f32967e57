#include "app/pages/kernel_editor/occupancy_view.h"

#include <QPainter>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {
constexpr int kColumns = 16;
constexpr double kSpace = 2;
}  // namespace

OccupancyView::OccupancyView(QWidget* parent) : QWidget(parent) { setAccessibleName(tr("Warps that fit into a multiprocessor")); }

void OccupancyView::setOccupancy(const std::optional<own::Occupancy>& occupancy) {
  occupancy_ = occupancy;
  setAccessibleDescription(occupancy ? tr("%1 of %2 warps").arg(occupancy->warps).arg(occupancy->most_warps) : QString());
  update();
}

void OccupancyView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (!occupancy_) {
    painter.setPen(theme().quiet);
    painter.setFont(ui_font(12.5));
    return painter.drawText(rect(), Qt::AlignCenter, tr("A build fills this."));
  }
  const int rows = (occupancy_->most_warps + kColumns - 1) / kColumns;
  const double wide = (width() - kSpace) / kColumns, high = std::min(wide, static_cast<double>(height()) / std::max(1, rows));
  for (int warp = 0; warp < occupancy_->most_warps; ++warp) {
    const QRectF cell(warp % kColumns * wide + kSpace / 2, warp / kColumns * high + kSpace / 2, wide - kSpace, high - kSpace);
    painter.fillRect(cell, warp < occupancy_->warps ? theme().of(prof::Meaning::Pointwise) : theme().header);
    painter.setPen(theme().border);
    painter.drawRect(cell);
  }
}

}  // namespace ws::app
