#include "app/pages/lab/lab_chart_painter.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "app/pages/lab/lab_way_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kLabelStep = 28;
constexpr size_t kMostLabels = 18;

QPen dashed(const QColor& colour, double width, double on, double off) {
  QPen pen(colour, width);
  pen.setDashPattern({on / width, off / width});
  return pen;
}

// Label of a power of ten: "100 ns", "10 GFLOP/s".
QString tick_text(double value, LabAxis axis) {
  const auto text = [value](double unit, const char* name) {
    return QString::number(value / unit, 'g', 4) + " " + name;
  };
  if (axis == LabAxis::Time) {
    if (value < 0.99e-6) return text(1e-9, "ns");
    if (value < 0.99e-3) return text(1e-6, "µs");
    return value < 0.99 ? text(1e-3, "ms") : text(1, "s");
  }
  const bool flops = axis == LabAxis::Flops;
  if (value < 0.99e9) return text(1e6, flops ? "MFLOP/s" : "MB/s");
  if (value < 0.99e12) return text(1e9, flops ? "GFLOP/s" : "GB/s");
  return text(1e12, flops ? "TFLOP/s" : "TB/s");
}

}  // namespace

void LabChartPainter::paintGrid() {
  const Theme& t = theme();
  p_.setFont(ui_font(11));
  double last_y = 1e9;
  for (int decade = static_cast<int>(std::floor(f_.y0)); decade <= f_.y1; ++decade)
    for (int m = 1; m < 10; ++m) {
      const double value = std::pow(10.0, decade) * m, y = f_.at({1, value}).y();
      if (y < f_.plot.top() - 0.5 || y > f_.plot.bottom() + 0.5) continue;
      p_.setPen(m == 1 ? t.grid : t.minor_grid);
      p_.drawLine(QPointF(f_.plot.left(), y), QPointF(f_.plot.right(), y));
      if (m > 1 || last_y - y < 15) continue;
      last_y = y;
      p_.setPen(t.secondary);
      p_.drawText(QRectF(0, y - 8, f_.plot.left() - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                  tick_text(value, s_.axis));
    }
  double last = 1e9;
  for (const double size : s_.sizes() | std::views::reverse) {  // the largest size always has its label
    const double x = f_.at({size, 1}).x();
    p_.setPen(t.grid);
    p_.drawLine(QPointF(x, f_.plot.top()), QPointF(x, f_.plot.bottom()));
    if (last - x < 48) continue;
    last = x;
    p_.setPen(t.secondary);
    p_.drawText(QRectF(x - 40, f_.plot.bottom() + 4, 80, 16), Qt::AlignHCenter, lab_size_text(size));
  }
  p_.setPen(t.strong_border);
  p_.drawLine(f_.plot.bottomLeft(), f_.plot.bottomRight());
  p_.drawLine(f_.plot.topLeft(), f_.plot.bottomLeft());
  if (s_.compact) return;
  p_.setPen(t.secondary);
  p_.drawText(QRectF(f_.plot.left(), f_.plot.bottom() + 20, f_.plot.width(), 16), Qt::AlignHCenter, s_.sizeTitle());
}

void LabChartPainter::paintCurves() {
  for (const LabCurve& curve : s_.curves) paintCurve(curve);
  paintCeilings();
  if (!s_.compact) paintEndLabels();
}

void LabChartPainter::paintCurve(const LabCurve& curve) {
  QPen pen = lab_pen(curve.way, curve.pitfall ? 2.2 : 1.7);
  if (curve.earlier()) pen = dashed(lab_colour(curve.way), 1.4, 2.5, 2.5);
  if (!curve.spread.empty() && !curve.pitfall && !curve.earlier()) {
    QPolygonF band;
    for (size_t i = 0; i < curve.points.size(); ++i) band << f_.at({curve.points[i].x(), curve.spread[i].second});
    for (size_t i = curve.points.size(); i-- > 0;) band << f_.at({curve.points[i].x(), curve.spread[i].first});
    QColor fill = lab_colour(curve.way);
    fill.setAlphaF(0.13F);
    p_.setPen(Qt::NoPen);
    p_.setBrush(fill);
    p_.drawPolygon(band.intersected(QPolygonF(f_.plot)));
  }
  QPolygonF line;
  for (const QPointF& p : curve.points) line << f_.at(p);
  p_.setPen(pen);
  p_.setBrush(Qt::NoBrush);
  p_.drawPolyline(line);
  if (curve.pitfall && !s_.compact && !curve.earlier()) paintPitfall(curve);
  if (s_.compact && line.size() > 1) return;
  p_.setPen(QPen(lab_colour(curve.way), 1.4));
  p_.setBrush(theme().base);
  for (const QPointF& p : line) p_.drawEllipse(p, curve.earlier() ? 1.4 : 2.2, curve.earlier() ? 1.4 : 2.2);
}

// Writes under the curve what it does not measure.
void LabChartPainter::paintPitfall(const LabCurve& curve) {
  const QString text =
      (s_.clock == LabClock::Events ? QObject::tr("no sync, by the host's clock: only the launch, %1")
                                    : QObject::tr("no sync: reads only the launch, %1"))
          .arg(s_.valueText(curve.points[0].y()));
  p_.setFont(ui_font(11, 600));
  p_.setPen(lab_colour(curve.way));
  const double width = p_.fontMetrics().horizontalAdvance(text);
  const double middle = f_.at(curve.points[curve.points.size() / 2]).x();
  const double x =
      std::clamp(middle - width / 2, f_.plot.left() + 6, std::max(f_.plot.left() + 6, f_.plot.right() - width));
  double below = f_.plot.top();
  for (size_t i = 1; i < curve.points.size(); ++i) {
    const QPointF a = f_.at(curve.points[i - 1]), b = f_.at(curve.points[i]);
    if (b.x() > x && a.x() < x + width) below = std::max({below, a.y(), b.y()});
  }
  p_.drawText(QPointF(x, std::min(below + 17, f_.plot.bottom() - 4)), text);
}

// Paints labels at the line ends and moves them apart until none overlap.
void LabChartPainter::paintEndLabels() {
  struct Label {
    const LabCurve* curve;
    QPointF end;
    double y;
  };
  std::vector<Label> labels;
  for (const LabCurve& curve : s_.curves)
    if (!curve.earlier() || s_.curves.size() <= kMostLabels)
      labels.push_back({&curve, f_.at(curve.points.back()), f_.at(curve.points.back()).y()});
  std::ranges::sort(labels, {}, &Label::y);
  const double space = f_.plot.height() + 20;
  const double step = labels.empty() ? kLabelStep : std::min(kLabelStep, space / static_cast<double>(labels.size()));
  for (size_t i = 1; i < labels.size(); ++i) labels[i].y = std::max(labels[i].y, labels[i - 1].y + step);
  double limit = f_.plot.bottom() + 8;
  for (size_t i = labels.size(); i-- > 0; limit = labels[i].y - step) labels[i].y = std::min(labels[i].y, limit);
  for (const Label& label : labels) {
    const double x = f_.plot.right() + 16;
    const LabCurve& curve = *label.curve;
    QPen lead(lab_colour(curve.way), 1);
    if (label.end.x() < f_.plot.right() - 20) lead.setStyle(Qt::DotLine);
    p_.setPen(lead);
    p_.drawLine(label.end + QPointF(4, 0), QPointF(x - 3, label.y));
    p_.setPen(lab_colour(curve.way));
    p_.setFont(ui_font(11, 600));
    p_.drawText(QRectF(x, label.y - 14, kLabLabelWidth - 18, 15), Qt::AlignLeft | Qt::AlignVCenter,
                p_.fontMetrics().elidedText(curve.label, Qt::ElideRight, static_cast<int>(kLabLabelWidth - 18)));
    if (step < 24) continue;
    p_.setPen(theme().quiet);
    p_.setFont(ui_font(10.5));
    QString note =
        QObject::tr("%1 at %2").arg(s_.valueText(curve.points.back().y()), lab_size_text(curve.points.back().x()));
    if (!curve.end_note.isEmpty())
      note = QObject::tr("%1, %2").arg(s_.valueText(curve.points.back().y()), curve.end_note);
    p_.drawText(QRectF(x, label.y, kLabLabelWidth - 18, 14), Qt::AlignLeft | Qt::AlignVCenter,
                p_.fontMetrics().elidedText(note, Qt::ElideRight, static_cast<int>(kLabLabelWidth - 18)));
  }
}

void LabChartPainter::paintCeilings() {
  auto lines = s_.ceilingLines();
  std::ranges::sort(lines, std::greater{}, [](const auto& line) { return line.first; });
  double last = -100;
  for (const auto& [value, name] : lines) {
    const double y = f_.at({1, value}).y();
    if (y < f_.plot.top() || y > f_.plot.bottom()) continue;
    p_.setPen(dashed(theme().secondary, 1, 5, 3));
    p_.drawLine(QPointF(f_.plot.left(), y), QPointF(f_.plot.right(), y));
    p_.setFont(ui_font(10.5));
    const bool under = y - 4 - last < 13;  // the name of the line above is there
    last = under ? y + 12 : y - 4;
    const QString text =
        (s_.compact ? QObject::tr("%1: %2") : QObject::tr("%1, measured: %2")).arg(name, s_.valueText(value));
    QColor ground = theme().base;  // curves pass behind the text
    ground.setAlphaF(0.85F);
    p_.fillRect(QRectF(f_.plot.left() + 4, last - 10, p_.fontMetrics().horizontalAdvance(text) + 4, 13), ground);
    p_.drawText(QPointF(f_.plot.left() + 6, last), text);
  }
}

}  // namespace ws::app
