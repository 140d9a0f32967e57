#include "app/lab/lab_chart.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "app/panels/theme.h"
#include "app/panels/units.h"

namespace ws::app {
namespace {

constexpr double kLabelWidth = 168;

QString seconds_text(double s) { return time_axis_text(s * 1e6); }

QString size_text(double size) {
  const auto n = static_cast<int64_t>(std::llround(size));
  if (n >= 1 << 20 && n % (1 << 20) == 0) return QString::number(n >> 20) + " M";
  if (n > 16384 && n % 1024 == 0) return QString::number(n >> 10) + " k";
  return QString::number(n);
}

}  // namespace

QColor lab_colour(lab::Way way) {
  const Theme& t = theme();
  // Eight run colours for the ways that answer different questions; ways that are kin share one.
  switch (way) {
    case lab::Way::CpuLoops:
      return t.run[7];
    case lab::Way::CpuLibrary:
      return t.run[5];
    case lab::Way::GpuPageable:
      return t.run[3];
    case lab::Way::GpuPinned:
      return t.run[6];
    case lab::Way::GpuResident:
    case lab::Way::GpuUnsynced:
      return t.run[1];
    case lab::Way::GpuOpByOp:
    case lab::Way::GpuNaive:
      return t.run[2];
    case lab::Way::GpuOverlap:
    case lab::Way::GpuTiled:
      return t.run[0];
    case lab::Way::GpuTf32:
    case lab::Way::GpuGraph:
      return t.run[4];
    case lab::Way::GpuFp16:
      return t.meaning[static_cast<int>(prof::Meaning::Sync)];
    case lab::Way::GpuCold:
      return t.quiet;
  }
  return t.text;
}

LabChart::LabChart(LabAxis axis, QWidget* parent) : QWidget(parent), axis_(axis) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(axis == LabAxis::Time ? tr("Time against size") : tr("Throughput against size"));
}

double LabChart::valueOf(const lab::LabPoint& point, double seconds) const {
  if (seconds <= 0) return 0;
  if (axis_ == LabAxis::Time) return seconds;
  return static_cast<double>(axis_ == LabAxis::Flops ? point.flops : point.bytes) / seconds;
}

QString LabChart::valueText(double value) const {
  if (axis_ == LabAxis::Time) return seconds_text(value);
  const bool flops = axis_ == LabAxis::Flops;
  if (value >= 1e12) return significant_text(value / 1e12) + (flops ? " TFLOP/s" : " TB/s");
  if (value >= 1e9) return significant_text(value / 1e9) + (flops ? " GFLOP/s" : " GB/s");
  return significant_text(value / 1e6) + (flops ? " MFLOP/s" : " MB/s");
}

void LabChart::addCurves(const lab::LabResult& result, bool earlier) {
  for (const lab::WayInfo& way : lab::ways()) {
    LabCurve curve{way.way,
                   lab_colour(way.way),
                   QString::fromUtf8(way.label.data(), static_cast<int>(way.label.size())),
                   way.pitfall,
                   earlier,
                   {},
                   {}};
    if (earlier) curve.label += tr(", earlier");
    if (way.pitfall && axis_ != LabAxis::Time) continue;  // a throughput of work that was not waited for means nothing
    for (const lab::LabPoint& p : result.points) {
      const double value = p.way == way.way && p.ok ? valueOf(p, p.median_s) : 0;
      if (value <= 0) continue;
      curve.points.emplace_back(static_cast<double>(p.size), value);
      if (axis_ == LabAxis::Time) curve.spread.emplace_back(p.low_s, p.high_s);
    }
    if (!curve.points.empty()) curves_.push_back(std::move(curve));
  }
}

void LabChart::setResult(const lab::LabResult& result, const std::vector<lab::LabResult>& overlays) {
  curves_.clear();
  addCurves(result, false);
  for (const lab::LabResult& other : overlays) addCurves(other, true);
  crossovers_ = axis_ == LabAxis::Time ? lab::crossovers(result) : std::vector<lab::Crossover>{};
  std::erase_if(crossovers_, [](const lab::Crossover& c) {
    return lab::info(c.slower_below).gpu || !lab::info(c.faster_above).gpu;
  });
  if (crossovers_.size() > 3) crossovers_.resize(3);
  ceilings_ = result.ceilings;
  update();
}

void LabChart::setCursorSize(std::optional<double> size) {
  cursor_ = size;
  update();
}

QPointF LabChart::Frame::at(const QPointF& p) const {
  return {plot.left() + (std::log10(p.x()) - x0) / (x1 - x0) * plot.width(),
          plot.bottom() - (std::log10(p.y()) - y0) / (y1 - y0) * plot.height()};
}
double LabChart::Frame::sizeAt(double x) const {
  return std::pow(10, x0 + (x - plot.left()) / plot.width() * (x1 - x0));
}

LabChart::Frame LabChart::frame(const QRectF& area) const {
  Frame f;
  f.plot = area.adjusted(compact_ ? 84 : 66, 10, compact_ ? -12 : -kLabelWidth, -36);
  double x0 = 1e300, x1 = 0, y0 = 1e300, y1 = 0;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points) {
      x0 = std::min(x0, p.x()), x1 = std::max(x1, p.x());
      y0 = std::min(y0, p.y()), y1 = std::max(y1, p.y());
    }
  if (curves_.empty())
    x0 = 16, x1 = 4096, y0 = axis_ == LabAxis::Time ? 1e-6 : 1e8, y1 = axis_ == LabAxis::Time ? 1 : 1e13;
  f.x0 = std::log10(x0) - 0.03, f.x1 = std::log10(std::max(x1, x0 * 1.01)) + 0.03;
  f.y0 = std::floor(std::log10(y0) * 2 - 0.2) / 2, f.y1 = std::ceil(std::log10(y1) * 2 + 0.2) / 2;
  return f;
}

void LabChart::paintGrid(QPainter& painter, const Frame& f) const {
  const Theme& t = theme();
  painter.setFont(ui_font(11));
  for (int decade = static_cast<int>(std::floor(f.y0)); decade <= f.y1; ++decade)
    for (int m = 1; m < 10; ++m) {
      const double value = std::pow(10.0, decade) * m, y = f.at({1, value}).y();
      if (y < f.plot.top() - 0.5 || y > f.plot.bottom() + 0.5) continue;
      painter.setPen(m == 1 ? t.grid : t.minor_grid);
      painter.drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
      if (m > 1) continue;
      painter.setPen(t.secondary);
      painter.drawText(QRectF(0, y - 8, f.plot.left() - 8, 16), Qt::AlignRight | Qt::AlignVCenter, valueText(value));
    }
  double last = -100;
  for (double size = 1; size < 1e12; size *= 2) {
    const double x = f.at({size, 1}).x();
    if (x < f.plot.left() - 0.5 || x > f.plot.right() + 0.5) continue;
    painter.setPen(t.grid);
    painter.drawLine(QPointF(x, f.plot.top()), QPointF(x, f.plot.bottom()));
    if (x - last < 46) continue;
    last = x;
    painter.setPen(t.secondary);
    painter.drawText(QRectF(x - 40, f.plot.bottom() + 4, 80, 16), Qt::AlignHCenter, size_text(size));
  }
  painter.setPen(t.strong_border);
  painter.drawLine(f.plot.bottomLeft(), f.plot.bottomRight());
  painter.drawLine(f.plot.topLeft(), f.plot.bottomLeft());
}

void LabChart::paintCurve(QPainter& painter, const Frame& f, const LabCurve& curve) const {
  QPen pen(curve.colour, curve.pitfall ? 2.2 : 1.7);
  if (curve.pitfall) pen.setDashPattern({6 / 2.2, 4 / 2.2});
  if (curve.earlier) pen.setDashPattern({2, 2});
  if (!curve.spread.empty() && !curve.pitfall && !curve.earlier) {
    QPolygonF band;
    for (size_t i = 0; i < curve.points.size(); ++i) band << f.at({curve.points[i].x(), curve.spread[i].second});
    for (size_t i = curve.points.size(); i-- > 0;) band << f.at({curve.points[i].x(), curve.spread[i].first});
    QColor fill = curve.colour;
    fill.setAlphaF(0.13F);
    painter.setPen(Qt::NoPen);
    painter.setBrush(fill);
    painter.drawPolygon(band);
  }
  QPolygonF line;
  for (const QPointF& p : curve.points) line << f.at(p);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawPolyline(line);
  if (compact_ || curve.earlier) return;
  painter.setPen(QPen(curve.colour, 1.4));
  painter.setBrush(theme().base);
  for (const QPointF& p : line) painter.drawEllipse(p, 2.2, 2.2);
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
    if (!curve.earlier) labels.push_back({&curve, f.at(curve.points.back()), f.at(curve.points.back()).y()});
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  constexpr double kStep = 28;
  const double room = f.plot.height() + 20;
  const double step = labels.empty() ? kStep : std::min(kStep, room / static_cast<double>(labels.size()));
  for (size_t i = 1; i < labels.size(); ++i) labels[i].y = std::max(labels[i].y, labels[i - 1].y + step);
  double limit = f.plot.bottom() + 8;
  for (size_t i = labels.size(); i-- > 0; limit = labels[i].y - step) labels[i].y = std::min(labels[i].y, limit);
  for (const Label& label : labels) {
    const double x = f.plot.right() + 16;
    painter.setPen(QPen(label.curve->colour, 1));
    painter.drawLine(label.end + QPointF(4, 0), QPointF(x - 3, label.y));
    painter.setFont(ui_font(11, 600));
    painter.drawText(QRectF(x, label.y - 14, kLabelWidth - 18, 15), Qt::AlignLeft | Qt::AlignVCenter,
                     label.curve->label);
    if (step < 24) continue;
    painter.setPen(theme().quiet);
    painter.setFont(ui_font(10.5));
    painter.drawText(
        QRectF(x, label.y, kLabelWidth - 18, 14), Qt::AlignLeft | Qt::AlignVCenter,
        tr("%1 at %2").arg(valueText(label.curve->points.back().y()), size_text(label.curve->points.back().x())));
  }
}

void LabChart::paintCeilings(QPainter& painter, const Frame& f) const {
  const std::pair<double, QString> lines[] = {{ceilings_.fp32_flops_s, tr("fp32 measured")},
                                              {ceilings_.tf32_flops_s, tr("tf32 measured")},
                                              {ceilings_.fp16_flops_s, tr("fp16 measured")}};
  const std::pair<double, QString> memory[] = {{ceilings_.read_write_bytes_s, tr("device memory, measured")},
                                               {ceilings_.pinned_bytes_s, tr("pinned copy, measured")}};
  const auto draw = [&](double value, const QString& name) {
    if (value <= 0) return;
    const double y = f.at({1, value}).y();
    if (y < f.plot.top() || y > f.plot.bottom()) return;
    painter.setPen(QPen(theme().secondary, 1, Qt::DashLine));
    painter.drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
    painter.setFont(ui_font(10.5));
    painter.drawText(QPointF(f.plot.left() + 6, y - 4), name + " " + valueText(value));
  };
  if (axis_ == LabAxis::Flops)
    for (const auto& [value, name] : lines) draw(value, name);
  if (axis_ == LabAxis::Bytes)
    for (const auto& [value, name] : memory) draw(value, name);
}

void LabChart::paintCrossovers(QPainter& painter, const Frame& f) const {
  double shift = 0;
  for (const lab::Crossover& c : crossovers_) {
    const QPointF at = f.at({c.size, c.seconds});
    painter.setPen(QPen(theme().quiet, 1, Qt::DotLine));
    painter.drawLine(at, QPointF(at.x(), f.plot.bottom()));
    painter.setPen(QPen(theme().text, 2));
    painter.setBrush(theme().base);
    painter.drawEllipse(at, 4.5, 4.5);
    const QString head = tr("N = %1").arg(size_text(c.size)),
                  text = tr("%1 wins from here").arg(QString::fromUtf8(lab::info(c.faster_above).label.data()));
    const double width = std::max(QFontMetricsF(ui_font(11)).horizontalAdvance(text), 60.0) + 18;
    QRectF card(std::min(at.x() + 14, f.plot.right() - width), std::max(f.plot.top() + 4, at.y() - 70 - shift), width,
                38);
    shift = shift > 0 ? 0 : 46;
    painter.setPen(QPen(theme().strong_border, 1));
    painter.drawLine(at, QPointF(card.left() + 8, card.bottom()));
    painter.setBrush(theme().raised);
    painter.drawRoundedRect(card, 3, 3);
    painter.setPen(theme().text);
    painter.setFont(ui_font(12, 600));
    painter.drawText(card.adjusted(8, 3, 0, -18), Qt::AlignLeft | Qt::AlignVCenter, head);
    painter.setPen(theme().secondary);
    painter.setFont(ui_font(11));
    painter.drawText(card.adjusted(8, 18, 0, -3), Qt::AlignLeft | Qt::AlignVCenter, text);
  }
}

void LabChart::paintCursor(QPainter& painter, const Frame& f) const {
  if (!cursor_ || curves_.empty()) return;
  double nearest = 0;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points)
      if (nearest == 0 || std::abs(std::log(p.x() / *cursor_)) < std::abs(std::log(nearest / *cursor_)))
        nearest = p.x();
  const double x = f.at({nearest, 1}).x();
  painter.setPen(QPen(theme().text, 1, Qt::CustomDashLine));
  QPen pen(theme().text, 1);
  pen.setDashPattern({3, 2});
  painter.setPen(pen);
  painter.drawLine(QPointF(x, f.plot.top()), QPointF(x, f.plot.bottom()));
  if (!compact_) paintCard(painter, f, nearest);
}

void LabChart::paintCard(QPainter& painter, const Frame& f, double size) const {
  std::vector<std::pair<const LabCurve*, double>> rows;
  double reference = 0;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points)
      if (p.x() == size && !curve.earlier) {
        rows.emplace_back(&curve, p.y());
        if (curve.way == lab::Way::CpuLibrary) reference = p.y();
      }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const double height = 30 + 17.0 * static_cast<double>(rows.size()), width = 282;
  const bool right = f.at({size, 1}).x() < f.plot.center().x();
  const QRectF card(right ? f.plot.right() - width - 8 : f.plot.left() + 10,
                    right ? f.plot.bottom() - height - 8 : f.plot.top() + 6, width, height);
  painter.setPen(QPen(theme().strong_border, 1));
  painter.setBrush(theme().raised);
  painter.drawRoundedRect(card, 3, 3);
  painter.setPen(theme().text);
  painter.setFont(ui_font(12, 600));
  painter.drawText(card.adjusted(10, 6, -10, 0), Qt::AlignLeft | Qt::AlignTop, tr("N = %1").arg(size_text(size)));
  painter.setFont(ui_font(11));
  painter.setPen(theme().quiet);
  painter.drawText(card.adjusted(10, 6, -10, 0), Qt::AlignRight | Qt::AlignTop,
                   reference > 0 && axis_ == LabAxis::Time ? tr("against the CPU's library") : QString());
  double y = card.top() + 26;
  for (const auto& [curve, value] : rows) {
    QPen line(curve->colour, 2);
    if (curve->pitfall) line.setDashPattern({3, 2});
    painter.setPen(line);
    painter.drawLine(QPointF(card.left() + 10, y + 8), QPointF(card.left() + 28, y + 8));
    painter.setPen(theme().text);
    painter.drawText(QRectF(card.left() + 36, y, 140, 16), Qt::AlignVCenter, curve->label);
    painter.setFont(number_font(11));
    painter.drawText(QRectF(card.left() + 150, y, 76, 16), Qt::AlignRight | Qt::AlignVCenter, valueText(value));
    painter.setPen(theme().secondary);
    const QString gain = curve->pitfall                            ? QStringLiteral("—")
                         : reference > 0 && axis_ == LabAxis::Time ? significant_text(reference / value) + "×"
                                                                   : QString();
    painter.drawText(QRectF(card.left() + 226, y, 46, 16), Qt::AlignRight | Qt::AlignVCenter, gain);
    painter.setFont(ui_font(11));
    y += 17;
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
    painter.drawText(f.plot, Qt::AlignCenter | Qt::TextWordWrap, empty_);
    return;
  }
  paintCeilings(painter, f);
  for (const LabCurve& curve : curves_) paintCurve(painter, f, curve);
  if (!compact_) paintEndLabels(painter, f);
  if (!compact_) paintCrossovers(painter, f);
  paintCursor(painter, f);
}

void LabChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
}

void LabChart::mouseMoveEvent(QMouseEvent* event) {
  if (!curves_.empty()) emit cursorMoved(frame(rect()).sizeAt(event->position().x()));
}

void LabChart::keyPressEvent(QKeyEvent* event) {
  const bool left = event->key() == Qt::Key_Left, right = event->key() == Qt::Key_Right;
  if (!left && !right) return QWidget::keyPressEvent(event);
  emit cursorMoved(cursor_.value_or(64) * (right ? 2 : 0.5));
}

}  // namespace ws::app
