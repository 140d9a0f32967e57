#include "app/compare/waterfall_view.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/panels/theme.h"
#include "app/panels/units.h"
#include "app/report/svg.h"

namespace ws::app {

WaterfallView::WaterfallView(QWidget* parent) : QWidget(parent) { setAccessibleName(tr("Where the difference went")); }

void WaterfallView::setComparison(const PairComparison& comparison, int baseline_slot, int candidate_slot) {
  comparison_ = comparison;
  baseline_slot_ = baseline_slot;
  candidate_slot_ = candidate_slot;
  update();
}

std::vector<WaterfallView::Bar> WaterfallView::bars() const {
  const prof::Waterfall& w = comparison_.waterfall;
  std::vector<Bar> all{
      {tr("baseline"), 0, static_cast<double>(w.a_ps) * 1e-6, prof::Meaning::Other, true, baseline_slot_}};
  double at = all[0].to;
  for (const prof::Cause& cause : w.causes) {
    const double change = static_cast<double>(cause.delta_ps()) * 1e-6;
    if (cause.delta_ps() == 0) continue;
    all.push_back({cause.meaning == prof::Meaning::Launch ? tr("launch gaps") : ws::app::meaning_name(cause.meaning),
                   at, at + change, cause.meaning});
    at += change;
  }
  all.push_back({tr("candidate"), 0, static_cast<double>(w.b_ps) * 1e-6, prof::Meaning::Other, true, candidate_slot_});
  return all;
}

void WaterfallView::paintBar(QPainter& painter, const Bar& bar, const QRectF& box, double zero, double scale) const {
  const double top = zero - std::max(bar.from, bar.to) * scale, bottom = zero - std::min(bar.from, bar.to) * scale;
  const QRectF block(box.left(), top, box.width(), std::max(bottom - top, 1.5));
  if (bar.end) {
    QColor fill = theme().run[std::clamp(bar.slot, 0, 7)];
    painter.setPen(QPen(fill, 2));
    fill.setAlphaF(0.22F);
    painter.setBrush(fill);
    painter.drawRect(block);
  } else {
    draw_fill(painter, block, meaning_brush(bar.meaning));
  }
  const double change = bar.end ? bar.to : bar.to - bar.from;
  const QString text =
      bar.end ? us_text(change) : (change > 0 ? "+" : "") + fixed_text(change, std::abs(change) < 100 ? 1 : 0);
  painter.setFont(number_font(12, bar.end ? 600 : 500));
  painter.setPen(theme().text);
  const bool above = bar.end || change > 0;
  draw_number(painter, QRectF(box.left() - 20, above ? block.top() - 18 : block.bottom() + 2, box.width() + 40, 16),
              Qt::AlignHCenter | Qt::AlignVCenter, text);
}

void WaterfallView::render(QPainter& painter, const QRectF& area) const {
  painter.fillRect(area, theme().base);
  if (!comparison_.traced) {
    painter.setPen(theme().secondary);
    painter.setFont(ui_font(12.5));
    painter.drawText(area.adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap,
                     baseline_slot_ < 0
                         ? tr("Tick a second run: the difference between the two is split by cause here.")
                         : tr("Both runs need a trace: the difference is split by what each did in a step."));
    return;
  }
  const auto all = bars();
  double most = 1e-9;
  for (const Bar& bar : all) most = std::max({most, bar.from, bar.to});
  const QRectF plot = area.adjusted(52, 26, -12, -40);
  const double scale = plot.height() / most;
  painter.setFont(ui_font(11));
  for (const double value : ticks(0, most, false, 5)) {
    const double y = plot.bottom() - value * scale;
    painter.setPen(value == 0 ? theme().strong_border : theme().grid);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(theme().secondary);
    draw_number(painter, QRectF(area.left(), y - 8, 46, 16), Qt::AlignRight | Qt::AlignVCenter,
                fixed_text(value, most < 5 ? 1 : 0));
  }
  const double pitch = plot.width() / static_cast<double>(all.size());
  const bool narrow = std::ranges::any_of(
      all, [&](const Bar& bar) { return painter.fontMetrics().horizontalAdvance(bar.name) > pitch - 4; });
  for (size_t i = 0; i < all.size(); ++i) {
    const QRectF column(plot.left() + pitch * static_cast<double>(i), plot.top(), pitch, plot.height());
    const double width = std::min(64.0, pitch * 0.56);
    const QRectF box(column.center().x() - width / 2, plot.top(), width, plot.height());
    if (i + 1 < all.size()) {  // what carries over to the next bar
      QPen dots(theme().quiet, 1, Qt::DotLine);
      painter.setPen(dots);
      const double y = plot.bottom() - all[i].to * scale;
      painter.drawLine(QPointF(box.right(), y), QPointF(box.right() + pitch - width, y));
    }
    paintBar(painter, all[i], box, plot.bottom(), scale);
    painter.setPen(all[i].end ? theme().text : theme().secondary);
    painter.setFont(ui_font(11));
    if (all[i].end) draw_badge(painter, QRectF(column.center().x() - 7.5, plot.bottom() + 5, 15, 15), all[i].slot);
    // Names that are wider than a bar take turns on two lines; the ends have their letters.
    const bool second_line = all[i].end || (narrow && i % 2 == 0);
    if (narrow && all[i].end) continue;
    const double room = narrow ? 2 * pitch - 6 : pitch;
    painter.drawText(QRectF(column.center().x() - room / 2, plot.bottom() + (second_line ? 20 : 5), room, 16),
                     Qt::AlignHCenter,
                     painter.fontMetrics().elidedText(all[i].name, Qt::ElideRight, static_cast<int>(room)));
  }
}

void WaterfallView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing, false);
  render(painter, rect());
}

}  // namespace ws::app
