#include "app/pages/compare/waterfall_view.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/core/comparison/comparison_text.h"
#include "app/widgets/theme.h"
#include "app/widgets/tip.h"
#include "app/text/units.h"
#include "app/core/report/drawing.h"
#include "app/text/qt_text.h"

namespace ws::app {
namespace {

constexpr double kBarRow = 18, kBarNumber = 62, kCaption = 14;

QString bar_name(const prof::Cause& cause) {
  return text(prof::cause_name(cause));
}

// Kernel names are longer than op names. A wide pane has space for them.
double names_width(double width) { return std::clamp(0.27 * width, 116.0, 220.0); }

QRectF column_plot(const QRectF& area) { return area.adjusted(52, 40, -12, -40); }

// Smaller causes share one bar, if there are at least two. All changes together are 100 %.
int64_t least_change(const prof::Waterfall& w) {
  constexpr int64_t kShares = 50;  // 2 %
  int64_t sum = 0;
  for (const prof::Cause& cause : w.causes) sum += std::abs(cause.delta_ps());
  const auto small = std::ranges::count_if(w.causes, [&](const prof::Cause& c) { return c.delta_ps() != 0 && std::abs(c.delta_ps()) < sum / kShares; });
  return small > 1 ? sum / kShares : 0;
}

QString change_text(double change) { return (change > 0 ? "+" : "") + us_text(change); }

}  // namespace

WaterfallView::WaterfallView(QWidget* parent) : QWidget(parent) { setAccessibleName(tr("Where the difference went")); }

void WaterfallView::setComparison(const Comparison& comparison, int baseline_slot, int candidate_slot) {
  comparison_ = comparison;
  baseline_slot_ = baseline_slot;
  candidate_slot_ = candidate_slot;
  update();
}

void WaterfallView::setByOp(bool by_op) {
  by_op_ = by_op;
  update();
}

prof::Waterfall WaterfallView::shown(double height) const {
  const auto printed = static_cast<int64_t>(unit().ps / 10);  // bars show one decimal
  if (!by_op_) return prof::rounded(comparison_.by_kind, printed);
  constexpr double kFewest = 3, kEnds = 2, kRest = 1;
  const auto others = static_cast<double>(std::ranges::count_if(
      comparison_.by_op.causes, [](const prof::Cause& c) { return c.op.empty() && c.delta_ps(); }));
  const double rows = std::floor((height - kBarRow) / kBarRow) - others - kEnds - kRest;
  return prof::rounded(prof::folded(comparison_.by_op, static_cast<size_t>(std::max(kFewest, rows))), printed);
}

WaterfallView::Unit WaterfallView::unit() const {
  const auto longest = static_cast<double>(std::max(comparison_.by_kind.a_ps, comparison_.by_kind.b_ps));
  return longest >= 1e13 ? Unit{"s", 1e12} : longest >= 1e10 ? Unit{"ms", 1e9} : Unit{"µs", 1e6};
}

QString WaterfallView::axisCaption() const {
  const QString caption = tr("median, %1").arg(QString::fromUtf8(unit().name)), why = whyGrey();
  return why.isEmpty() ? caption : tr("%1 · %2: grey").arg(caption, why);
}

QString WaterfallView::whyGrey() const {
  if (!comparison_.programs.empty()) return tr("different programs");
  return withinNoise() ? QString::fromUtf8(kWithinNoise) : QString();
}

// Then the causes are noise as well, however large they look.
bool WaterfallView::withinNoise() const {
  return !comparison_.measures.empty() && comparison_.of(MeasureKind::StepTime).delta.verdict == Verdict::WithinNoise;
}

std::vector<WaterfallView::Bar> WaterfallView::bars(const prof::Waterfall& w) const {
  const auto in_unit = [ps = unit().ps](int64_t time) { return static_cast<double>(time) / ps; };
  const auto tenths = [](double value) { return std::lround(10 * value); };  // bars show one decimal
  std::vector<Bar> all{{tr("baseline"), 0, in_unit(w.a_ps), {prof::Meaning::Other}, true, baseline_slot_}};
  int64_t at = w.a_ps;
  long rest = tenths(in_unit(w.b_ps)) - tenths(in_unit(w.a_ps));
  const int64_t least = by_op_ ? 0 : least_change(w);
  QStringList small;
  for (const prof::Cause& cause : w.causes) {
    const double from = in_unit(at), to = in_unit(at + cause.delta_ps());
    if (tenths(to - from) == 0) continue;
    if (std::abs(cause.delta_ps()) < least) {
      small << bar_name(cause) + " " + change_text(to - from);
      continue;
    }
    all.push_back({bar_name(cause), from, to, {cause.meaning, cause.kind}, false, -1, in_unit(cause.a_ps), in_unit(cause.b_ps)});
    rest -= tenths(to - from), at += cause.delta_ps();
  }
  const double end = in_unit(w.b_ps), left = static_cast<double>(rest) / 10;
  if (rest != 0 && all.size() > 1) all.push_back({.name = tr("other"), .from = end - left, .to = end, .part = {prof::Meaning::Other}, .rest = true, .small = small.join(", ")});
  all.push_back({tr("current"), 0, end, {prof::Meaning::Other}, true, candidate_slot_});
  return all;
}

// Columns need space for their numbers side by side. Names alternate between two lines, beside the letters at the ends.
bool WaterfallView::inRows(const QRectF& area, const std::vector<Bar>& all) const {
  if (by_op_) return true;
  const double pitch = column_plot(area).width() / static_cast<double>(all.size());
  const QFontMetricsF names(ui_font(11));
  return std::ranges::any_of(all, [&](const Bar& bar) {
    const double number = number_width(number_font(12, 600), bar.end ? us_text(bar.to) : change_text(bar.to - bar.from));
    return number + 4 > pitch || (!bar.end && names.horizontalAdvance(bar.name) + 24 > 2 * pitch);
  });
}

WaterfallView::Places WaterfallView::places(const QRectF& area, const std::vector<Bar>& all) const {
  const auto count = static_cast<double>(all.size());
  if (!inRows(area, all)) return {column_plot(area), column_plot(area).width() / count};
  const double above = whyGrey().isEmpty() ? 0 : kCaption;  // a long caption has a line of its own
  const double names = names_width(area.width()), height = std::min(26.0, (area.height() - kBarRow - above) / count);
  return {QRectF(area.left() + names, area.top() + 3 + above, area.width() - names - kBarNumber, height * count), height};
}

QString WaterfallView::explained(const QPointF& at) const {
  if (!comparison_.split) return {};
  const std::vector<Bar> all = bars(shown(height()));
  const auto [plot, pitch] = places(rect(), all);
  const double index = inRows(rect(), all) ? (at.y() - plot.top()) / pitch : (at.x() - plot.left()) / pitch;
  if (index < 0 || index >= static_cast<double>(all.size())) return {};
  const Bar& bar = all[static_cast<size_t>(index)];
  if (bar.end) return tr("%1: step time %2 %3, median").arg(bar.name, fixed_text(bar.to, 2), unit().name);
  const double change = bar.to - bar.from;
  if (bar.rest && !bar.small.isEmpty()) return tr("%1: %2 %3 per step").arg(bar.name, bar.small, unit().name);
  if (bar.rest) return tr("%1: smaller causes, and what rounding leaves").arg(bar.name);
  return tr("%1: %2 → %3 %6 per step, %4%5")
      .arg(bar.name, fixed_text(bar.in_a, 1), fixed_text(bar.in_b, 1), change > 0 ? "+" : "", fixed_text(change, 1),
           unit().name);
}

bool WaterfallView::event(QEvent* event) {
  return showed_tip(event, this, [this](QPointF at) { return explained(at); }) || QWidget::event(event);
}

void WaterfallView::paintBlock(QPainter& painter, const QRectF& block, const Bar& bar) const {
  painter.setBrushOrigin(block.topLeft());
  if (!bar.end && !whyGrey().isEmpty()) return draw_fill(painter, block, theme().strong_border);
  if (!bar.end)  // idle time is hatched, whatever its cause
    return draw_fill(painter, block, part_brush(bar.part));
  QColor fill = theme().run[std::max(0, bar.slot) % 8];
  painter.setPen(QPen(fill, 2));
  fill.setAlphaF(0.22F);
  painter.setBrush(fill);
  painter.drawRect(block);
}

void WaterfallView::paintBar(QPainter& painter, const Bar& bar, const QRectF& box, double zero, double scale) const {
  const double top = zero - std::max(bar.from, bar.to) * scale, bottom = zero - std::min(bar.from, bar.to) * scale;
  const QRectF block(box.left(), top, box.width(), std::max(bottom - top, 1.5));
  paintBlock(painter, block, bar);
  const double change = bar.to - bar.from;
  painter.setFont(number_font(12, bar.end ? 600 : 500));
  painter.setPen(theme().text);
  const bool above = bar.end || change > 0 || block.bottom() + 18 > zero;  // not over the axis and its names
  if (above && change < 0 && !bar.end && block.height() > 40)  // nor over the number of the previous bar
    return draw_number(painter, QRectF(block.right() + 5, block.top() + 1, 90, 16), Qt::AlignLeft | Qt::AlignVCenter,
                       change_text(change));
  draw_number(painter, QRectF(box.left() - 20, above ? block.top() - 18 : block.bottom() + 2, box.width() + 40, 16),
              Qt::AlignHCenter | Qt::AlignVCenter, bar.end ? us_text(bar.to) : change_text(change));
}

bool WaterfallView::paintsNothing(QPainter& painter, const QRectF& area) const {
  if (comparison_.split) return false;
  painter.setPen(theme().secondary);
  painter.setFont(ui_font(12.5));
  QString text = tr("Both runs need a trace of the same level to split the difference by cause.");
  if (baseline_slot_ < 0) text = tr("Tick a second run to see the difference by cause.");
  if (comparing_) text = tr("Comparing…");
  painter.drawText(area.adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap, text);
  return true;
}

void WaterfallView::render(QPainter& painter, const QRectF& area) const {
  painter.fillRect(area, theme().base);
  if (paintsNothing(painter, area)) return;
  const std::vector<Bar> all = bars(shown(area.height()));
  inRows(area, all) ? paintRows(painter, area, all) : paintColumns(painter, area, all);
}

void WaterfallView::paintRow(QPainter& painter, const QRectF& row, const QRectF& plot, const Bar& bar,
                             double scale) const {
  const double left = plot.left() + std::min(bar.from, bar.to) * scale,
               right = plot.left() + std::max(bar.from, bar.to) * scale;
  paintBlock(painter, QRectF(left, row.top() + 2.5, std::max(right - left, 1.5), row.height() - 5), bar);
  painter.setFont(number_font(12, bar.end ? 600 : 500));
  painter.setPen(theme().text);
  draw_number(painter, QRectF(right + 6, row.top(), kBarNumber, row.height()), Qt::AlignLeft | Qt::AlignVCenter,
              bar.end ? us_text(bar.to) : change_text(bar.to - bar.from));
  const QRectF name(row.left() + 8, row.top(), plot.left() - row.left() - 16, row.height());
  painter.setFont(ui_font(11));
  painter.setPen(bar.end ? theme().text : theme().secondary);
  if (bar.end) draw_badge(painter, QRectF(name.left(), name.center().y() - 7.5, 15, 15), bar.slot);
  painter.drawText(bar.end ? name.adjusted(21, 0, 0, 0) : name, Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(bar.name, Qt::ElideRight, static_cast<int>(name.width())));
}

void WaterfallView::paintRows(QPainter& painter, const QRectF& area, const std::vector<Bar>& all) const {
  double most = 1e-9;
  for (const Bar& bar : all) most = std::max({most, bar.from, bar.to});
  const auto [plot, height] = places(area, all);
  const double scale = plot.width() / most;
  painter.setFont(ui_font(11));
  for (const double value : ticks(0, most, false, 4)) {
    const double x = plot.left() + value * scale;
    painter.setPen(value == 0 ? theme().strong_border : theme().grid);
    painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
    painter.setPen(theme().secondary);
    draw_number(painter, QRectF(x - 30, plot.bottom(), 60, 14), Qt::AlignHCenter | Qt::AlignVCenter,
                fixed_text(value, most < 5 ? 1 : 0));
  }
  const bool above = !whyGrey().isEmpty();
  painter.drawText(QRectF(area.left() + 8, above ? area.top() + 2 : plot.bottom(), above ? area.width() - 16 : plot.left() - area.left() - 16, kCaption),
                   Qt::AlignLeft | Qt::AlignVCenter, axisCaption());
  QRectF row(area.left(), plot.top(), area.width(), height);
  for (size_t i = 0; i < all.size(); ++i, row.translate(0, height)) {
    if (i + 1 < all.size()) {  // link to the next row
      painter.setPen(QPen(theme().quiet, 1, Qt::DotLine));
      const double x = plot.left() + all[i].to * scale;
      painter.drawLine(QPointF(x, row.bottom() - 2.5), QPointF(x, row.bottom() + 2.5));
    }
    paintRow(painter, row, plot, all[i], scale);
  }
}

void WaterfallView::paintColumns(QPainter& painter, const QRectF& area, const std::vector<Bar>& all) const {
  double most = 1e-9;
  for (const Bar& bar : all) most = std::max({most, bar.from, bar.to});
  const auto [plot, pitch] = places(area, all);
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
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(area.left() + 8, area.top() + 4, 300, 14), Qt::AlignLeft | Qt::AlignVCenter, axisCaption());
  for (size_t i = 0; i < all.size(); ++i) {
    const QRectF column(plot.left() + pitch * static_cast<double>(i), plot.top(), pitch, plot.height());
    const double width = std::min(64.0, pitch * 0.56);
    const QRectF box(column.center().x() - width / 2, plot.top(), width, plot.height());
    if (i + 1 < all.size()) {  // link to the next bar
      QPen dots(theme().quiet, 1, Qt::DotLine);
      painter.setPen(dots);
      const double y = plot.bottom() - all[i].to * scale;
      painter.drawLine(QPointF(box.right(), y), QPointF(box.right() + pitch - width, y));
    }
    paintBar(painter, all[i], box, plot.bottom(), scale);
  }
  paintNames(painter, all, {plot, pitch});
}

// Names that are wider than a column alternate between two lines. The ends then show only their letters.
void WaterfallView::paintNames(QPainter& painter, const std::vector<Bar>& all, const Places& places) const {
  painter.setFont(ui_font(11));
  const bool narrow = std::ranges::any_of(all, [&](const Bar& bar) {
    return painter.fontMetrics().horizontalAdvance(bar.name) > places.pitch - 4;
  });
  for (size_t i = 0; i < all.size(); ++i) {
    const double x = places.plot.left() + places.pitch * (static_cast<double>(i) + 0.5), y = places.plot.bottom();
    if (all[i].end) draw_badge(painter, QRectF(x - 7.5, y + 5, 15, 15), all[i].slot);
    if (narrow && all[i].end) continue;
    const bool second_line = all[i].end || (narrow && i % 2 == 1);
    const double space = narrow ? 2 * places.pitch - 4 : places.pitch;
    painter.setFont(ui_font(11));
    painter.setPen(all[i].end ? theme().text : theme().secondary);
    painter.drawText(QRectF(x - space / 2, y + (second_line ? 20 : 5), space, 16), Qt::AlignHCenter, all[i].name);
  }
}

void WaterfallView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing, false);
  render(painter, rect());
}

}  // namespace ws::app
