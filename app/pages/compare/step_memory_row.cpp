#include "app/pages/compare/step_memory_row.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>

#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

using Points = std::deque<prof::CounterPoint>;

// Returns the point whose value is valid at a time, or the end if there is none before.
Points::const_iterator holding(const Points& points, prof::TimeNs time) {
  const auto after = std::upper_bound(points.begin(), points.end(), time,
                                      [](prof::TimeNs t, const prof::CounterPoint& p) { return t < p.time; });
  return after == points.begin() ? points.end() : after - 1;
}

const prof::CounterPoint* greatest(const Points& points, TimeRange range) {
  auto at = holding(points, range.begin);
  if (at == points.end()) at = points.begin();
  const prof::CounterPoint* most = nullptr;
  for (; at != points.end() && at->time < range.end; ++at)
    if (!most || at->value > most->value) most = &*at;
  return most;
}

}  // namespace

double StepMemoryRow::height(size_t run) const {
  const auto& memory = shown_.runs[run].memory;
  if (!memory || memory->empty() || shown_.most_bytes <= 0) return 0;
  return shown_.small() || shown_.tight ? 24 : 38;
}

TimeRange StepMemoryRow::range_of(size_t run) const {
  const prof::StepWindowNs& step = shown_.windows[run];
  const prof::TimeNs length = std::max<prof::TimeNs>(step.end - step.begin, 1);
  return {step.begin, step.begin + length * (shown_.align == StepAlign::Start ? 12 : 1)};
}

// The arena hands out no blocks, so that only its reserved memory is known. Then all runs show what they reserve.
bool StepMemoryRow::ofReserved() const {
  return std::ranges::any_of(shown_.runs, [](const SteppedRun& run) { return run.memory && !run.memory->empty() && run.memory->lines() == prof::MemoryLines::Reserved; });
}

const prof::CounterTrack& StepMemoryRow::trackOf(size_t run) const {
  const prof::MemoryCurves& memory = *shown_.runs[run].memory;
  return ofReserved() ? memory.reserved() : memory.used();
}

QString StepMemoryRow::peakText(size_t run) const {
  const auto* peak = shown_.runs[run].memory ? greatest(trackOf(run).points, range_of(run)) : nullptr;
  if (!peak) return {};
  const prof::MemoryCurves& memory = *shown_.runs[run].memory;
  const auto* used = memory.lines() == prof::MemoryLines::Both ? greatest(memory.used().points, range_of(run)) : nullptr;
  if (!ofReserved()) return QObject::tr("peak used %1").arg(bytes_text(peak->value));
  const QString reserved = bytes_text(peak->value), most = used ? bytes_text(used->value) : reserved;
  return QObject::tr("reserved %1").arg(reserved) + (most == reserved ? QString() : QObject::tr(", peak used %1").arg(most));
}

double StepMemoryRow::mostBytes() const {
  double bytes = 0;
  for (size_t i = 0; i < shown_.runs.size(); ++i)
    if (shown_.runs[i].memory)
      if (const auto* most = greatest(trackOf(i).points, range_of(i))) bytes = std::max(bytes, most->value);
  return bytes;
}

void StepMemoryRow::paint(StepCanvas& canvas, const QRectF& row, size_t index) const {
  QPainter& painter = canvas.painter;
  const ByteUnit unit = byte_unit(shown_.most_bytes);
  painter.setPen(theme().secondary);
  painter.setFont(ui_font(11));
  painter.drawText(QRectF(row.left() - SteppedRuns::kGutter + 18, row.top(), SteppedRuns::kGutter - 60, row.height()),
                   Qt::AlignLeft | Qt::AlignVCenter, QObject::tr("memory"));
  painter.setFont(ui_font(10));
  const QRectF ends(row.left() - 58, row.top() + 1, 54, row.height() - 2);
  painter.drawText(ends, Qt::AlignRight | Qt::AlignTop,
                   QObject::tr("%1 %2").arg(significant_text(shown_.most_bytes / unit.bytes), QString::fromUtf8(unit.name)));
  painter.drawText(ends, Qt::AlignRight | Qt::AlignBottom, QStringLiteral("0"));
  const double zero = row.bottom() - 2, scale = (row.height() - 8) / shown_.most_bytes;
  const auto y = [&](double bytes) { return std::max(row.top(), zero - bytes * scale); };
  const TimeRange view = shown_.runRange(index, shown_.range);
  const prof::CounterTrack& used = trackOf(index);
  const auto before = holding(used.points, view.begin);
  QPainterPath line;
  double now = before == used.points.end() ? 0 : before->value;
  line.moveTo(row.left(), y(now));
  for (const prof::LodPoint& point : prof::lod(used, view.begin, view.end, static_cast<int>(row.width()))) {
    const double x = row.left() + point.x;
    line.lineTo(x, y(now));
    if (point.min < point.max) line.lineTo(x, y(point.max)), line.lineTo(x, y(point.min));
    line.lineTo(x, y(now = point.last));
  }
  line.lineTo(row.right(), y(now));
  QPainterPath area = line;
  area.lineTo(row.right(), zero);
  area.lineTo(row.left(), zero);
  QColor ink = theme().run[std::max(0, shown_.runs[index].run->slot) % 8], fill = ink;
  fill.setAlphaF(0.16F);
  painter.fillPath(area, fill);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(ink, 1.3));
  painter.drawPath(line);
}

void StepMemoryRow::paintPeak(StepCanvas& canvas, const QRectF& row, size_t index) const {
  const prof::CounterPoint* peak = greatest(trackOf(index).points, range_of(index));
  if (!peak) return;
  const TimeRange step = range_of(index);
  const auto at = [&](prof::TimeNs time) { return canvas.scale.x(time - shown_.at[index]); };
  const double x = at(std::max(peak->time, step.begin)), end = at(step.end),
               y = row.bottom() - 2 - peak->value * (row.height() - 8) / shown_.most_bytes;
  if (x < row.left() || x > row.right()) return;
  QPainter& painter = canvas.painter;
  painter.setFont(ui_font(11, 600));
  const QString text = peakText(index);
  const double width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 8;
  const bool below = y < row.center().y();
  // Put the text beside a step that is shorter than the text.
  const double left = end - at(step.begin) < width + 10 ? end + 3 : x + 5;
  constexpr double kHeight = 14;
  const double top = std::clamp(below ? y + 2 : y - 15, row.top(), std::max(row.top(), row.bottom() - kHeight));
  const QRectF box(std::min(left, row.right() - width), top, width, kHeight);
  QColor veil = theme().base;
  veil.setAlphaF(0.75F);
  painter.fillRect(box, veil);
  painter.setPen(theme().text);
  painter.drawText(box.adjusted(4, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, text);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(theme().run[std::max(0, shown_.runs[index].run->slot) % 8]);
  painter.setPen(QPen(theme().base, 1));
  painter.drawEllipse(QPointF(x, y), 3, 3);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setBrush(Qt::NoBrush);
}

}  // namespace ws::app
