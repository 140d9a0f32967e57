#include "app/pages/ranks/rank_figure_view.h"

#include <QPainter>

#include "app/report/drawing_painter.h"
#include "app/widgets/theme.h"

namespace ws::app {

RankFigureView::RankFigureView(const QString& name, QSize least, QWidget* parent) : QWidget(parent), least_(least) {
  setAccessibleName(name);
}

void RankFigureView::setFigure(Make make) {
  make_ = std::move(make);
  update();
}

void RankFigureView::render(QPainter& painter, const QRectF& area) const {
  painter.fillRect(area, theme().base);
  if (make_) paint_drawing(painter, make_(area.width(), area.height(), window_ink()), area.topLeft(), 1);
}

void RankFigureView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
}

}  // namespace ws::app
