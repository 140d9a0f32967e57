// Paints what Svg writes. Qt's own renderer makes outlines of letters; here text stays text, also in a PDF.
#pragma once
#include <QSizeF>
#include <string>

class QPainter;
class QPointF;

namespace ws::app {

QSizeF svg_size(const std::string& svg);
void paint_svg(QPainter& painter, const std::string& svg, const QPointF& at, double scale = 1);

}  // namespace ws::app
