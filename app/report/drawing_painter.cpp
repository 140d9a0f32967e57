#include "app/report/drawing_painter.h"

#include <QFontMetricsF>
#include <QPainter>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

QColor colour(const std::string& name, double opacity = 1) {
  if (name == "none") return Qt::transparent;
  QColor colour(QString::fromStdString(name));
  colour.setAlphaF(static_cast<float>(opacity));
  return colour;
}

void paint(QPainter& painter, const Drawing::Rect& r) {
  painter.setPen(r.stroke == "none" ? QPen(Qt::NoPen) : QPen(colour(r.stroke), 1));
  painter.setBrush(colour(r.fill, r.opacity));
  painter.drawRect(QRectF(r.x, r.y, r.width, r.height));
}

void paint(QPainter& painter, const Drawing::Line& l) {
  QPolygonF line;
  for (const auto& [x, y] : l.points) line << QPointF(x, y);
  QPen pen(colour(l.stroke, l.opacity), l.width);
  QList<qreal> dashes;
  for (const double length : l.dash) dashes << length / l.width;
  if (!dashes.isEmpty()) pen.setDashPattern(dashes);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawPolyline(line);
}

void paint(QPainter& painter, const Drawing::Text& t) {
  const QString text = QString::fromStdString(t.text);
  QFont font = ui_font(11, t.weight);
  font.setStyleStrategy(QFont::PreferNoShaping);  // text search does not find ligatures
  font.setPointSizeF(t.size * 72 / painter.device()->logicalDpiY());
  const double width = QFontMetricsF(font, painter.device()).horizontalAdvance(text);
  const double left = t.anchor == Anchor::End ? width : t.anchor == Anchor::Middle ? width / 2 : 0;
  painter.setFont(font);
  painter.setPen(colour(t.ink));
  painter.drawText(QPointF(t.x - left, t.y), text);
}

}  // namespace

void paint_drawing(QPainter& painter, const Drawing& drawing, const QPointF& at, double scale) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.translate(at);
  painter.scale(scale, scale);
  for (const auto& shape : drawing.shapes) std::visit([&](const auto& one) { paint(painter, one); }, shape);
  painter.restore();
}

FigureInk window_ink() {
  const Theme& t = theme();
  const auto rgb = [](const QColor& colour) { return colour.rgb() & 0xFFFFFF; };
  FigureInk ink{rgb(t.base),
                rgb(t.text),
                rgb(t.secondary),
                rgb(t.quiet),
                rgb(t.grid),
                rgb(t.strong_border),
                rgb(t.of(prof::Meaning::Sync)),
                rgb(t.late),
                rgb(t.of(prof::Meaning::Communication)),
                {}};
  for (size_t m = 0; m < prof::kMeanings; ++m) ink.meaning[m] = rgb(t.meaning[m]);
  return ink;
}

}  // namespace ws::app
