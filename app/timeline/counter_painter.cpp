#include "app/timeline/counter_painter.h"

#include <QPainterPath>
#include <cmath>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

double rounded_up(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (double factor : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0})
    if (factor * power >= value) return factor * power;
  return 10 * power;
}

// Value at `time`: the value of the last point at or before it.
std::optional<double> value_at(const prof::CounterTrack& counter, prof::TimeNs time) {
  auto it = std::partition_point(counter.points.begin(), counter.points.end(),
                                 [time](const prof::CounterPoint& p) { return p.time <= time; });
  if (it == counter.points.begin()) return std::nullopt;
  return (it - 1)->value;
}

struct Reach {
  double least, most;
};
Reach reach(const prof::CounterTrack& counter, const TimeRange& range) {
  constexpr int kPieces = 400;
  const double first = value_at(counter, range.begin).value_or(0);
  Reach all{first, first};
  for (const auto& point : prof::lod(counter, range.begin, range.end, kPieces))
    all = {std::min(all.least, point.min), std::max(all.most, point.max)};
  return all;
}

bool is_reserved(const prof::CounterTrack& counter) {
  return counter.kind == prof::CounterKind::MemoryReserved || counter.kind == prof::CounterKind::PoolReserved;
}

}  // namespace

// The largest visible value, in the counter's own unit.
double CounterPainter::mostInSight(const Lane& lane) const {
  double most = 0;
  for (const CounterRef& ref : lane.counters) {
    const auto& counter = model_.counter(ref);
    if (counter.unit == "%") return 96;
    most = std::max(most, reach(counter, model_.runRange(ref.run, g_->range)).most);
  }
  return most;
}

void CounterPainter::setTheme() { small_.setFont(ui_font(10.5)); }

void CounterPainter::paint(QPainter& painter, const TimelineGeometry& geometry, const Lane& lane, int y) {
  p_ = &painter, g_ = &geometry;
  if (lane.flat) return paintFlat(lane, y);
  const Theme& t = theme();
  const double most = mostInSight(lane);
  const bool bytes = !lane.counters.empty() && model_.counter(lane.counters.front()).unit == "B";
  const ByteUnit unit = bytes ? byte_unit(most) : ByteUnit{1, ""};
  const double top = rounded_up(most / unit.bytes * 1.04);
  const QRectF band(g_->gutter, y + 6, g_->size.width() - g_->gutter, lane.height - 12);
  p_->save();
  p_->setClipRect(QRectF(g_->gutter, y, band.width(), lane.height).intersected(QRectF(g_->plot())));
  const int lines = lane.kind == LaneKind::Memory && lane.height > 90 ? 4 : 1;
  for (int i = 0; i <= lines; ++i)
    p_->fillRect(QRectF(band.left(), std::round(band.bottom() - band.height() * i / lines), band.width(), 1), t.grid);
  for (const CounterRef& ref : lane.counters) {
    const auto& counter = model_.counter(ref);
    const bool memory = lane.kind == LaneKind::Memory;
    paintCurve(counter, ref.run, band, top * unit.bytes, memory && !is_reserved(counter),
               memory && is_reserved(counter));
  }
  if (lane.kind == LaneKind::Memory) paintMemoryLabels(lane, band, top * unit.bytes);
  p_->restore();
  const QString high =
      (top >= 100 ? count_text(std::lround(top)) : significant_text(top, 2)) + (bytes ? " " : "") + unit.name;
  for (const auto& [text, at] : {std::pair{high, band.top() + 2}, std::pair{QString("0"), band.bottom() - 2}})
    small_.draw(*p_, g_->gutter - small_.width(text) - 5, at, text, t.quiet);
  p_->fillRect(QRectF(0, y + lane.height - 1, g_->size.width(), 1), t.minor_grid);
}

// Writes "A 66.5 KiB" for each run.
void CounterPainter::paintFlat(const Lane& lane, int y) {
  double x = g_->gutter + 8;
  for (const CounterRef& ref : lane.counters) {
    const auto& counter = model_.counter(ref);
    if (counter.points.empty() || (lane.kind == LaneKind::Memory && !is_reserved(counter))) continue;
    const auto [least, most] = std::ranges::minmax(counter.points, {}, &prof::CounterPoint::value);
    const int slot = std::max(0, model_.run(ref.run)->slot);
    const QString amount = counter.unit == "B" ? bytes_text(most.value)
                                               : significant_text(most.value) + " " + QString::fromStdString(counter.unit);
    const QString text = run_letter(slot) + (least.value < most.value ? QObject::tr(" up to ") : QStringLiteral(" ")) +
                         amount.trimmed();
    small_.draw(*p_, x, y + lane.height / 2.0, text, theme().run[slot % 8]);
    x += small_.width(text) + 24;
  }
  p_->fillRect(QRectF(0, y + lane.height - 1, g_->size.width(), 1), theme().minor_grid);
}

void CounterPainter::paintCurve(const prof::CounterTrack& counter, int run, QRectF band, double top, bool dotted,
                                bool area) {
  const TimeRange range = model_.runRange(run, g_->range);
  const auto y = [&](double value) { return band.bottom() - std::clamp(value / top, 0.0, 1.0) * band.height(); };
  QPainterPath path;
  auto held = value_at(counter, range.begin);
  if (held) path.moveTo(band.left(), y(*held));
  for (const auto& point : prof::lod(counter, range.begin, range.end, std::max(1, static_cast<int>(band.width())))) {
    const double x = band.left() + static_cast<double>(point.x);
    if (held)
      path.lineTo(x, y(*held));
    else
      path.moveTo(x, y(point.min));
    path.lineTo(x, y(point.min)), path.lineTo(x, y(point.max)), path.lineTo(x, y(point.last));
    held = point.last;
  }
  if (!held || counter.points.empty()) return;
  const double last =
      g_->scale().x(std::max(counter.points.back().time, model_.run(run)->trace.last_time()) - model_.offset(run));
  const double end = std::min(band.right(), last);
  if (end > band.left()) path.lineTo(end, y(*held));
  const QColor colour = theme().run[std::max(0, model_.run(run)->slot) % 8];
  if (area) {
    QPainterPath under = path;
    under.lineTo(std::max(band.left(), end), band.bottom()), under.lineTo(path.elementAt(0).x, band.bottom());
    QColor tint = colour;
    tint.setAlphaF(0.13F);
    p_->fillPath(under, tint);
  }
  p_->setPen(dotted ? QPen(colour, 1.2, Qt::DotLine) : QPen(colour, 1.7));
  p_->drawPath(path);
}

// The most visible memory that each run holds. Runs with the same amount share an entry.
std::vector<CounterPainter::Held> CounterPainter::heldInSight(const Lane& lane) const {
  std::vector<Held> all;
  for (const CounterRef& ref : lane.counters) {
    const auto& counter = model_.counter(ref);
    if (!is_reserved(counter)) continue;
    const auto [least, most] = reach(counter, model_.runRange(ref.run, g_->range));
    if (most <= 0) continue;
    // Without a pool, all that is reserved is used. Of an arena, only the reserved block is known.
    const bool arena = ref.counter == kReservedCurve && model_.memoryLines(ref.run) == prof::MemoryLines::Reserved;
    const bool used_all = !arena && std::ranges::any_of(lane.counters, [&](const CounterRef& other) {
      const auto& used = model_.counter(other);
      return other.run == ref.run && !is_reserved(used) && reach(used, model_.runRange(ref.run, g_->range)).most >= most;
    });
    const int slot = std::max(0, model_.run(ref.run)->slot);
    const QString amount = (used_all ? QObject::tr("used") : QObject::tr("reserved")) + ' ' +
                           (least < most ? QObject::tr("up to %1") : QStringLiteral("%1")).arg(bytes_text(most)) +
                           (ref.counter >= kUsedCurve && !model_.run(ref.run)->hasChoices() ? QObject::tr(", by blocks made while recording") : QString());
    const auto same = std::ranges::find_if(all, [&](const Held& held) { return held.amount == amount; });
    if (same == all.end())
      all.push_back({run_letter(slot), amount, most, theme().run[slot % 8]});
    else
      same->letters += QStringLiteral(", ") + run_letter(slot), same->colour = theme().secondary;
  }
  return all;
}

// Leaves out a label that does not fit.
void CounterPainter::paintMemoryLabels(const Lane& lane, QRectF band, double top) {
  if (band.height() < 60) return;
  std::vector<QRectF> taken;
  for (const Held& held : heldInSight(lane)) {
    const QString text = held.letters + ' ' + held.amount;
    const double y = std::max(band.bottom() - held.bytes / top * band.height() - 16, band.top() + 2);
    QRectF box(band.left() + band.width() / 8, y, small_.width(text), 14);
    for (const QRectF& other : taken)
      if (other.intersects(box)) box.moveLeft(other.right() + 24);
    if (box.right() > band.right()) continue;
    taken.push_back(box);
    QColor ground = theme().base;  // readable on top of another run's line
    ground.setAlphaF(0.92F);
    p_->fillRect(box.adjusted(-3, 0, 3, 0), ground);
    small_.draw(*p_, box.left(), box.center().y(), text, held.colour);
  }
}

}  // namespace ws::app
