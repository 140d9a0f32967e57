#include "app/pages/experiments/experiment_chart.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/pages/experiments/parallel_coordinates.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kValueWidth = 76, kPanelWidth = 260, kRowMost = 44, kPanelTitle = 22;

void draw_left(QPainter& painter, const QRectF& box, const QString& text) {
  painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(box.width())));
}

double share_of(double value, double least, double most) {
  if (most <= least) return 0.5;
  if (least > 0 && most / least > 20) return std::log(value / least) / std::log(most / least);
  return (value - least) / (most - least);
}

}  // namespace

ExperimentChart::ExperimentChart(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Result of the experiment"));
}

void ExperimentChart::setResult(ExperimentResult result) {
  result_ = std::move(result);
  grid_ = grid_of(result_);
  if (!allows(view_)) view_ = ExperimentView::Bars;
  update();
}

void ExperimentChart::setOutcome(Outcome outcome) {
  outcome_ = outcome;
  update();
}

void ExperimentChart::setView(ExperimentView view) {
  if (!allows(view)) return;
  view_ = view;
  update();
}

bool ExperimentChart::allows(ExperimentView view) const {
  if (view == ExperimentView::HeatMap) return grid_.groups.size() > 1;
  if (view == ExperimentView::Parallel) return result_.trials.size() > 1;
  return view != ExperimentView::Lines || grid_.numbers.size() > 2;
}

const TrialResult* ExperimentChart::trialAt(int group, int item) const {
  const int trial = grid_.at(group, item);
  return trial >= 0 && trial < static_cast<int>(result_.trials.size()) ? &result_.trials[static_cast<size_t>(trial)]
                                                                       : nullptr;
}

std::optional<Measured> ExperimentChart::at(int group, int item) const {
  const TrialResult* trial = trialAt(group, item);
  return trial ? measured(*trial, outcome_) : std::nullopt;
}

bool ExperimentChart::hasNumbers() const {
  return std::ranges::any_of(result_.trials, [](const TrialResult& trial) { return !trial.runs.empty(); });
}

ExperimentChart::Span ExperimentChart::span() const {
  std::optional<Span> all;
  for (int group = 0; group < grid_.groups.size(); ++group)
    for (int item = 0; item < grid_.items.size(); ++item)
      if (const auto m = at(group, item))
        all = all ? Span{std::min(all->least, m->median), std::max(all->most, m->most)} : Span{m->median, m->most};
  return all.value_or(Span{});
}

QString ExperimentChart::valueText(double value) const {
  return value >= 1e5 ? significant_text(value) : outcome_text(outcome_, value);
}

void ExperimentChart::render(QPainter& painter, const QRectF& area) const {
  painter.fillRect(area, theme().base);
  if (grid_.items.isEmpty()) return;
  switch (view_) {
    case ExperimentView::Bars:
      return renderBars(painter, area);
    case ExperimentView::HeatMap:
      return renderMap(painter, area);
    case ExperimentView::Lines:
      return renderLines(painter, area);
    case ExperimentView::Parallel:
      return ParallelCoordinates(result_, outcome_).render(painter, area);
  }
}

void ExperimentChart::renderBars(QPainter& painter, const QRectF& area) const {
  const int panels = static_cast<int>(grid_.groups.size());
  const int across = std::clamp(static_cast<int>(area.width() / kPanelWidth), 1, panels),
            down = (panels + across - 1) / across;
  const double width = (area.width() - 16) / across, height = (area.height() - 12) / down;
  const BarScale scale = barScale();
  for (int group = 0; group < panels; ++group)
    paintBars(painter,
              QRectF(area.left() + 8 + group % across * width, area.top() + 6 + group / across * height, width - 12,
                     height - 6),
              group, scale);
}

// Values that differ by more than a factor of ten use a log scale. Otherwise the short bars would be invisible.
ExperimentChart::BarScale ExperimentChart::barScale() const {
  const Span all = span();
  if (all.least <= 0 || all.most / all.least <= 10) return {0, std::max(all.most, 1e-12), false};
  return {std::pow(10, std::floor(std::log10(all.least / 1.5))), all.most, true};
}

double ExperimentChart::BarScale::share(double value) const {
  if (!log) return std::max(0.0, value) / to;
  return value <= from ? 0 : std::log(value / from) / std::log(to / from);
}

void ExperimentChart::paintDecades(QPainter& painter, const QRectF& space, const BarScale& scale) const {
  painter.setPen(theme().grid);
  for (double value = scale.from * 10; scale.log && value <= scale.to; value *= 10) {
    const double x = space.left() + scale.share(value) * space.width();
    painter.drawLine(QPointF(x, space.top()), QPointF(x, space.bottom()));
  }
}

void ExperimentChart::paintBars(QPainter& painter, const QRectF& area, int group, const BarScale& scale) const {
  const int count = static_cast<int>(grid_.items.size());
  const QString title = grid_.groups[group].isEmpty()
                            ? grid_.axis
                            : tr("%1 %2, by %3").arg(grid_.group_axis, grid_.groups[group], grid_.axis);
  const QString note = scale.log && group == 0 ? tr("logarithmic, a line each power of ten") : QString();
  painter.setFont(ui_font(12, 600));
  painter.setPen(theme().text);
  const double top = title.isEmpty() && note.isEmpty() ? 0 : kPanelTitle;
  if (top > 0) draw_left(painter, QRectF(area.left() + 4, area.top(), area.width(), kPanelTitle), title);
  const double written = title.isEmpty() ? 0 : painter.fontMetrics().horizontalAdvance(title) + 14;
  painter.setFont(ui_font(11));
  painter.setPen(theme().quiet);
  if (!note.isEmpty() && written + 150 < area.width())
    draw_left(painter, QRectF(area.left() + 4 + written, area.top(), area.width() - written, kPanelTitle), note);
  painter.setFont(ui_font(12));
  double label = 30;
  for (const QString& item : grid_.items) label = std::max(label, painter.fontMetrics().horizontalAdvance(item) + 12.0);
  label = std::min(label, area.width() * 0.42);
  const double height = std::min(kRowMost, (area.height() - top) / count);
  paintDecades(painter,
               QRectF(area.left() + label, area.top() + top, area.width() - label - kValueWidth, count * height),
               scale);
  for (int item = 0; item < count; ++item)
    paintBar(painter, QRectF(area.left(), area.top() + top + item * height, area.width(), height), label, group, item,
             scale);
  painter.setPen(theme().strong_border);
  painter.drawLine(QPointF(area.left() + label, area.top() + top),
                   QPointF(area.left() + label, area.top() + top + count * height));
  if (group > 0 || hasNumbers()) return;
  painter.setFont(ui_font(12.5));
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(area.left() + label, area.top() + top, area.width() - label, count * height), Qt::AlignCenter, tr("Press Run: each combination gets a bar."));
}

void ExperimentChart::paintBar(QPainter& painter, const QRectF& row, double left, int group, int item,
                               const BarScale& scale) const {
  const Theme& t = theme();
  const TrialResult* trial = trialAt(group, item);
  const bool skipped = trial && !trial->trial.skipped.empty() && trial->runs.empty();  // the title has the number of these
  painter.setFont(ui_font(12));
  painter.setPen(skipped ? t.quiet : t.text);
  draw_left(painter, QRectF(row.left() + 4, row.top(), left - 10, row.height()), grid_.items[item]);
  if (!trial || skipped) return;
  const auto value = measured(*trial, outcome_);
  const double x0 = row.left() + left, space = row.width() - left - kValueWidth;
  if (!value) {
    painter.setPen(t.quiet);
    const QString why = state_of(*trial);
    if (why.isEmpty() && trial->runs.empty()) return;
    return draw_left(painter, QRectF(x0 + 8, row.top(), row.right() - x0 - 8, row.height()),
                     why.isEmpty() ? tr("no finite number") : why);
  }
  const auto x = [&](double v) { return x0 + scale.share(v) * space; };
  const double inset = std::min(9.0, row.height() * 0.2);
  const QRectF bar(x0, row.top() + inset, std::max(1.5, x(value->median) - x0), row.height() - 2 * inset);
  painter.setPen(QPen(t.focus, 1));
  painter.setBrush(t.chosen);
  painter.drawRect(bar);
  if (value->runs > 1 && value->most > value->least) {  // the range of the repeats
    painter.setPen(QPen(t.text, 1.4));
    const double y = bar.center().y();
    painter.drawLine(QPointF(x(value->least), y), QPointF(x(value->most), y));
    for (double end : {x(value->least), x(value->most)}) painter.drawLine(QPointF(end, y - 4), QPointF(end, y + 4));
  }
  painter.setFont(ui_font(12, 600));
  painter.setPen(t.text);
  draw_number(painter, QRectF(std::max(x(value->most), bar.right()) + 7, row.top(), kValueWidth, row.height()),
              Qt::AlignLeft | Qt::AlignVCenter, valueText(value->median));
}

void ExperimentChart::renderMap(QPainter& painter, const QRectF& area) const {
  painter.setFont(ui_font(12));
  double label = 40;
  for (const QString& group : grid_.groups)
    label = std::max(label, painter.fontMetrics().horizontalAdvance(group) + 20.0);
  const QRectF plot = area.adjusted(label + 8, 44, -96, -12);
  const double width = plot.width() / static_cast<double>(grid_.items.size()),
               height = std::min(64.0, plot.height() / static_cast<double>(grid_.groups.size()));
  painter.setPen(theme().text);
  painter.setFont(ui_font(12, 600));
  painter.drawText(QRectF(plot.left(), area.top() + 4, plot.width(), 18), Qt::AlignHCenter, grid_.axis);
  draw_left(painter, QRectF(area.left() + 10, area.top() + 22, label, 18), grid_.group_axis);
  painter.setFont(ui_font(12));
  painter.setPen(theme().secondary);
  for (int item = 0; item < grid_.items.size(); ++item)
    painter.drawText(QRectF(plot.left() + item * width, plot.top() - 20, width, 18), Qt::AlignCenter,
                     painter.fontMetrics().elidedText(grid_.items[item], Qt::ElideRight, static_cast<int>(width)));
  const Span all = span();
  for (int group = 0; group < grid_.groups.size(); ++group) {
    painter.setFont(ui_font(12));
    painter.setPen(theme().secondary);
    draw_left(painter, QRectF(area.left() + 10, plot.top() + group * height, label, height), grid_.groups[group]);
    for (int item = 0; item < grid_.items.size(); ++item)
      paintCell(painter,
                QRectF(plot.left() + item * width, plot.top() + group * height, width, height).adjusted(1, 1, -1, -1),
                group, item, all);
  }
  paintScale(painter, QRectF(plot.right() + 18, plot.top(), 14, std::min(plot.height(), 160.0)), all);
}

void ExperimentChart::paintCell(QPainter& painter, const QRectF& box, int group, int item, const Span& all) const {
  const auto value = at(group, item);
  if (!value) {
    painter.fillRect(box, theme().header);
    painter.setPen(theme().quiet);
    const TrialResult* trial = trialAt(group, item);
    return draw_left(painter, box.adjusted(6, 0, -4, 0), trial ? state_of(*trial).section(':', 0, 0) : QString());
  }
  const QColor fill = mixed(theme().focus, theme().header, 0.08 + 0.82 * share_of(value->median, all.least, all.most));
  painter.fillRect(box, fill);
  painter.setPen(theme().ink_on(fill));
  painter.setFont(ui_font(12.5, 600));
  draw_number(painter, box, Qt::AlignCenter, valueText(value->median));
}

void ExperimentChart::paintScale(QPainter& painter, const QRectF& box, const Span& all) const {
  if (all.most <= 0) return;
  for (int i = 0; i < 32; ++i)
    painter.fillRect(
        QRectF(box.left(), box.bottom() - (i + 1) * box.height() / 32, box.width(), box.height() / 32 + 0.5),
        mixed(theme().focus, theme().header, 0.08 + 0.82 * i / 31.0));
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  draw_number(painter, QRectF(box.right() + 5, box.top() - 4, 60, 14), Qt::AlignLeft | Qt::AlignVCenter,
              valueText(all.most));
  draw_number(painter, QRectF(box.right() + 5, box.bottom() - 10, 60, 14), Qt::AlignLeft | Qt::AlignVCenter,
              valueText(all.least));
}

void ExperimentChart::paintLineGrid(QPainter& painter, const QRectF& plot, const Span& decades) const {
  painter.setFont(ui_font(11));
  for (int power = static_cast<int>(decades.least); power <= static_cast<int>(decades.most); ++power) {
    const double y = plot.bottom() - (power - decades.least) / (decades.most - decades.least) * plot.height();
    painter.setPen(theme().grid);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(theme().secondary);
    draw_number(painter, QRectF(plot.left() - 70, y - 8, 64, 16), Qt::AlignRight | Qt::AlignVCenter,
                significant_text(std::pow(10.0, power)));
  }
  painter.setPen(theme().strong_border);
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  painter.drawLine(plot.bottomLeft(), plot.topLeft());
}

// Both axes are logarithmic, because times grow by factors over sizes.
void ExperimentChart::renderLines(QPainter& painter, const QRectF& area) const {
  const QRectF plot = area.adjusted(82, 16, -130, -46);
  const Span all = span();
  const double least = all.least > 0 ? all.least : 1e-3, low = std::floor(std::log10(least)),
               high = std::max(low + 1, std::ceil(std::log10(std::max(all.most, least))));
  paintLineGrid(painter, plot, {low, high});
  const auto [first, last] = std::ranges::minmax(grid_.numbers);
  const auto x = [&, a = std::log(first), b = std::log(last)](double size) {
    return plot.left() + (std::log(size) - a) / std::max(1e-9, b - a) * plot.width();
  };
  const auto y = [&](double value) {
    return plot.bottom() - (std::log10(std::max(value, least)) - low) / (high - low) * plot.height();
  };
  painter.setPen(theme().secondary);
  for (int item = 0; item < grid_.items.size(); ++item)
    painter.drawText(QRectF(x(grid_.numbers[static_cast<size_t>(item)]) - 45, plot.bottom() + 5, 90, 16),
                     Qt::AlignHCenter, grid_.items[item]);
  painter.drawText(QRectF(plot.left(), plot.bottom() + 24, plot.width(), 16), Qt::AlignHCenter, grid_.axis);
  painter.setRenderHint(QPainter::Antialiasing);
  for (int group = 0; group < grid_.groups.size(); ++group) {
    const QColor colour = theme().run[group % 8];
    QPolygonF line;
    painter.setPen(QPen(colour, 1.7, group < 4 ? Qt::SolidLine : Qt::DashLine));
    for (int item = 0; item < grid_.items.size(); ++item)
      if (const auto m = at(group, item)) {
        const double at_x = x(grid_.numbers[static_cast<size_t>(item)]);
        line << QPointF(at_x, y(m->median));
        painter.drawLine(QPointF(at_x, y(m->least)), QPointF(at_x, y(m->most)));
      }
    painter.drawPolyline(line);
    painter.setBrush(colour);
    for (const QPointF& p : line) painter.drawEllipse(p, 2.6, 2.6);
    painter.setBrush(Qt::NoBrush);
    if (line.isEmpty()) continue;
    painter.setPen(theme().text);
    painter.setFont(ui_font(12));
    draw_left(painter, QRectF(line.last().x() + 9, line.last().y() - 9, area.right() - line.last().x() - 12, 18),
              grid_.groups[group].isEmpty() ? info(outcome_).name : grid_.groups[group]);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void ExperimentChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
}

}  // namespace ws::app
