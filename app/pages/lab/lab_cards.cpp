// What stands over the curves of the laboratory's chart: crossovers, the cursor and its card, the ring.
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "app/pages/lab/lab_chart.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr double kLabCardWidth = 306, kRow = 17;
constexpr size_t kMostRows = 16;

void draw_card(QPainter& painter, const QRectF& card) {
  painter.setPen(QPen(theme().strong_border, 1));
  painter.setBrush(theme().raised);
  painter.drawRoundedRect(card, 3, 3);
}

}  // namespace

// Beside the circle, where it covers neither another card nor many points.
QRectF LabChart::besidePlace(const Frame& f, const QPointF& at, const QSizeF& size,
                             const std::vector<QRectF>& taken) const {
  QRectF best;
  int least = std::numeric_limits<int>::max();
  for (int k = 0; k < 5; ++k)
    for (const double dy : {34.0 + 46 * k, -70.0 - 46 * k})
      for (const double dx : {14.0, -14.0 - size.width()}) {
        const QRectF card(at + QPointF(dx, dy), size);
        int cost = k;
        if (!f.plot.contains(card)) cost += 200;
        for (const QRectF& other : taken) cost += card.adjusted(-4, -4, 4, 4).intersects(other) ? 1000 : 0;
        for (const LabCurve& curve : curves_) cost += crosses(f, curve, card) ? 10 : 0;
        if (cost < least) least = cost, best = card;
      }
  return best;
}

bool LabChart::crosses(const Frame& f, const LabCurve& curve, const QRectF& card) const {
  for (size_t i = 1; i < curve.points.size(); ++i) {
    const QLineF line(f.at(curve.points[i - 1]), f.at(curve.points[i]));
    for (double t = 0; t <= 1; t += 0.1)
      if (card.contains(line.pointAt(t))) return true;
  }
  return false;
}

void LabChart::paintCrossovers(QPainter& painter, const Frame& f) const {
  std::vector<QRectF> taken;
  for (const lab::Crossover& c : crossovers_) {
    const QPointF at = f.at({c.size, c.seconds});
    painter.setPen(QPen(theme().quiet, 1, Qt::DotLine));
    painter.drawLine(at, QPointF(at.x(), f.plot.bottom()));
    const QString head = tr("N = %1").arg(lab_size_text(c.size)),
                  text = tr("%1 beats %2").arg(lab_label(c.faster_above), lab_label(c.slower_below));
    const double width = std::max(QFontMetricsF(ui_font(11)).horizontalAdvance(text), 60.0) + 18;
    const QRectF card = besidePlace(f, at, {width, 38}, taken);
    taken.push_back(card);
    painter.setPen(QPen(theme().strong_border, 1));
    const double near_x = std::clamp(at.x(), card.left() + 8, card.right() - 8);
    painter.drawLine(at, QPointF(near_x, card.center().y() < at.y() ? card.bottom() : card.top()));
    painter.setPen(QPen(theme().text, 2));
    painter.setBrush(theme().base);
    painter.drawEllipse(at, 4.5, 4.5);
    draw_card(painter, card);
    painter.setPen(theme().text);
    painter.setFont(ui_font(12, 600));
    painter.drawText(card.adjusted(8, 3, 0, -18), Qt::AlignLeft | Qt::AlignVCenter, head);
    painter.setPen(theme().secondary);
    painter.setFont(ui_font(11));
    painter.drawText(card.adjusted(8, 18, 0, -3), Qt::AlignLeft | Qt::AlignVCenter, text);
  }
}

void LabChart::paintCursor(QPainter& painter, const Frame& f) const {
  const auto nearest = cursorPoint();
  if (!nearest) return;
  const auto size = static_cast<double>(*nearest);
  const double x = f.at({size, 1}).x();
  QPen pen(theme().text, 1);
  pen.setDashPattern({3, 2});
  painter.setPen(pen);
  painter.drawLine(QPointF(x, f.plot.top()), QPointF(x, f.plot.bottom()));
  if (compact_) return;
  const QString text = tr("N %1").arg(lab_size_text(size));
  painter.setFont(ui_font(11, 600));
  const double width = painter.fontMetrics().horizontalAdvance(text) + 14;
  const QRectF flag(x - width / 2, f.plot.bottom() + 3, width, 18);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme().text);
  painter.drawRoundedRect(flag, 2, 2);
  painter.setPen(theme().base);
  painter.drawText(flag, Qt::AlignCenter, text);
  paintCard(painter, f, size);
}

// In the corner where it covers the fewest points.
QRectF LabChart::cardPlace(const Frame& f, double height) const {
  const QRectF& p = f.plot;
  const std::array<QRectF, 4> corners{
      QRectF(p.left() + 10, p.top() + 6, kLabCardWidth, height),
      QRectF(p.right() - kLabCardWidth - 8, p.bottom() - height - 8, kLabCardWidth, height),
      QRectF(p.right() - kLabCardWidth - 8, p.top() + 6, kLabCardWidth, height),
      QRectF(p.left() + 10, p.bottom() - height - 8, kLabCardWidth, height)};
  const auto covered = [&](const QRectF& card) {
    int count = 0;
    for (const LabCurve& curve : curves_)
      for (const QPointF& point : curve.points) count += card.contains(f.at(point)) ? 1 : 0;
    return count;
  };
  return *std::ranges::min_element(corners, {}, covered);
}

void LabChart::paintCard(QPainter& painter, const Frame& f, double size) const {
  std::vector<std::pair<const LabCurve*, double>> rows;
  double reference = 0;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points)
      if (p.x() == size) {
        rows.emplace_back(&curve, p.y());
        if (curve.way == lab::Way::CpuLibrary && !curve.earlier() && axis_ == LabAxis::Time) reference = p.y();
      }
  std::ranges::sort(rows, std::greater{}, [](const auto& row) { return row.second; });
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  const QRectF card = cardPlace(f, 32 + kRow * static_cast<double>(rows.size()));
  draw_card(painter, card);
  painter.setPen(theme().text);
  painter.setFont(ui_font(12, 600));
  painter.drawText(card.adjusted(10, 6, -10, 0), Qt::AlignLeft | Qt::AlignTop, tr("N = %1").arg(lab_size_text(size)));
  painter.setFont(ui_font(11));
  painter.setPen(theme().quiet);
  painter.drawText(card.adjusted(10, 7, -10, 0), Qt::AlignRight | Qt::AlignTop,
                   reference > 0 ? tr("against the CPU's library") : QString());
  double y = card.top() + 27;
  for (const auto& [curve, value] : rows) {
    paintCardRow(painter, card, y, *curve, value, reference);
    y += kRow;
  }
}

void LabChart::paintCardRow(QPainter& painter, const QRectF& card, double y, const LabCurve& curve, double value,
                            double reference) const {
  QPen line = lab_pen(curve.way, 2);
  if (curve.earlier()) line.setDashPattern({1.3, 1.3});
  painter.setPen(line);
  painter.drawLine(QPointF(card.left() + 10, y + 8), QPointF(card.left() + 28, y + 8));
  painter.setFont(ui_font(11));
  painter.setPen(theme().text);
  painter.drawText(QRectF(card.left() + 36, y, 138, 16), Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(curve.label, Qt::ElideRight, 136));
  painter.setFont(number_font(11));
  painter.drawText(QRectF(card.left() + 170, y, 72, 16), Qt::AlignRight | Qt::AlignVCenter, valueText(value));
  painter.setPen(theme().secondary);
  const QString gain = reference <= 0  ? QString()
                       : curve.pitfall ? QStringLiteral("—")
                                       : significant_text(reference / value, reference < value ? 2 : 3) + "×";
  painter.drawText(QRectF(card.left() + 242, y, 56, 16), Qt::AlignRight | Qt::AlignVCenter, gain);
}

void LabChart::paintRing(QPainter& painter, const Frame& f) const {
  if (!ring_) return;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points)
      if (*ring_ == LabPick{curve.shown, curve.way, static_cast<int64_t>(p.x())}) {
        painter.setPen(QPen(theme().focus, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawEllipse(f.at(p), 6, 6);
      }
}

}  // namespace ws::app
