#include "app/report/svg_painter.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QXmlStreamReader>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

double number(const QXmlStreamAttributes& of, const char* name, double otherwise = 0) {
  return of.hasAttribute(QLatin1String(name)) ? of.value(QLatin1String(name)).toDouble() : otherwise;
}

QColor colour(const QXmlStreamAttributes& of, const char* name, const char* opacity) {
  const auto value = of.value(QLatin1String(name));
  if (value.isEmpty() || value == QLatin1String("none")) return Qt::transparent;
  QColor colour(value.toString());
  colour.setAlphaF(static_cast<float>(number(of, opacity, 1)));
  return colour;
}

QPen pen_of(const QXmlStreamAttributes& of) {
  const QColor ink = colour(of, "stroke", "stroke-opacity");
  if (ink.alpha() == 0) return Qt::NoPen;
  QPen pen(ink, number(of, "stroke-width", 1));
  QList<qreal> dashes;
  for (const QString& part : of.value(QLatin1String("stroke-dasharray")).toString().split(' ', Qt::SkipEmptyParts))
    dashes << part.toDouble() / pen.widthF();
  if (!dashes.isEmpty()) pen.setDashPattern(dashes);
  return pen;
}

void paint_rect(QPainter& painter, const QXmlStreamAttributes& of) {
  painter.setPen(pen_of(of));
  painter.setBrush(colour(of, "fill", "fill-opacity"));
  painter.drawRect(QRectF(number(of, "x"), number(of, "y"), number(of, "width"), number(of, "height")));
}

void paint_polyline(QPainter& painter, const QXmlStreamAttributes& of) {
  QPolygonF line;
  for (const QString& point : of.value(QLatin1String("points")).toString().split(' ', Qt::SkipEmptyParts))
    line << QPointF(point.section(',', 0, 0).toDouble(), point.section(',', 1, 1).toDouble());
  painter.setPen(pen_of(of));
  painter.setBrush(Qt::NoBrush);
  painter.drawPolyline(line);
}

void paint_text(QPainter& painter, const QXmlStreamAttributes& of, const QString& text) {
  QFont font = ui_font(11, static_cast<int>(number(of, "font-weight", 400)));
  font.setStyleStrategy(QFont::PreferNoShaping);  // other forms of a letter are not found by who searches the text
  font.setPointSizeF(number(of, "font-size", 11) * 72 / painter.device()->logicalDpiY());
  const double width = QFontMetricsF(font, painter.device()).horizontalAdvance(text);
  const auto anchor = of.value(QLatin1String("text-anchor"));
  const double left = anchor == QLatin1String("end") ? width : anchor == QLatin1String("middle") ? width / 2 : 0;
  painter.setFont(font);
  painter.setPen(colour(of, "fill", "fill-opacity"));
  painter.drawText(QPointF(number(of, "x") - left, number(of, "y")), text);
}

}  // namespace

QSizeF svg_size(const std::string& svg) {
  QXmlStreamReader xml(QString::fromStdString(svg));
  if (!xml.readNextStartElement()) return {};
  return {number(xml.attributes(), "width"), number(xml.attributes(), "height")};
}

void paint_svg(QPainter& painter, const std::string& svg, const QPointF& at, double scale) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.translate(at);
  painter.scale(scale, scale);
  QXmlStreamReader xml(QString::fromStdString(svg));
  while (!xml.atEnd()) {
    if (xml.readNext() != QXmlStreamReader::StartElement) continue;
    const QXmlStreamAttributes of = xml.attributes();
    if (xml.name() == QLatin1String("rect")) paint_rect(painter, of);
    if (xml.name() == QLatin1String("polyline")) paint_polyline(painter, of);
    if (xml.name() == QLatin1String("text")) paint_text(painter, of, xml.readElementText());
  }
  painter.restore();
}

}  // namespace ws::app
