#include "app/timeline/timeline_overlay.h"

#include <QPainter>
#include <cmath>

#include "app/text/units.h"
#include "app/widgets/theme.h"
#include "profiling/base/statistics.h"

namespace ws::app {
namespace {

constexpr int kOverviewEveryMs = 400;
constexpr double kTickGap = 78;

// Mean time in ns of the steps that begin in a column.
double step_time(const prof::LodRect& rect, double ns_per_px) {
  if (rect.count <= 1) return static_cast<double>(rect.span.duration);
  return static_cast<double>(rect.x1 - rect.x0) * ns_per_px * static_cast<double>(rect.busy) / rect.count;
}

// Top of the scale: 98 % of the columns are below it, so that one slow first step does not flatten the rest.
double usual_top(const std::vector<prof::LodRect>& rects, double ns_per_px) {
  std::vector<double> times;
  for (const auto& rect : rects) times.push_back(step_time(rect, ns_per_px));
  if (times.empty()) return 1;
  return percentile(std::move(times), 0.98) * 1.25;
}

void flag(QPainter& painter, double x, int y, const QString& text, const QColor& fill, const QColor& ink,
          const QRect& within, QRectF* box_out = nullptr) {
  const QFont font = ui_font(10.5, 600);
  painter.setFont(font);
  const double width = number_width(font, text) + 12;
  double left =
      std::clamp(x - width / 2, static_cast<double>(within.left()), static_cast<double>(within.right()) - width);
  const QRectF box(std::round(left), y, width, 18);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(fill);
  painter.drawRoundedRect(box, 2, 2);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(ink);
  draw_number(painter, box, Qt::AlignCenter, text);
  if (box_out) *box_out = box;
}

}  // namespace

TimelineOverlay::TimelineOverlay(TimelineModel* model, Focus* focus, TimelineViewport* viewport,
                                 TimelinePainter* painter)
    : model_(model), focus_(focus), viewport_(viewport), painter_(painter), g_(&viewport->geometry()) {}

void TimelineOverlay::paint(QPainter& painter) {
  p_ = &painter;
  paintOverview();
  if (model_->runCount() == 0 || model_->lanes().size() <= model_->runCount()) return paintEmpty();
  paintRange();
  paintSelection();
  paintRuler();
  paintMarks();
  paintCursor();
  paintCard();
}

void TimelineOverlay::showCard(HoverCard card, QRect lane, QPoint pointer) {
  card_ = std::move(card), card_lane_ = lane, card_pointer_ = pointer;
}

bool TimelineOverlay::hideCard() {
  const bool shown = card_.has_value();
  card_.reset();
  return shown;
}

bool TimelineOverlay::foldBlockAt(QPoint at) {
  const std::string block = painter_->blockToFold(at, *g_);
  if (block.empty()) return false;
  Run* const run = model_->run(model_->lanes()[static_cast<size_t>(g_->laneAt(model_->lanes(), at.y()))].run);
  run->setFolded(block, !run->folded(block));
  return true;
}

std::optional<TimeRange> TimelineOverlay::layerAt(QPoint at) const {
  const int lane = g_->laneAt(model_->lanes(), at.y());
  const auto block = painter_->layerAt(at, *g_);
  if (!block) return std::nullopt;
  const prof::TimeNs offset = model_->offset(model_->lanes()[static_cast<size_t>(lane)].run);
  return TimeRange{block->start - offset, block->end - offset};
}

std::optional<TimelinePainter::Hit> TimelineOverlay::hitAt(QPoint at) { return painter_->hitAt(at, *g_); }

int TimelineOverlay::markAt(QPoint at) const {
  if (at.y() < TimelineGeometry::kOverview || at.y() > g_->top()) return -1;
  for (size_t i = 0; i < model_->marks().size(); ++i)
    if (std::abs(g_->scale().x(model_->marks()[i].time) + 8 - at.x()) < 14) return static_cast<int>(i);
  return -1;
}

QRect TimelineOverlay::overviewPlot() const {
  return {g_->gutter, 3, g_->size.width() - g_->gutter - 14, TimelineGeometry::kOverview - 6};
}

TimeScale TimelineOverlay::overviewScale() const {
  return {overview_range_, static_cast<double>(g_->gutter), static_cast<double>(std::max(1, overviewPlot().width()))};
}

void TimelineOverlay::paintOverview() {
  const Theme& t = theme();
  const QRect strip(0, 0, g_->size.width(), TimelineGeometry::kOverview);
  p_->fillRect(strip, t.header);
  p_->fillRect(0, strip.bottom(), g_->size.width(), 1, t.border);
  if (model_->runCount() == 0) return;
  const Run* run = model_->run(0);
  if (!run->live() || !overview_age_.isValid() || overview_age_.elapsed() > kOverviewEveryMs)
    overview_age_.start(), overview_range_ = model_->extent();  // once a run has ended, nothing changes after this
  const QRect plot = overviewPlot();
  p_->setFont(ui_font(11));
  p_->setPen(t.quiet);
  p_->drawText(QRect(10, 0, g_->gutter - 14, strip.height()), Qt::AlignVCenter,
               (g_->gutter < 140 ? QObject::tr("steps, %1") : QObject::tr("all steps, %1"))
                   .arg(span_time(overview_range_.length())));
  const prof::Trace& marks = run->marks();
  for (size_t i = 0; i < marks.tracks().size(); ++i) {
    if (marks.tracks()[i].kind != prof::TrackKind::Steps) continue;
    const auto& rects = overview_.rects(marks, i, model_->runRange(0, overview_range_), plot.width());
    const double ns_per_px = static_cast<double>(overview_range_.length()) / plot.width(),
                 top = usual_top(rects, ns_per_px);
    QColor colour = t.run[std::max(0, run->slot) % 8];
    colour.setAlphaF(0.45F);
    for (const auto& rect : rects) {
      const double high = std::max(2.0, std::min(1.0, step_time(rect, ns_per_px) / top) * plot.height());
      p_->fillRect(QRectF(plot.left() + std::floor(rect.x0), plot.bottom() + 1 - high,
                          std::max(1.0F, rect.x1 - rect.x0 - 0.5F), high),
                   colour);
    }
  }
  const TimeScale scale = overviewScale();
  const double x0 = scale.x(model_->range().begin), x1 = std::max(scale.x(model_->range().end), x0 + 7);
  QColor tint = t.focus;
  tint.setAlphaF(0.18F);
  const QRectF bracket = QRectF(x0, 2, x1 - x0, strip.height() - 5).intersected(QRectF(plot).adjusted(-8, -2, 12, 2));
  p_->fillRect(bracket, tint);
  p_->setPen(QPen(t.focus, 1.2));
  p_->setBrush(Qt::NoBrush);
  p_->drawRect(bracket);
}

void TimelineOverlay::paintRuler() {
  const Theme& t = theme();
  const int y = TimelineGeometry::kOverview;
  const QRect band(0, y, g_->size.width(), TimelineGeometry::kRuler);
  p_->fillRect(band, t.base);
  p_->fillRect(0, band.bottom(), g_->size.width(), 1, t.border);
  const TimeScale scale = g_->scale();
  const Ruler ticks = ruler(scale, kTickGap);
  const QFont font = ui_font(11);
  p_->setFont(font);
  p_->setPen(t.quiet);
  draw_number(*p_, QRectF(10, y, g_->gutter - 14, band.height()), Qt::AlignVCenter | Qt::AlignLeft, ticks.base_text);
  const auto cursor = model_->cursor()->cursor();
  const double under = cursor ? scale.x(*cursor) : -1000;
  for (const auto& tick : ticks.ticks) {
    const double x = scale.x(tick.time), wide = number_width(font, tick.text);
    p_->fillRect(QRectF(std::round(x), band.bottom() - 5, 1, 5), t.strong_border);
    if (std::abs(x + wide / 2 - under) < wide / 2 + 34 || x + wide + 6 > g_->size.width()) continue;
    p_->setPen(t.quiet);
    draw_number(*p_, QRectF(x + 4, y, wide + 4, band.height() - 2), Qt::AlignVCenter | Qt::AlignLeft, tick.text);
  }
  for (int i = 0; i < static_cast<int>(model_->runCount()); ++i) {
    const Run* run = model_->run(i);
    if (!run->live() || run->trace.last_time() <= 0) continue;
    const double x = scale.x(run->arrived() - model_->offset(i));
    if (x < g_->gutter || x > g_->size.width()) continue;
    p_->fillRect(QRectF(x - 0.75, band.bottom() - 4, 1.5, g_->size.height()), t.focus);
    p_->setPen(t.focus);
    p_->setFont(ui_font(11, 600));
    p_->drawText(QRectF(x - 60, y, 54, band.height()), Qt::AlignRight | Qt::AlignVCenter, QObject::tr("now"));
    break;
  }
}

void TimelineOverlay::paintCursor() {
  const auto cursor = model_->cursor()->cursor();
  if (!cursor || !g_->range.contains(*cursor)) return;
  const Theme& t = theme();
  const double x = std::round(g_->scale().x(*cursor));
  QPen pen(t.text, 1);
  pen.setDashPattern({3, 2});
  p_->setPen(pen);
  p_->drawLine(QPointF(x, g_->top()), QPointF(x, g_->size.height()));
  const Ruler ticks = ruler(g_->scale(), kTickGap);
  flag(*p_, x, TimelineGeometry::kOverview + 1,
       offset_time(*cursor - ticks.base, std::max<prof::TimeNs>(1, ticks.step / 100)), t.text, t.base, g_->plot());
}

void TimelineOverlay::paintRange() {
  if (!viewport_->selected()) return;
  const Theme& t = theme();
  const TimeScale scale = g_->scale();
  const QRect plot = g_->plot();
  const double x0 = std::clamp(scale.x(viewport_->selected()->begin), double(plot.left()) - 4, plot.right() + 4.0);
  const double x1 = std::clamp(scale.x(viewport_->selected()->end), double(plot.left()) - 4, plot.right() + 4.0);
  p_->save();
  p_->setClipRect(plot);
  QColor tint = t.focus;
  tint.setAlphaF(0.12F);
  p_->fillRect(QRectF(x0, plot.top(), x1 - x0, plot.height()), tint);
  for (double x : {x0, x1}) {
    p_->fillRect(QRectF(std::round(x), plot.top(), 1, plot.height()), t.focus);
    p_->fillRect(QRectF(std::round(x) - 2, plot.center().y() - 12, 5, 24), t.focus);
  }
  const QString text = span_time(viewport_->selected()->length());
  flag(*p_, (x0 + x1) / 2, plot.bottom() - 24, text, t.focus, t.base, plot);
  p_->restore();
}

// Underlines spans of the same op, or of the same name if the op is unknown.
void TimelineOverlay::paintSameOp(const Lane& lane, int run, const prof::Span* span, prof::OpTag op,
                                  std::optional<prof::NameId> name) {
  if (lane.run != run || lane.kind != LaneKind::Spans || lane.gpu_steps) return;
  for (size_t track : lane.tracks) {
    const RowInLane row = row_in(lane, track);
    const double y = std::round(g_->laneY(lane) + row.top + row.height) - TimelinePainter::inset(lane);
    for (const auto& rect : painter_->rects(lane, track, *g_)) {
      const bool same =
          rect.count == 1 && ((op != prof::kNoOp && rect.span.op == op) || (name && rect.span.name == *name));
      if (!same || (span && rect.span.start == span->start)) continue;
      p_->fillRect(
          QRectF(std::floor(g_->gutter + rect.x0), y - 2, std::max(2.0, std::round(double(rect.x1 - rect.x0))), 2),
          theme().text);
    }
  }
}

void TimelineOverlay::paintSelection() {
  p_->save();
  p_->setClipRect(g_->plot());
  jump_.reset();
  if (const auto* op = focus_->get<OpChoice>())
    for (const Lane& lane : model_->lanes()) paintSameOp(lane, model_->indexOf(op->run), nullptr, op->op, std::nullopt);
  if (const auto* name = focus_->get<NameChoice>())
    for (const Lane& lane : model_->lanes())
      paintSameOp(lane, model_->indexOf(name->run), nullptr, prof::kNoOp, name->name);
  const auto* chosen = focus_->get<SpanChoice>();
  const int run = chosen ? model_->indexOf(chosen->run) : -1;
  if (run >= 0) {
    const prof::Trace& trace = chosen->run->trace;
    const bool has_op = chosen->span.op != prof::kNoOp;
    for (const Lane& lane : model_->lanes())
      paintSameOp(lane, run, &chosen->span, chosen->span.op, has_op ? std::nullopt : std::optional(chosen->span.name));
    const QRectF box = painter_->spanBox(run, chosen->track, chosen->span, *g_);
    if (!box.isEmpty()) {
      p_->setBrush(Qt::NoBrush);
      p_->setPen(QPen(theme().text, 2));
      p_->drawRect(box.width() > 4 ? box.adjusted(1, 1, -1, -1) : box.adjusted(-1, 0, 1, 0));
      if (const auto other = partner(trace, chosen->track, chosen->span)) {
        const QRectF there = painter_->spanBox(run, other->track, other->span, *g_);
        jump_ = Jump{run, *other};
        const bool gpu = on_gpu(trace.tracks()[chosen->track]);
        if (!there.isEmpty()) {
          p_->setPen(QPen(theme().text, 1.5));
          p_->drawRect(there.width() > 4 ? there.adjusted(.75, .75, -.75, -.75) : there);
          paintConnector(gpu ? there : box, gpu ? box : there);
          paintEdgeArrow(there);
        }
      }
    }
  }
  p_->restore();
}

// Draws a line from the call along the lane border to the kernel, with the arrow head at the kernel.
void TimelineOverlay::paintConnector(const QRectF& call, const QRectF& kernel) {
  const bool call_below = call.center().y() > kernel.center().y();
  const double cx = call.center().x(), kx = kernel.center().x();
  const double from = call_below ? call.top() : call.bottom(), to = call_below ? kernel.bottom() : kernel.top();
  const double border = call_below ? call.top() - 3 : call.bottom() + 3;
  p_->setPen(QPen(theme().text, 1.5));
  p_->drawPolyline(QPolygonF{QPointF(cx, from), QPointF(cx, border), QPointF(kx, border), QPointF(kx, to)});
  const double back = call_below ? 5 : -5;
  p_->setBrush(theme().text);
  p_->setRenderHint(QPainter::Antialiasing);
  p_->drawPolygon(QPolygonF{QPointF(kx, to - back / 2), QPointF(kx - 3.5, to + back), QPointF(kx + 3.5, to + back)});
  p_->setRenderHint(QPainter::Antialiasing, false);
}

void TimelineOverlay::paintEdgeArrow(const QRectF& box) {
  const QRect plot = g_->plot();
  jump_arrow_ = {};
  if (box.right() >= plot.left() && box.left() <= plot.right()) return;
  const bool left = box.right() < plot.left();
  const double y = std::clamp(box.center().y(), plot.top() + 12.0, plot.bottom() - 12.0);
  jump_arrow_ = QRectF(left ? plot.left() + 4 : plot.right() - 22, y - 9, 18, 18);
  p_->setRenderHint(QPainter::Antialiasing);
  p_->setPen(Qt::NoPen);
  p_->setBrush(theme().text);
  p_->drawRoundedRect(jump_arrow_, 3, 3);
  p_->setPen(QPen(theme().base, 1.8));
  p_->setBrush(Qt::NoBrush);
  const QPointF c = jump_arrow_.center();
  const double d = left ? -1 : 1;
  p_->drawPolyline(QPolygonF{c + QPointF(-3 * d, -4), c + QPointF(2 * d, 0), c + QPointF(-3 * d, 4)});
  p_->setRenderHint(QPainter::Antialiasing, false);
}

void TimelineOverlay::paintMarks() {
  const Theme& t = theme();
  for (const Mark& mark : model_->marks()) {
    if (!g_->range.contains(mark.time)) continue;
    const double x = std::round(g_->scale().x(mark.time));
    p_->fillRect(QRectF(x, g_->top() - 6, 1, g_->size.height()), t.focus);
    flag(*p_, x + 8, TimelineGeometry::kOverview + 2, mark.note.isEmpty() ? QStringLiteral("●") : mark.note.left(24),
         t.focus, t.base, g_->plot());
  }
}

void TimelineOverlay::paintCard() {
  if (!card_) return;
  const QRect place = card_place({kCardWidth, card_height(*card_)}, g_->plot(), card_lane_, card_pointer_);
  paint_card(*p_, place, *card_);
}

void TimelineOverlay::paintEmpty() {
  paintRuler();
  p_->setPen(theme().quiet);
  p_->setFont(ui_font(12.5));
  p_->drawText(g_->plot(), Qt::AlignCenter, model_->emptyText());
}

}  // namespace ws::app
