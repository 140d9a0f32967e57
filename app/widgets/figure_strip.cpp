#include "app/widgets/figure_strip.h"

#include <QPainter>

#include "app/widgets/theme.h"

namespace ws::app {

FigureStrip::FigureStrip(QWidget* parent) : QWidget(parent) { setFixedHeight(58); }

void FigureStrip::setFigures(std::vector<Figure> figures) {
  figures_ = std::move(figures);
  QStringList words;
  for (const Figure& f : figures_) words << f.name + " " + f.value + " " + f.note;
  setAccessibleName(words.join(", "));
  update();
}

void FigureStrip::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.fillRect(rect(), t.base);
  painter.setPen(t.border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
  double x = 18;
  const QFont small = ui_font(11), big = ui_font(17, 600);
  for (const Figure& figure : figures_) {
    const double width =
        std::max({QFontMetricsF(small).horizontalAdvance(figure.name),
                  number_width(big, figure.value) + 6 + QFontMetricsF(small).horizontalAdvance(figure.note), 60.0});
    if (x + width > this->width()) break;
    painter.setFont(small);
    painter.setPen(t.quiet);
    painter.drawText(QRectF(x, 9, width + 4, 16), Qt::AlignVCenter, figure.name);
    painter.drawText(QRectF(x + number_width(big, figure.value) + 6, 30, width + 20, 18), Qt::AlignVCenter,
                     figure.note);
    painter.setFont(big);
    painter.setPen(t.text);
    draw_number(painter, QRectF(x, 26, width, 24), Qt::AlignLeft | Qt::AlignVCenter, figure.value);
    x += width + 18;
    painter.fillRect(QRectF(x, 10, 1, height() - 20), t.border);
    x += 18;
  }
}

}  // namespace ws::app
