#include "app/pages/kernel_editor/occupancy_view.h"

#include <QPainter>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {
constexpr double kBar = 18;
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
  const QRectF bar(0.5, 0.5, width() - 1, std::min(kBar, height() - 1.0));
  painter.fillRect(bar, theme().header);
  painter.fillRect(QRectF(bar.topLeft(), QSizeF(bar.width() * occupancy_->share(), bar.height())), theme().of(prof::Meaning::Pointwise));
  painter.setPen(theme().border);
  painter.drawRect(bar);
}

}  // namespace ws::app
