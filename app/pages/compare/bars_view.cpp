#include "app/pages/compare/bars_view.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/charts/series.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kTitle = 26, kLegend = 22, kBadge = 26;

double us_of(const prof::Breakdown& parts, int64_t ns) {
  return static_cast<double>(ns) * 1e-3 / static_cast<double>(std::max<int64_t>(1, parts.steps));
}

double part_us(const prof::Breakdown& parts, prof::Meaning meaning) { return us_of(parts, parts.times[static_cast<size_t>(meaning)]); }

double wall_us(const prof::Breakdown& parts) {
  return us_of(parts, parts.wall());
}

}  // namespace

BarsView::BarsView(QWidget* parent) : QWidget(parent) { setAccessibleName(tr("Bars of the compared runs")); }

void BarsView::setRuns(std::vector<BarRun> runs) {
  runs_ = std::move(runs);
  update();
}

double BarsView::rowHeight(const QRectF& area) const {
  return std::min(50.0, (area.height() - kTitle - kLegend) / static_cast<double>(std::max<size_t>(1, runs_.size())));
}

void BarsView::paintName(QPainter& painter, const QRectF& row, const BarRun& run, double width) const {
  draw_badge(painter, QRectF(row.left() + 4, row.center().y() - 7.5, 15, 15), run.slot);
  if (width < 60) return;
  painter.setFont(ui_font(12));
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(row.left() + kBadge, row.top(), width - kBadge - 6, row.height()), Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(run.title, Qt::ElideRight, static_cast<int>(width - kBadge - 8)));
}

// The parts of a bar sum to the step, so the column of numbers adds up too.
void BarsView::paintSplit(QPainter& painter, const QRectF& area) const {
  painter.setFont(ui_font(12, 600));
  painter.setPen(theme().text);
  painter.drawText(QRectF(area.left() + 4, area.top(), area.width(), kTitle), Qt::AlignVCenter,
                   tr("Step time, median, µs"));
  double most = 1e-9;
  for (const BarRun& run : runs_) most = std::max(most, wall_us(run.parts));
  const double names = std::min(190.0, area.width() * 0.26), height = rowHeight(area);
  const double scale = (area.width() - names - 70) / most;
  QRectF row(area.left(), area.top() + kTitle, area.width(), height);
  for (const BarRun& run : runs_) {
    paintName(painter, row, run, names);
    double x = row.left() + names;
    for (const prof::BreakdownPart& part : prof::parts_of(run.parts)) {
      const double us = us_of(run.parts, part.ns), width = us * scale;
      const QRectF box(x, row.top() + 4, width, height - 8);
      painter.setBrushOrigin(box.topLeft());
      if (width > 0) draw_fill(painter, box, part_brush(part.id));
      const QString text = fixed_text(us, 1);
      painter.setFont(number_font(10.5, 500));
      const bool hatched = part.id.meaning == prof::Meaning::Idle || part.id.meaning == prof::Meaning::Launch;
      painter.setPen(theme().ink_on(part_colour(part.id)));
      if (!hatched && number_width(painter.font(), text) + 8 < width) draw_number(painter, box, Qt::AlignCenter, text);
      x += width;
    }
    painter.setFont(number_font(12, 600));
    painter.setPen(theme().text);
    draw_number(painter, QRectF(x + 6, row.top(), 80, height), Qt::AlignLeft | Qt::AlignVCenter,
                run.parts.steps > 0 ? us_text(wall_us(run.parts)) : tr("not traced"));
    row.translate(0, height);
  }
}

void BarsView::paintLegend(QPainter& painter, const QRectF& area) const {
  double x = area.left() + 6;
  painter.setFont(ui_font(11));
  std::vector<prof::PartId> shown;
  for (const BarRun& run : runs_)
    for (const prof::BreakdownPart& part : prof::parts_of(run.parts))
      if (std::ranges::find(shown, part.id) == shown.end()) shown.push_back(part.id);
  for (const prof::PartId& id : shown) {
    const QString name = QString::fromUtf8(prof::part_name(id));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(name);
    if (x + width + 26 > area.right()) return;
    draw_fill(painter, QRectF(x, area.center().y() - 4.5, 9, 9), part_brush(id));
    painter.setPen(theme().secondary);
    painter.drawText(QRectF(x + 14, area.top(), width + 2, area.height()), Qt::AlignVCenter, name);
    x += width + 28;
  }
}

double BarsView::most(double BarRun::*value) const {
  double most = 0;
  for (const BarRun& run : runs_)
    if (!std::isnan(run.*value)) most = std::max(most, run.*value);
  return most;
}

void BarsView::paintValues(QPainter& painter, const QRectF& area, const QString& title, double BarRun::*value,
                           int decimals, double unit) const {
  painter.setFont(ui_font(12, 600));
  painter.setPen(theme().text);
  painter.drawText(QRectF(area.left() + 4, area.top(), area.width(), kTitle), Qt::AlignVCenter, title);
  const double least = unit * std::pow(10.0, -decimals);  // a value that prints as 0 has no bar
  const double height = rowHeight(area), scale = (area.width() - kBadge - 64) / std::max(least, most(value));
  QRectF row(area.left(), area.top() + kTitle, area.width(), height);
  for (const BarRun& run : runs_) {
    paintName(painter, row, run, 0);
    const double width = std::isnan(run.*value) ? 0 : run.*value * scale;
    QColor fill = theme().run[std::max(0, run.slot) % 8];
    painter.setPen(QPen(fill, 1.5));
    fill.setAlphaF(0.22F);
    painter.setBrush(fill);
    if (width > 0) painter.drawRect(QRectF(row.left() + kBadge, row.top() + 6, width, height - 12));
    painter.setBrush(Qt::NoBrush);
    painter.setFont(number_font(12, 600));
    painter.setPen(theme().text);
    draw_number(painter, QRectF(row.left() + kBadge + width + 6, row.top(), 80, height),
                Qt::AlignLeft | Qt::AlignVCenter,
                std::isnan(run.*value) ? QStringLiteral("–") : fixed_text(run.*value / unit, decimals));
    row.translate(0, height);
  }
}

void BarsView::render(QPainter& painter, const QRectF& area) const {
  painter.fillRect(area, theme().base);
  if (runs_.empty()) return;
  const double split = area.width() * 0.56, rest = (area.width() - split) / 2;
  const QRectF inner = area.adjusted(8, 4, -8, -4);
  paintSplit(painter, QRectF(inner.left(), inner.top(), split - 16, inner.height()));
  const double below = inner.top() + kTitle + rowHeight(inner) * static_cast<double>(runs_.size());
  paintLegend(painter, QRectF(inner.left(), std::min(below + 4, inner.bottom() - kLegend), split, kLegend));
  const ByteUnit unit = byte_unit(most(&BarRun::peak_bytes));
  paintValues(painter, QRectF(inner.left() + split, inner.top(), rest - 14, inner.height()),
              tr("Peak memory, %1").arg(unit.name), &BarRun::peak_bytes, unit.bytes < kMiB ? 1 : 2, unit.bytes);
  paintValues(painter, QRectF(inner.left() + split + rest, inner.top(), rest - 14, inner.height()),
              tr("Allocator calls per step"), &BarRun::calls, 1);
}

void BarsView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
}

QByteArray BarsView::csv() const {
  QByteArray out = "run,step_us";
  for (size_t m = 0; m < prof::kMeanings; ++m)
    out += "," + QByteArray(prof::meaning_name(static_cast<prof::Meaning>(m)));
  out += ",peak_mib,driver_calls\n";
  for (const BarRun& run : runs_) {
    out += QByteArray::fromStdString(csv_cell(run.title.toStdString())) + ',' + QByteArray::number(wall_us(run.parts));
    for (size_t m = 0; m < prof::kMeanings; ++m) out += ',' + QByteArray::number(part_us(run.parts, static_cast<prof::Meaning>(m)));
    const auto number = [](double v) { return std::isnan(v) ? QByteArray() : QByteArray::number(v); };
    out += ',' + number(run.peak_bytes / kMiB) + ',' + number(run.calls) + '\n';
  }
  return out;
}

}  // namespace ws::app
