#include "app/pages/lab/lab_cards.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "app/pages/lab/lab_way_style.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

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

// Finds a place beside the circle that covers no other card and few points.
QRectF LabCards::besidePlace(const QPointF& at, const QSizeF& size, const std::vector<QRectF>& taken) {
  QRectF best;
  int least = std::numeric_limits<int>::max();
  for (int k = 0; k < 5; ++k)
    for (const double dy : {34.0 + 46 * k, -70.0 - 46 * k})
      for (const double dx : {14.0, -14.0 - size.width()}) {
        const QRectF card(at + QPointF(dx, dy), size);
        int cost = k;
        if (!f_.plot.contains(card)) cost += 200;
        for (const QRectF& other : taken) cost += card.adjusted(-4, -4, 4, 4).intersects(other) ? 1000 : 0;
        for (const LabCurve& curve : s_.curves) cost += crosses(curve, card) ? 10 : 0;
        if (cost < least) least = cost, best = card;
      }
  return best;
}

bool LabCards::crosses(const LabCurve& curve, const QRectF& card) {
  for (size_t i = 1; i < curve.points.size(); ++i) {
    const QLineF line(f_.at(curve.points[i - 1]), f_.at(curve.points[i]));
    for (double t = 0; t <= 1; t += 0.1)
      if (card.contains(line.pointAt(t))) return true;
  }
  return false;
}

// All lines lie below all cards, so that none crosses a text.
void LabCards::paintCrossovers() {
  const auto words = [this](const lab::Crossover& c) {
    return QObject::tr("%1 overtakes %2").arg(lab_label(c.faster_above, s_.shown[0].result.spec), lab_label(c.slower_below, s_.shown[0].result.spec));
  };
  std::vector<QRectF> cards;
  for (const lab::Crossover& c : s_.crossovers) {
    const double width = std::max(QFontMetricsF(ui_font(11)).horizontalAdvance(words(c)), 60.0) + 18;
    const QPointF at = f_.at({c.size, c.seconds});
    const QRectF card = besidePlace(at, {width, 38}, cards);
    cards.push_back(card);
    p_.setPen(QPen(theme().quiet, 1, Qt::DotLine));
    p_.drawLine(at, QPointF(at.x(), f_.plot.bottom()));
    p_.setPen(QPen(theme().strong_border, 1));
    const double near_x = std::clamp(at.x(), card.left() + 8, card.right() - 8);
    p_.drawLine(at, QPointF(near_x, card.center().y() < at.y() ? card.bottom() : card.top()));
  }
  for (size_t i = 0; i < cards.size(); ++i) {
    const lab::Crossover& c = s_.crossovers[i];
    p_.setPen(QPen(theme().text, 2));
    p_.setBrush(theme().base);
    p_.drawEllipse(f_.at({c.size, c.seconds}), 4.5, 4.5);
    draw_card(p_, cards[i]);
    p_.setPen(theme().text);
    p_.setFont(ui_font(12, 600));
    p_.drawText(cards[i].adjusted(8, 3, 0, -18), Qt::AlignLeft | Qt::AlignVCenter, QObject::tr("N = %1").arg(lab_size_text(c.size)));
    p_.setPen(theme().secondary);
    p_.setFont(ui_font(11));
    p_.drawText(cards[i].adjusted(8, 18, 0, -3), Qt::AlignLeft | Qt::AlignVCenter, words(c));
  }
}

void LabCards::paintCursor() {
  const auto nearest = s_.cursorPoint();
  if (!nearest) return;
  const auto size = static_cast<double>(*nearest);
  const double x = f_.at({size, 1}).x();
  QPen pen(theme().text, 1);
  pen.setDashPattern({3, 2});
  p_.setPen(pen);
  p_.drawLine(QPointF(x, f_.plot.top()), QPointF(x, f_.plot.bottom()));
  if (s_.compact) return;
  const QString text = QObject::tr("N %1").arg(lab_size_text(size));
  p_.setFont(ui_font(11, 600));
  const double width = p_.fontMetrics().horizontalAdvance(text) + 14;
  const QRectF flag(x - width / 2, f_.plot.bottom() + 3, width, 18);
  p_.setPen(Qt::NoPen);
  p_.setBrush(theme().text);
  p_.drawRoundedRect(flag, 2, 2);
  p_.setPen(theme().base);
  p_.drawText(flag, Qt::AlignCenter, text);
  paintCard(size);
}

// Finds the corner where the card covers the fewest points.
QRectF LabCards::cardPlace(double height) {
  const QRectF& p = f_.plot;
  const std::array<QRectF, 4> corners{
      QRectF(p.left() + 10, p.top() + 6, kLabCardWidth, height),
      QRectF(p.right() - kLabCardWidth - 8, p.bottom() - height - 8, kLabCardWidth, height),
      QRectF(p.right() - kLabCardWidth - 8, p.top() + 6, kLabCardWidth, height),
      QRectF(p.left() + 10, p.bottom() - height - 8, kLabCardWidth, height)};
  const auto covered = [&](const QRectF& card) {
    int count = 0;
    for (const LabCurve& curve : s_.curves)
      for (const QPointF& point : curve.points) count += card.contains(f_.at(point)) ? 1 : 0;
    return count;
  };
  return *std::ranges::min_element(corners, {}, covered);
}

void LabCards::paintCard(double size) {
  std::vector<std::pair<const LabCurve*, double>> rows;
  double reference = 0;
  for (const LabCurve& curve : s_.curves)
    for (const QPointF& p : curve.points)
      if (p.x() == size) {
        rows.emplace_back(&curve, p.y());
        if (curve.way == lab::Way::CpuLibrary && !curve.earlier() && s_.axis == LabAxis::Time) reference = p.y();
      }
  std::ranges::sort(rows, std::greater{}, [](const auto& row) { return row.second; });
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  const QRectF card = cardPlace(32 + kRow * static_cast<double>(rows.size()));
  draw_card(p_, card);
  p_.setPen(theme().text);
  p_.setFont(ui_font(12, 600));
  p_.drawText(card.adjusted(10, 6, -10, 0), Qt::AlignLeft | Qt::AlignTop,
              QObject::tr("N = %1").arg(lab_size_text(size)));
  p_.setFont(ui_font(11));
  p_.setPen(theme().quiet);
  p_.drawText(card.adjusted(10, 7, -10, 0), Qt::AlignRight | Qt::AlignTop,
              reference > 0 ? QObject::tr("against the CPU's library") : QString());
  double y = card.top() + 27;
  for (const auto& [curve, value] : rows) {
    paintCardRow(card, y, *curve, value, reference);
    y += kRow;
  }
}

void LabCards::paintCardRow(const QRectF& card, double y, const LabCurve& curve, double value, double reference) {
  QPen line = lab_pen(curve.way, 2);
  if (curve.earlier()) line.setDashPattern({1.3, 1.3});
  p_.setPen(line);
  p_.drawLine(QPointF(card.left() + 10, y + 8), QPointF(card.left() + 28, y + 8));
  p_.setFont(ui_font(11));
  p_.setPen(theme().text);
  p_.drawText(QRectF(card.left() + 36, y, 138, 16), Qt::AlignVCenter,
              p_.fontMetrics().elidedText(curve.label, Qt::ElideRight, 136));
  p_.setFont(number_font(11));
  p_.drawText(QRectF(card.left() + 170, y, 72, 16), Qt::AlignRight | Qt::AlignVCenter, s_.valueText(value));
  p_.setPen(theme().secondary);
  const QString gain = reference <= 0  ? QString()
                       : curve.pitfall ? QStringLiteral("—")
                                       : significant_text(reference / value, reference < value ? 2 : 3) + "×";
  p_.drawText(QRectF(card.left() + 242, y, 56, 16), Qt::AlignRight | Qt::AlignVCenter, gain);
}

void LabCards::paintRing() {
  if (!s_.ring) return;
  for (const LabCurve& curve : s_.curves)
    for (const QPointF& p : curve.points)
      if (*s_.ring == LabPick{curve.shown, curve.way, static_cast<int64_t>(p.x())}) {
        p_.setPen(QPen(theme().focus, 2));
        p_.setBrush(Qt::NoBrush);
        p_.drawEllipse(f_.at(p), 6, 6);
      }
}

}  // namespace ws::app
