#include "app/pages/compare/step_painter.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/text/qt_text.h"
#include "app/timeline/block_label.h"
#include "app/timeline/timeline_painter.h"
#include "profiling/analysis/collectives.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {

namespace {
constexpr double kLeastElided = 60;  // px

// Uses the average letter width. Measuring each name would take longer than all other painting.
QString elided(const QString& name, const QFontMetricsF& metrics, double width) {
  const auto letters = static_cast<qsizetype>(width / metrics.averageCharWidth()) - 1;
  return name.size() <= letters ? name : name.left(letters) + QChar(0x2026);
}

QString work_text(long count, bool gpu) {
  if (gpu) return (count == 1 ? QObject::tr("%1 kernel") : QObject::tr("%1 kernels")).arg(count);
  return (count == 1 ? QObject::tr("%1 op") : QObject::tr("%1 ops")).arg(count);
}

}  // namespace

std::vector<StepPainter::Lane> StepPainter::lanes(size_t index) const {
  const Run& run = *shown_.runs[index].run;
  const prof::StepWindowNs step = shown_.align == StepAlign::Start ? prof::StepWindowNs{} : shown_.windows[index];
  std::vector<Lane> all;
  for (prof::StepLane& lane : step_lanes(run.marks(), run.trace, step, shown_.small() ? 3 : 5)) {
    const bool phases = prof::broad_kind(lane.track->kind) == prof::TrackKind::Phases, api = lane.track->kind == prof::TrackKind::Api;
    if (shown_.few && (lane.track->kind == prof::TrackKind::Copies || (phases && lane.track->depth > 0))) continue;
    const double height = phases ? 17 : shown_.small() ? 20 : shown_.tight ? 18 : api ? 24 : 28;
    all.push_back({std::move(lane), height});
  }
  return all;
}

double StepPainter::ribbonHeight(size_t below) const {
  const auto phases = [this](size_t i) {
    const auto& tracks = shown_.runs[i].run->marks().tracks();
    return std::ranges::any_of(tracks,
                               [](const prof::Track& t) { return prof::broad_kind(t.kind) == prof::TrackKind::Phases && t.spans > 0; });
  };
  if (!shown_.runs[below].run || !shown_.runs[below - 1].run || !phases(below) || !phases(below - 1)) return 6;
  return shown_.small() ? 26 : shown_.tight ? 24 : 44;
}

double StepPainter::runHeight(size_t run) const {
  double height = SteppedRuns::kHead;
  if (shown_.runs[run].run)
    for (const Lane& lane : lanes(run)) height += lane.height;
  return height + memory_.height(run);
}

// Lanes grow up to twice as tall, so that few runs fill the area.
void StepPainter::stretchInto(double height) const {
  double lanes = 0;
  for (size_t i = 0; i < shown_.runs.size(); ++i)
    if (shown_.runs[i].run)
      for (const Lane& lane : this->lanes(i)) lanes += lane.height;
  stretch_ = lanes > 0 ? std::clamp(1 + (height - contentHeight()) / lanes, 1.0, 2.0) : 1;
}

double StepPainter::contentHeight() const {
  double height = SteppedRuns::kRuler;
  for (size_t i = 0; i < shown_.runs.size(); ++i) height += runHeight(i) + (i > 0 ? ribbonHeight(i) : 0);
  return height + 6;
}

QRectF StepPainter::plotOf(const QRectF& area) const {
  return {area.left() + SteppedRuns::kGutter, area.top() + SteppedRuns::kRuler, area.width() - SteppedRuns::kGutter - 12, area.height() - SteppedRuns::kRuler};
}

void StepPainter::paintLane(StepCanvas& canvas, const QRectF& row, const Lane& lane, size_t index) const {
  QPainter& painter = canvas.painter;
  const Run& run = *shown_.runs[index].run;
  painter.setPen(theme().secondary);
  painter.setFont(ui_font(11));
  painter.drawText(QRectF(row.left() - SteppedRuns::kGutter + 18, row.top(), SteppedRuns::kGutter - 26, row.height()),
                   Qt::AlignLeft | Qt::AlignVCenter, text(lane.name));
  if (lane.track->kind == prof::TrackKind::Stream) {
    painter.setBrushOrigin(row.topLeft());
    painter.fillRect(row.adjusted(0, 2, 0, -2), theme().idle);
  }
  const TimeRange view = shown_.runRange(index, shown_.range);
  const bool phases = prof::broad_kind(lane.track->kind) == prof::TrackKind::Phases;
  // Text begins at the begin of the step: what is before it is under a veil.
  const double step_begin = canvas.scale.x(0);
  painter.setFont(ui_font(10.5, 500));
  const QFontMetricsF metrics(painter.font());
  for (const prof::LodRect& r : prof::lod(*lane.track, view.begin, view.end, static_cast<int>(row.width()))) {
    const double x0 = std::max(0.0, static_cast<double>(r.x0)),
                 x1 = std::min(row.width(), std::max(static_cast<double>(r.x1), x0 + 1));
    const QRectF box(row.left() + x0, row.top() + 2, x1 - x0, row.height() - 4);
    if (phases) {
      painter.fillRect(box, theme().raised);
      painter.setPen(theme().strong_border);
      painter.drawRect(box.adjusted(0, 0, -1, -1));
    } else {
      draw_fill(painter, box, meaning_brush(r.meaning));
      if (r.count == 1) paintTint(canvas, box, r, index);
    }
    QRectF space = box;
    if (box.right() > step_begin) space.setLeft(std::max(box.left(), step_begin));
    const bool reaches_far = r.busy > 0.95f && r.x1 - r.x0 >= 10;  // a long span that begins in the column of a tiny one
    if ((r.count > 1 && !reaches_far) || space.width() < 22) continue;
    const auto& ops = run.trace.ops;
    const bool known = !phases && r.span.op != prof::kNoOp && r.span.op < ops.size() && !ops[r.span.op].name.empty();
    const std::string& full = lane.trace->name(r.span.name);
    const double width = space.width() - 8;
    QString name = QString::fromStdString(full);
    bool fits = metrics.horizontalAdvance(name) <= width;
    if (!fits && known)
      name = QString::fromStdString(ops[r.span.op].name), fits = metrics.horizontalAdvance(name) <= width;
    if (!fits && !known && r.meaning == prof::Meaning::Communication)
      name = QString::fromStdString(prof::short_collective_name(prof::name_of_collective(full))), fits = metrics.horizontalAdvance(name) <= width;
    if (!fits && (phases || width < kLeastElided)) continue;
    if (!fits) name = elided(known ? name : short_kernel_name(full), metrics, width);
    painter.setPen(phases ? theme().text : theme().ink_on(theme().of(r.meaning)));
    painter.drawText(space.adjusted(4, 0, -4, 0), Qt::AlignLeft | Qt::AlignVCenter, name);
  }
}

// Colours are the blocks' and the runs'. A strip is ink: strong, pale, or dotted.
QBrush tint(Tint tint) {
  if (tint == Tint::New) return QBrush(theme().text, Qt::Dense5Pattern);
  return tint == Tint::Slower ? theme().text : theme().field_outline;
}

// Paints a strip under a block: its mean time is longer or shorter than in the first run, or the first run lacks it.
void StepPainter::paintTint(StepCanvas& canvas, const QRectF& box, const prof::LodRect& rect, size_t index) const {
  if (!shown_.tinted || index == 0 || box.width() < 2) return;
  const std::string key = prof::work_key(shown_.runs[index].run->trace, rect.span);
  const auto &own = shown_.runs[index].sample.mean_us, &first = shown_.runs[0].sample.mean_us;
  const auto mine = own.find(key);
  if (mine == own.end()) return;
  const auto theirs = first.find(key);
  const double ratio = theirs == first.end() || theirs->second <= 0 ? 0 : mine->second / theirs->second;
  if (ratio > 0.87 && ratio < 1.15) return;
  canvas.painter.fillRect(QRectF(box.left(), box.bottom() - 2.5, box.width(), 4.5), theme().base);
  const Tint against = ratio == 0 ? Tint::New : ratio > 1 ? Tint::Slower : Tint::Faster;
  canvas.painter.fillRect(QRectF(box.left(), box.bottom() - 1.5, box.width(), 3), tint(against));
}

// The step that stands for the median is nearly as long as the median: the text has the median, as everywhere.
QString StepPainter::lengthText(size_t index) const {
  const prof::StepWindowNs& window = shown_.windows[index];
  if (window.end <= window.begin) return {};
  const prof::StepSample& sample = shown_.runs[index].sample;
  const prof::Breakdown& median = sample.median_parts;
  const QString length = time_axis_text(static_cast<double>(window.end - window.begin) * 1e-3);
  if (sample.stride > 1) return QObject::tr("%1 for %2 steps").arg(length).arg(sample.stride);
  if (shown_.align != StepAlign::Median || median.steps == 0) return QObject::tr("step %1: %2").arg(shown_.align == StepAlign::Step ? shown_.step : 0).arg(length);
  return QObject::tr("median %1").arg(time_axis_text(static_cast<double>(median.wall()) * 1e-3 / static_cast<double>(median.steps)));
}

// The first run is the baseline; of a pair, the other one is the current run.
QString StepPainter::roleOf(size_t index) const {
  const size_t runs = shown_.runs.size();
  if (index == 0 && runs > 1) return QObject::tr("baseline");
  return runs == 2 ? QObject::tr("current") : QString();
}

void StepPainter::paintHead(StepCanvas& canvas, double top, size_t index) const {
  QPainter& painter = canvas.painter;
  const Run& run = *shown_.runs[index].run;
  const QRectF& plot = canvas.plot;
  painter.fillRect(QRectF(plot.left() - SteppedRuns::kGutter, top, plot.width() + SteppedRuns::kGutter + 12, SteppedRuns::kHead), theme().header);
  draw_badge(painter, QRectF(plot.left() - SteppedRuns::kGutter + 8, top + 2.5, 15, 15), run.slot);
  painter.setFont(ui_font(12, 600));
  painter.setPen(theme().text);
  const double space = plot.width() * 0.6;
  std::vector<const Run*> all;
  for (const auto& one : shown_.runs) all.push_back(one.run);
  QRectF line(plot.left() - SteppedRuns::kGutter + 30, top, space, SteppedRuns::kHead);
  const QString title = QFontMetricsF(painter.font()).elidedText(title_among(run, all), Qt::ElideRight, space);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, title);
  line.translate(QFontMetricsF(painter.font()).horizontalAdvance(title) + 8, 0);
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, roleOf(index));
  QStringList parts;
  if (const QString length = lengthText(index); !length.isEmpty()) parts << length;
  const prof::StepSample& sample = shown_.runs[index].sample;
  if (const auto count = std::lround(sample.kernels_per_step); count > 0) parts << work_text(count, sample.gpu);
  if (const QString text = allocations_text(*shown_.runs[index].run, sample.allocations_per_step); !text.isEmpty()) parts << text;
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(plot.left(), top, plot.width() - 8, SteppedRuns::kHead), Qt::AlignRight | Qt::AlignVCenter,
                   parts.isEmpty() ? QObject::tr("no trace of its steps") : parts.join(" · "));
}

// Dims what follows the aligned step, so that the length of the step is visible.
void StepPainter::paintAfterStep(StepCanvas& canvas, double top, double bottom, size_t index) const {
  const prof::StepWindowNs& window = shown_.windows[index];
  if (shown_.align == StepAlign::Start || window.end <= window.begin) return;
  QPainter& painter = canvas.painter;
  const QRectF& plot = canvas.plot;
  const double begin = canvas.scale.x(0), end = canvas.scale.x(window.end - window.begin);
  QColor veil = theme().base;
  veil.setAlphaF(0.72F);
  const double from = std::clamp(end, plot.left(), plot.right()), until = std::clamp(begin, plot.left(), plot.right());
  painter.fillRect(QRectF(from, top, plot.right() - from, bottom - top), veil);
  painter.fillRect(QRectF(plot.left(), top, until - plot.left(), bottom - top), veil);
  if (end <= plot.left() || end >= plot.right()) return;
  painter.setPen(QPen(theme().run[std::max(0, shown_.runs[index].run->slot) % 8], 1.5));
  painter.drawLine(QPointF(end, top), QPointF(end, bottom));
  if (index == 0 || shown_.align == StepAlign::Median || shown_.windows[0].end <= shown_.windows[0].begin) return;
  const double us = static_cast<double>((window.end - window.begin) - (shown_.windows[0].end - shown_.windows[0].begin)) * 1e-3;
  const QString text =
      us < 0 ? QObject::tr("this step ends %1 sooner").arg(time_axis_text(-us)) : QObject::tr("this step ends %1 later").arg(time_axis_text(us));
  painter.setFont(ui_font(11, 600));
  const double width = QFontMetricsF(painter.font()).horizontalAdvance(text);
  if (end + width + 14 > plot.right()) return;
  const QRectF box(end + 4, bottom - memory_.height(index) - 21, width + 10, 17);
  painter.fillRect(box, theme().base);
  painter.setPen(theme().text);
  painter.drawText(box.adjusted(5, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, text);
}

double StepPainter::paintRun(StepCanvas& canvas, double top, size_t index) const {
  const double begin = top + SteppedRuns::kHead;
  double y = begin;
  for (const Lane& lane : lanes(index)) {
    const double height = lane.height * (prof::broad_kind(lane.track->kind) == prof::TrackKind::Phases ? 1 : stretch_);
    paintLane(canvas, QRectF(canvas.plot.left(), y, canvas.plot.width(), height), lane, index);
    y += height;
  }
  const QRectF memory(canvas.plot.left(), y, canvas.plot.width(), memory_.height(index));
  if (memory.height() > 0) memory_.paint(canvas, memory, index);
  y += memory.height();
  paintAfterStep(canvas, begin, y, index);
  if (memory.height() > 0) memory_.paintPeak(canvas, memory, index);
  canvas.painter.setPen(theme().grid);
  canvas.painter.drawLine(QPointF(canvas.plot.left() - SteppedRuns::kGutter, y), QPointF(canvas.plot.right(), y));
  paintHead(canvas, top, index);
  return y;
}

std::vector<StepPainter::Phase> StepPainter::phasesOf(const StepCanvas& canvas, size_t index) const {
  std::vector<Phase> all;
  const prof::StepWindowNs& window = shown_.windows[index];
  if (shown_.align == StepAlign::Start || window.end <= window.begin) return all;
  const prof::Trace& marks = shown_.runs[index].run->marks();
  for (const prof::Track& track : marks.tracks()) {
    if (prof::broad_kind(track.kind) != prof::TrackKind::Phases || track.depth > 0) continue;  // a range inside of another one is part of it
    prof::each_span(track, window.begin, window.end, [&](const prof::Span& span) {
      if (span.start < window.begin || all.size() >= 12) return;
      const auto x = [&](prof::TimeNs t) {
        return std::clamp(canvas.scale.x(t - shown_.at[index]), canvas.plot.left(), canvas.plot.right());
      };
      all.push_back({QString::fromStdString(marks.name(span.name)), x(span.start), x(span.end()),
                     static_cast<double>(span.duration) * 1e-3});
    });
  }
  return all;
}

// Connects each phase of the upper run with the same phase of the lower one.
void StepPainter::paintRibbons(StepCanvas& canvas, double top, double height, const std::vector<Phase>& above,
                            const std::vector<Phase>& below) const {
  QPainter& painter = canvas.painter;
  const double bottom = top + height, middle = (top + bottom) / 2;
  int shade = 0;
  for (const Phase& a : above) {
    const auto b = std::find_if(below.begin(), below.end(), [&](const Phase& x) { return x.name == a.name; });
    if (b == below.end() || (a.x1 <= a.x0 && b->x1 <= b->x0)) continue;
    QPainterPath path(QPointF(a.x0, top));
    path.lineTo(a.x1, top);
    path.cubicTo(a.x1, middle, b->x1, middle, b->x1, bottom);
    path.lineTo(b->x0, bottom);
    path.cubicTo(b->x0, middle, a.x0, middle, a.x0, top);
    QColor fill = theme().secondary;
    fill.setAlphaF(shade++ % 2 ? 0.16F : 0.30F);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillPath(path, fill);
    painter.setRenderHint(QPainter::Antialiasing, false);
    const QString from = std::max(a.us, b->us) < 1000 ? us_text(a.us) : time_axis_text(a.us);  // one unit for both stands once
    const QString text = QObject::tr("%1 %2 → %3").arg(a.name, from, time_axis_text(b->us));
    painter.setFont(ui_font(11));
    if (QFontMetricsF(painter.font()).horizontalAdvance(text) > a.x1 - a.x0 - 12) continue;
    painter.setPen(theme().text);
    painter.drawText(QRectF(a.x0, top + 2, a.x1 - a.x0, 18), Qt::AlignCenter, text);
  }
}

// Ticks at 1, 2 or 5 times a power of ten, counted from the begin of the aligned step.
std::vector<prof::TimeNs> StepPainter::ticksOf(const TimeScale& scale) const {
  constexpr double kApart = 90;
  prof::TimeNs step = 1;
  for (prof::TimeNs decade = 1; static_cast<double>(step) < kApart * scale.ns_per_px(); decade *= 10)
    for (const int factor : {1, 2, 5})
      if (static_cast<double>(step) < kApart * scale.ns_per_px()) step = decade * factor;
  std::vector<prof::TimeNs> ticks;
  const prof::TimeNs first = scale.range.begin / step - 1;
  for (prof::TimeNs i = first; i * step <= scale.range.end && ticks.size() < 200; ++i)
    if (i * step >= scale.range.begin) ticks.push_back(i * step);
  return ticks;
}

void StepPainter::paintRuler(StepCanvas& canvas, double top) const {
  QPainter& painter = canvas.painter;
  const QRectF& plot = canvas.plot;
  painter.fillRect(QRectF(plot.left() - SteppedRuns::kGutter, top, plot.width() + SteppedRuns::kGutter + 12, SteppedRuns::kRuler), theme().base);
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  const std::vector<prof::TimeNs> ticks = ticksOf(canvas.scale);
  const prof::TimeNs step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  for (const prof::TimeNs tick : ticks) {
    const double x = canvas.scale.x(tick);
    if (x > plot.right() - 40) continue;
    const QString sign = tick < 0 ? QStringLiteral("−") : QString();
    draw_number(painter, QRectF(x + 4, top, 84, SteppedRuns::kRuler), Qt::AlignLeft | Qt::AlignVCenter,
                tick == 0 ? QObject::tr("0") : sign + offset_time(std::abs(tick), step));
  }
}

void StepPainter::paintRuns(StepCanvas& canvas, double top) const {
  canvas.painter.setPen(theme().grid);
  for (const prof::TimeNs tick : ticksOf(canvas.scale)) {
    const double x = canvas.scale.x(tick);
    if (x >= canvas.plot.left() && x <= canvas.plot.right())
      canvas.painter.drawLine(QPointF(x, canvas.plot.top()), QPointF(x, canvas.plot.bottom()));
  }
  double y = top;
  for (size_t i = 0; i < shown_.runs.size(); ++i) {
    if (!shown_.runs[i].run) continue;
    if (i > 0 && shown_.runs[i - 1].run) {
      // A phase of a kernel that runs many steps is not the phase of one step.
      if (shown_.runs[i].sample.stride == shown_.runs[i - 1].sample.stride)
        paintRibbons(canvas, y, ribbonHeight(i), phasesOf(canvas, i - 1), phasesOf(canvas, i));
      y += ribbonHeight(i);
    }
    y = paintRun(canvas, y, i);
  }
}

void StepPainter::paintEmpty(QPainter& painter, const QRectF& area) const {
  painter.setPen(theme().secondary);
  painter.setFont(ui_font(12.5));
  QString text = QObject::tr("None of these runs has a trace of its steps. Their losses and times are compared below.");
  if (shown_.runs.empty()) text = QObject::tr("Click a run in Runs and tick another one. Both appear here on one time scale.");
  if (shown_.comparing) text = QObject::tr("Comparing…");
  painter.drawText(area.adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap, text);
}

void StepPainter::render(QPainter& painter, const QRectF& area) const {
  painter.fillRect(area, theme().base);
  if (std::none_of(shown_.runs.begin(), shown_.runs.end(), [](const SteppedRun& s) { return s.run && s.run->trace.span_count() > 0; }))
    return paintEmpty(painter, area);
  const QRectF plot = plotOf(area);
  StepCanvas canvas{painter, plot, shown_.scaleOf(plot)};
  stretchInto(area.height());
  painter.save();
  painter.setClipRect(area);
  paintRuns(canvas, plot.top() - (area.height() < contentHeight() ? shown_.scroll : 0));
  paintRuler(canvas, area.top());
  painter.restore();
}

}  // namespace ws::app
