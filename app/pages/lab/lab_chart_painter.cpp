// How the laboratory's chart is painted: grid, curves and the labels at their ends.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/pages/lab/lab_chart.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr double kLabelWidth = 186, kLabelStep = 28;
constexpr size_t kMostLabels = 18;

QPen dashed(const QColor& colour, double width, double on, double off) {
  QPen pen(colour, width);
  pen.setDashPattern({on / width, off / width});
  return pen;
}

// Of a power of ten: "100 ns", "10 GFLOP/s".
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

QPointF LabChart::Frame::at(const QPointF& p) const {
  return {plot.left() + (std::log10(p.x()) - x0) / (x1 - x0) * plot.width(),
          plot.bottom() - (std::log10(p.y()) - y0) / (y1 - y0) * plot.height()};
}
double LabChart::Frame::sizeAt(double x) const {
  return std::pow(10, x0 + (x - plot.left()) / plot.width() * (x1 - x0));
}

LabChart::Frame LabChart::frame(const QRectF& area) const {
  Frame f;
  f.plot = area.adjusted(axis_ == LabAxis::Time ? 66 : 88, 10, compact_ ? -14 : -kLabelWidth, compact_ ? -24 : -38);
  double x0 = 1e300, x1 = 0, y0 = 1e300, y1 = 0;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points) {
      x0 = std::min(x0, p.x()), x1 = std::max(x1, p.x());
      y0 = std::min(y0, p.y()), y1 = std::max(y1, p.y());
    }
  if (curves_.empty())
    x0 = 16, x1 = 4096, y0 = axis_ == LabAxis::Time ? 1e-6 : 1e8, y1 = axis_ == LabAxis::Time ? 1 : 1e13;
  for (const auto& [value, name] : ceilings())
    if (value < 20 * y1) y1 = std::max(y1, value);  // a line that is near enough belongs into the picture
  f.x0 = std::log10(x0) - 0.03, f.x1 = std::log10(std::max(x1, x0 * 1.01)) + 0.03;
  f.y0 = std::floor(std::log10(y0) * 2 - 0.2) / 2, f.y1 = std::ceil(std::log10(y1) * 2 + 0.2) / 2;
  return f;
}

std::vector<std::pair<double, QString>> LabChart::ceilings() const {
  std::vector<std::pair<double, QString>> lines;
  const lab::Ceilings& c = ceilings_;
  if (axis_ == LabAxis::Flops) lines = {{c.fp32_flops_s, "fp32"}, {c.tf32_flops_s, "tf32"}, {c.fp16_flops_s, "fp16"}};
  if (axis_ == LabAxis::Bytes)
    lines = {{c.read_write_bytes_s, compact_ ? tr("memory") : tr("device memory")},
             {c.pinned_bytes_s, compact_ ? tr("pinned") : tr("pinned copy")}};
  std::erase_if(lines, [](const auto& line) { return line.first <= 0; });
  return lines;
}

void LabChart::paintGrid(QPainter& painter, const Frame& f) const {
  const Theme& t = theme();
  painter.setFont(ui_font(11));
  double last_y = 1e9;
  for (int decade = static_cast<int>(std::floor(f.y0)); decade <= f.y1; ++decade)
    for (int m = 1; m < 10; ++m) {
      const double value = std::pow(10.0, decade) * m, y = f.at({1, value}).y();
      if (y < f.plot.top() - 0.5 || y > f.plot.bottom() + 0.5) continue;
      painter.setPen(m == 1 ? t.grid : t.minor_grid);
      painter.drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
      if (m > 1 || last_y - y < 15) continue;
      last_y = y;
      painter.setPen(t.secondary);
      painter.drawText(QRectF(0, y - 8, f.plot.left() - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                       tick_text(value, axis_));
    }
  double last = -100;
  for (double size = 1; size < 1e13; size *= 2) {
    const double x = f.at({size, 1}).x();
    if (x < f.plot.left() - 0.5 || x > f.plot.right() + 0.5) continue;
    painter.setPen(t.grid);
    painter.drawLine(QPointF(x, f.plot.top()), QPointF(x, f.plot.bottom()));
    if (x - last < 48) continue;
    last = x;
    painter.setPen(t.secondary);
    painter.drawText(QRectF(x - 40, f.plot.bottom() + 4, 80, 16), Qt::AlignHCenter, lab_size_text(size));
  }
  painter.setPen(t.strong_border);
  painter.drawLine(f.plot.bottomLeft(), f.plot.bottomRight());
  painter.drawLine(f.plot.topLeft(), f.plot.bottomLeft());
  if (compact_) return;
  painter.setPen(t.secondary);
  painter.drawText(QRectF(f.plot.left(), f.plot.bottom() + 20, f.plot.width(), 16), Qt::AlignHCenter, sizeTitle());
}

QString LabChart::sizeTitle() const {
  if (shown_.empty()) return tr("size");
  const lab::LabSpec& spec = shown_[0].result.spec;
  if (spec.operation != lab::Operation::MatMul) return tr("N, elements");
  if (spec.m == 0 && spec.k == 0) return tr("N, side of the matrices");
  const auto side = [](int64_t n) { return n > 0 ? QString::number(n) : QString("N"); };
  return tr("N of a product %1 × %2 × N").arg(side(spec.m), side(spec.k));
}

void LabChart::paintCurve(QPainter& painter, const Frame& f, const LabCurve& curve) const {
  QPen pen = lab_pen(curve.way, curve.pitfall ? 2.2 : 1.7);
  if (curve.earlier()) pen = dashed(lab_colour(curve.way), 1.4, 2.5, 2.5);
  if (!curve.spread.empty() && !curve.pitfall && !curve.earlier()) {
    QPolygonF band;
    for (size_t i = 0; i < curve.points.size(); ++i) band << f.at({curve.points[i].x(), curve.spread[i].second});
    for (size_t i = curve.points.size(); i-- > 0;) band << f.at({curve.points[i].x(), curve.spread[i].first});
    QColor fill = lab_colour(curve.way);
    fill.setAlphaF(0.13F);
    painter.setPen(Qt::NoPen);
    painter.setBrush(fill);
    painter.drawPolygon(band.intersected(QPolygonF(f.plot)));
  }
  QPolygonF line;
  for (const QPointF& p : curve.points) line << f.at(p);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawPolyline(line);
  if (curve.pitfall && !compact_ && !curve.earlier()) paintPitfall(painter, f, curve);
  if (compact_ && line.size() > 1) return;
  painter.setPen(QPen(lab_colour(curve.way), 1.4));
  painter.setBrush(theme().base);
  for (const QPointF& p : line) painter.drawEllipse(p, curve.earlier() ? 1.4 : 2.2, curve.earlier() ? 1.4 : 2.2);
}

// Under the curve itself: what it is not.
void LabChart::paintPitfall(QPainter& painter, const Frame& f, const LabCurve& curve) const {
  const QString text = (clock_ == LabClock::Events ? tr("not synchronised, by the host's clock: only the launch, %1")
                                                   : tr("not synchronised: reads only the launch, %1"))
                           .arg(valueText(curve.points[0].y()));
  painter.setFont(ui_font(11, 600));
  painter.setPen(lab_colour(curve.way));
  const double width = painter.fontMetrics().horizontalAdvance(text);
  const double middle = f.at(curve.points[curve.points.size() / 2]).x();
  const double x =
      std::clamp(middle - width / 2, f.plot.left() + 6, std::max(f.plot.left() + 6, f.plot.right() - width));
  double below = f.plot.top();
  for (size_t i = 1; i < curve.points.size(); ++i) {
    const QPointF a = f.at(curve.points[i - 1]), b = f.at(curve.points[i]);
    if (b.x() > x && a.x() < x + width) below = std::max({below, a.y(), b.y()});
  }
  painter.drawText(QPointF(x, std::min(below + 17, f.plot.bottom() - 4)), text);
}

// Labels stand at the line ends, pushed apart until none overlap.
void LabChart::paintEndLabels(QPainter& painter, const Frame& f) const {
  struct Label {
    const LabCurve* curve;
    QPointF end;
    double y;
  };
  std::vector<Label> labels;
  for (const LabCurve& curve : curves_)
    if (!curve.earlier() || curves_.size() <= kMostLabels)
      labels.push_back({&curve, f.at(curve.points.back()), f.at(curve.points.back()).y()});
  std::ranges::sort(labels, {}, &Label::y);
  const double room = f.plot.height() + 20;
  const double step = labels.empty() ? kLabelStep : std::min(kLabelStep, room / static_cast<double>(labels.size()));
  for (size_t i = 1; i < labels.size(); ++i) labels[i].y = std::max(labels[i].y, labels[i - 1].y + step);
  double limit = f.plot.bottom() + 8;
  for (size_t i = labels.size(); i-- > 0; limit = labels[i].y - step) labels[i].y = std::min(labels[i].y, limit);
  for (const Label& label : labels) {
    const double x = f.plot.right() + 16;
    const LabCurve& curve = *label.curve;
    QPen lead(lab_colour(curve.way), 1);
    if (label.end.x() < f.plot.right() - 20) lead.setStyle(Qt::DotLine);
    painter.setPen(lead);
    painter.drawLine(label.end + QPointF(4, 0), QPointF(x - 3, label.y));
    painter.setPen(lab_colour(curve.way));
    painter.setFont(ui_font(11, 600));
    painter.drawText(QRectF(x, label.y - 14, kLabelWidth - 18, 15), Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(curve.label, Qt::ElideRight, static_cast<int>(kLabelWidth - 18)));
    if (step < 24) continue;
    painter.setPen(theme().quiet);
    painter.setFont(ui_font(10.5));
    QString note = tr("%1 at %2").arg(valueText(curve.points.back().y()), lab_size_text(curve.points.back().x()));
    if (!curve.end_note.isEmpty()) note = tr("%1, %2").arg(valueText(curve.points.back().y()), curve.end_note);
    painter.drawText(QRectF(x, label.y, kLabelWidth - 18, 14), Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(note, Qt::ElideRight, static_cast<int>(kLabelWidth - 18)));
  }
}

void LabChart::paintCeilings(QPainter& painter, const Frame& f) const {
  auto lines = ceilings();
  std::ranges::sort(lines, std::greater{}, [](const auto& line) { return line.first; });
  double last = -100;
  for (const auto& [value, name] : lines) {
    const double y = f.at({1, value}).y();
    if (y < f.plot.top() || y > f.plot.bottom()) continue;
    painter.setPen(dashed(theme().secondary, 1, 5, 3));
    painter.drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
    painter.setFont(ui_font(10.5));
    const bool under = y - 4 - last < 13;  // the line above has its name there
    last = under ? y + 12 : y - 4;
    const QString text = (compact_ ? tr("%1: %2") : tr("%1, measured: %2")).arg(name, valueText(value));
    QColor ground = theme().base;  // curves pass behind
    ground.setAlphaF(0.85F);
    painter.fillRect(QRectF(f.plot.left() + 4, last - 10, painter.fontMetrics().horizontalAdvance(text) + 4, 13),
                     ground);
    painter.drawText(QPointF(f.plot.left() + 6, last), text);
  }
}

void LabChart::render(QPainter& painter, const QRectF& area) const {
  const Frame f = frame(area);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(area, theme().base);
  paintGrid(painter, f);
  if (curves_.empty()) {
    painter.setPen(theme().secondary);
    painter.setFont(ui_font(12.5));
    painter.drawText(f.plot.adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap, empty_);
    return;
  }
  for (const LabCurve& curve : curves_) paintCurve(painter, f, curve);
  paintCeilings(painter, f);
  if (!compact_) paintEndLabels(painter, f);
  if (!compact_) paintCrossovers(painter, f);
  paintCursor(painter, f);
  paintRing(painter, f);
}

void LabChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
}

}  // namespace ws::app
