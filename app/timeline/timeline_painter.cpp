#include "app/timeline/timeline_painter.h"

#include <algorithm>
#include <cmath>

#include "app/timeline/span_colour.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"
#include "app/workspace/rank_count.h"
#include "app/workspace/shipped_runs.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::LodRect;
using prof::SpanKind;
using prof::TrackKind;

constexpr int kBytesWidth = 50;
constexpr double kFoldWidth = 14;  // of the arrow that folds a block of layers
constexpr size_t kMostLayerSpans = 20'000;  // more of them are narrower than a pixel

bool is_range_track(TrackKind kind) { return kind == TrackKind::Steps || kind == TrackKind::Phases; }
// A long span that begins in the column of a tiny one is drawn as itself.
bool reaches_far(const LodRect& rect) { return rect.count > 1 && rect.busy > 0.95f && rect.x1 - rect.x0 >= 10; }
bool labels_outside(TrackKind kind) { return kind == TrackKind::Api || kind == TrackKind::GraphLaunches; }

}  // namespace

// Blocks of a program's allocator are no calls of the driver, so they have another word.
QString allocations_text(const Run& run, double each) {
  const auto count = std::lround(each);
  if (count <= 0) return {};
  const auto own = std::ranges::find_if_not(run.trace.memory_sources, prof::is_driver_source);
  if (run.hasChoices() || own == run.trace.memory_sources.end() || own->empty())
    return (count == 1 ? QObject::tr("%1 allocation") : QObject::tr("%1 allocations")).arg(count);
  return (count == 1 ? QObject::tr("%1 %2 allocation") : QObject::tr("%1 %2 allocations")).arg(QString::number(count), QString::fromStdString(*own));
}

QString lane_numbers(const Run& run) {
  const StepSplit& split = run.split;
  QStringList parts;
  if (run.shipped) parts << origin_text(run);
  if (split.steps == 0) {
    parts << count_text(static_cast<int64_t>(run.trace.span_count())) + " spans";
  } else if (first_track(run.trace, TrackKind::Stream)) {
    if (const auto count = std::lround(split.kernels); count > 0) parts << QString(count == 1 ? "%1 kernel" : "%1 kernels").arg(count);
    if (const QString allocations = allocations_text(run, split.allocations); !allocations.isEmpty()) parts << allocations;
    parts << (split.rank < 0 ? QObject::tr("GPU busy") : QObject::tr("GPU of rank %1 busy").arg(split.rank)) + " " + fixed_text(split.busy * 100, 0) + " %";
  }
  const auto backward = [](const Op& op) { return op.phase == Phase::Backward; };
  if (run.plan && std::ranges::none_of(run.plan->plan.ops, backward)) parts << "backward is fused into loss and update";
  return parts.join(" · ");
}

TimelinePainter::TimelinePainter(const TimelineModel& model) : model_(model), counters_(model) { setTheme(); }

void TimelinePainter::setTheme() {
  const Theme& t = theme();
  fills_.clear();
  waiting_ = made(rank_wait_colour());
  waiting_.ink = t.text;
  sampled_ = {mixed(t.strong_border, t.base, 0.35), t.strong_border, t.text};
  range_ = {t.raised, t.dark() ? t.strong_border : t.strong_border, t.dark() ? t.text : t.secondary};
  const auto tone = [&](const char* dark, const char* light) { return Fill{QColor(t.dark() ? dark : light), t.strong_border, t.text}; };
  forward_ = tone("#34558A", "#C9DBF6"), backward_ = tone("#2B3F63", "#DCE6F5"), other_phase_ = tone("#343B47", "#E3E7EC");
  label_.setFont(ui_font(10.5, 500));
  gutter_.setFont(ui_font(11));
  small_.setFont(ui_font(10.5));
  title_.setFont(ui_font(12, 600));
  counters_.setTheme();
}

int TimelinePainter::inset(const Lane& lane) {
  return is_range_track(lane.track_kind) || lane.track_kind == TrackKind::Inner ? 1 : 3;
}

const std::vector<LodRect>& TimelinePainter::rects(const Lane& lane, size_t track, const TimelineGeometry& geometry) {
  return cache_.rects(model_.traceOf(lane), track, model_.runRange(lane.run, geometry.range),
                      std::max(1, geometry.size.width() - geometry.gutter));
}

QRectF TimelinePainter::spanBox(int run, size_t track, const prof::Span& span, const TimelineGeometry& geometry) const {
  const Lane* lane = model_.laneOf(run, track);
  if (!lane) return {};
  const TimeScale scale = geometry.scale();
  const prof::TimeNs offset = model_.offset(run);
  const double x0 = std::floor(scale.x(span.start - offset)),
               x1 = std::max(x0 + 1, std::round(scale.x(span.end() - offset)));
  const RowInLane row = row_in(*lane, track);
  return {x0, geometry.laneY(*lane) + row.top + inset(*lane), x1 - x0, row.height - 2 * inset(*lane)};
}

std::optional<TimelinePainter::Hit> TimelinePainter::hitAt(QPoint at, const TimelineGeometry& geometry) {
  if (!geometry.plot().contains(at)) return std::nullopt;
  Hit hit;
  hit.lane = geometry.laneAt(model_.lanes(), at.y());
  if (hit.lane < 0) return std::nullopt;
  const Lane& lane = model_.lanes()[static_cast<size_t>(hit.lane)];
  hit.box = QRect(geometry.gutter, geometry.laneY(lane), geometry.size.width() - geometry.gutter, lane.height);
  if (lane.kind != LaneKind::Spans) return std::nullopt;
  const auto x = static_cast<float>(at.x() - geometry.gutter);
  for (auto track = lane.tracks.rbegin(); track != lane.tracks.rend(); ++track) {
    const RowInLane row = row_in(lane, *track);
    if (const double y = at.y() - hit.box.top(); y < row.top || y > row.top + row.height) continue;
    for (float reach : {0.5F, 2.5F}) {  // a thin block can also be hit from beside it
      const auto& all = rects(lane, *track, geometry);
      auto it = std::partition_point(all.begin(), all.end(), [&](const LodRect& r) { return r.x0 <= x + reach; });
      if (it == all.begin() || std::max((it - 1)->x1, (it - 1)->x0 + 1) + reach < x) continue;
      hit.track = *track, hit.rect = *(it - 1);
      return hit;
    }
  }
  return std::nullopt;
}

void TimelinePainter::paint(QPainter& painter, const TimelineGeometry& geometry) {
  p_ = &painter, g_ = &geometry;
  cache_.forgetUnread();
  const Theme& t = theme();
  painter.fillRect(QRect({0, 0}, geometry.size), t.base);
  painter.setClipRect(QRect(0, geometry.top(), geometry.size.width(), geometry.size.height() - geometry.top()));
  for (const Lane& lane : model_.lanes()) {
    const int y = geometry.laneY(lane);
    if (y + lane.height <= geometry.top() || y >= geometry.size.height()) continue;
    if (lane.kind == LaneKind::Group)
      paintGroup(lane, y);
    else if (lane.kind == LaneKind::Spans)
      paintSpans(lane, y);
    else if (lane.kind == LaneKind::Layers)
      paintLayers(lane, y);
    else
      paintGutter(lane, y), counters_.paint(painter, geometry, lane, y);
  }
  painter.setClipping(false);
}

void TimelinePainter::paintArrow(const Lane& lane, double middle) { paintChevron({12, middle}, lane.folded, theme().secondary); }

void TimelinePainter::paintChevron(QPointF middle, bool folded, const QColor& ink) {
  p_->save();
  p_->setRenderHint(QPainter::Antialiasing);
  p_->setPen(QPen(ink, 1.4));
  const double x = middle.x(), y = middle.y();
  const QPointF arrow[2][3] = {{{x - 4, y - 2}, {x, y + 2}, {x + 4, y - 2}}, {{x - 2, y - 4}, {x + 2, y}, {x - 2, y + 4}}};
  p_->drawPolyline(arrow[folded ? 1 : 0], 3);
  p_->restore();
}

void TimelinePainter::paintGroup(const Lane& lane, int y) {
  const Theme& t = theme();
  const QRect band(0, y, g_->size.width(), lane.height);
  p_->fillRect(band, t.header);
  p_->fillRect(0, y, band.width(), 1, t.border);
  p_->fillRect(0, band.bottom(), band.width(), 1, t.border);
  const double middle = y + lane.height / 2.0;
  paintArrow(lane, middle);
  double left = 24;
  const bool of_run = lane.run >= 0 && !lane.of_rank;
  if (of_run) {
    draw_badge(*p_, QRectF(left - 1, middle - 7.5, 15, 15), model_.run(lane.run)->slot);
    left += 20;
  }
  // Place the numbers first if the title stays readable.
  constexpr double kLeastTitle = 120;
  const QString text = of_run ? lane_numbers(*model_.run(lane.run)) : QString();
  const double width = gutter_.width(text) + 12, space = band.width() - left - width - 24;
  const bool both = !text.isEmpty() && space >= std::min(kLeastTitle, title_.width(lane.title));
  if (both) gutter_.draw(*p_, band.width() - width, middle, text, t.secondary);
  const QString title = QFontMetricsF(title_.font()).elidedText(lane.title, Qt::ElideRight,
                                                                both ? space : band.width() - left - 8);
  title_.draw(*p_, left, middle, title, t.text);
}

void TimelinePainter::paintGutter(const Lane& lane, int y) {
  const Theme& t = theme();
  p_->fillRect(0, y, g_->gutter, lane.height, t.base);
  p_->fillRect(g_->gutter - 1, y, 1, lane.height, t.border);
  const int indent = g_->titleLeft(lane);
  if (lane.folded) paintArrow(lane, y + lane.height / 2.0);
  const bool curve = lane.kind == LaneKind::Counter || lane.kind == LaneKind::Memory;
  double middle = y + (curve && !lane.flat ? 8 : lane.height / 2.0);  // beside the highest number of the axis
  // "800 MiB" is on the right of the same line, so a long title goes below it.
  const bool bytes = !lane.flat && (lane.kind == LaneKind::Memory || (curve && lane.detail.isEmpty()));
  if (bytes && indent + gutter_.width(lane.title) + kBytesWidth > g_->gutter) middle = y + 24;
  if (lane.nested)
    p_->fillRect(QRectF(indent + 3, y, 1, lane.height - 3), t.strong_border);
  else
    gutter_.draw(*p_, indent, middle,
                 QFontMetricsF(gutter_.font()).elidedText(lane.title, Qt::ElideMiddle, g_->gutter - indent - kTitleEnd),
                 t.secondary);
  if (lane.folded && lane.upper > 0)  // of a rank, see row_in()
    for (const auto& [part, words] : {std::pair{0.25, QObject::tr("compute")}, {0.75, QObject::tr("communication")}}) {
      const double wide = small_.width(words);
      if (const double left = g_->gutter - wide - 6; lane.height >= 28 && left > indent + gutter_.width(lane.title) + 4) small_.draw(*p_, left, y + part * lane.height, words, t.quiet);
    }
  for (const QString& line : lane.detail.split('\n', Qt::SkipEmptyParts))
    if ((middle += 14) + 7 < y + lane.height) small_.draw(*p_, indent, middle, line, t.quiet);
}

void TimelinePainter::paintSpans(const Lane& lane, int y) {
  const Theme& t = theme();
  const QRectF band(g_->gutter, y, g_->size.width() - g_->gutter, lane.height);
  p_->save();
  p_->setClipRect(band.intersected(QRectF(g_->plot())));
  if (lane.track_kind == TrackKind::Stream) paintIdle(lane, band);
  for (size_t track : lane.tracks) paintRects(lane, track, band);
  p_->restore();
  p_->fillRect(QRectF(0, y + lane.height - 1, g_->size.width(), 1), t.minor_grid);
  paintGutter(lane, y);
}

std::vector<LayerBlock> TimelinePainter::layersIn(const Lane& lane, const TimelineGeometry& geometry) const {
  return layer_blocks(model_.traceOf(lane), lane.tracks, model_.runRange(lane.run, geometry.range), lane.grouping, kMostLayerSpans);
}

std::string TimelinePainter::blockToFold(QPoint at, const TimelineGeometry& geometry) {
  const auto block = layerAt(at, geometry);
  if (!block || !block->block) return {};
  const Lane& lane = model_.lanes()[static_cast<size_t>(geometry.laneAt(model_.lanes(), at.y()))];
  const TimeScale scale = geometry.scale();
  const prof::TimeNs offset = model_.offset(lane.run);
  const double from = std::max<double>(std::floor(scale.x(block->start - offset)), geometry.gutter);
  const double width = std::round(scale.x(block->end - offset)) - from;
  const bool has_arrow = label_.width(QString::fromStdString(block->name)) + 8 + kFoldWidth < width;
  return has_arrow && at.x() < from + 4 + kFoldWidth ? block->name : std::string();
}

std::optional<LayerBlock> TimelinePainter::layerAt(QPoint at, const TimelineGeometry& geometry) const {
  const int index = geometry.plot().contains(at) ? geometry.laneAt(model_.lanes(), at.y()) : -1;
  if (index < 0 || model_.lanes()[static_cast<size_t>(index)].kind != LaneKind::Layers) return std::nullopt;
  const Lane& lane = model_.lanes()[static_cast<size_t>(index)];
  const prof::TimeNs time = geometry.scale().time(at.x()) + model_.offset(lane.run);
  for (const LayerBlock& block : layersIn(lane, geometry))
    if (time >= block.start && time < block.end) return block;
  return std::nullopt;
}

void TimelinePainter::paintLayers(const Lane& lane, int y) {
  const QRectF band(g_->gutter, y, g_->size.width() - g_->gutter, lane.height);
  const TimeScale scale = g_->scale();
  const prof::TimeNs offset = model_.offset(lane.run);
  p_->save();
  p_->setClipRect(band.intersected(QRectF(g_->plot())));
  for (const LayerBlock& block : layersIn(lane, *g_)) {
    const double left = std::max(band.left() - 1, std::floor(scale.x(block.start - offset)));
    const double right = std::max(left + 1, std::min(band.right() + 1, std::round(scale.x(block.end - offset))));
    const Fill& fill = block.phase == "forward" ? forward_ : block.phase == "backward" ? backward_ : other_phase_;
    const QRectF box(left, band.top() + 1, right - left, band.height() - 2);
    p_->fillRect(box, box.width() < 3 ? fill.fill : fill.edge);
    if (box.width() >= 3) p_->fillRect(box.adjusted(1, 1, -1, -1), fill.fill);
    double from = std::max<double>(left, g_->gutter);
    const QString name = QString::fromStdString(block.name);
    if (block.block && label_.width(name) + 8 + kFoldWidth < right - from) {
      paintChevron({from + 9, box.center().y()}, model_.run(lane.run)->folded(block.name), fill.ink);
      from += kFoldWidth;
    }
    if (label_.width(name) + 8 < right - from) label_.draw(*p_, from + 4, box.center().y(), name, fill.ink);
  }
  p_->restore();
  p_->fillRect(QRectF(0, y + lane.height - 1, g_->size.width(), 1), theme().minor_grid);
  paintGutter(lane, y);
}

// Between its first and last span, a stream is idle while no kernel runs. Copies have their
// own lanes but count as busy here.
void TimelinePainter::paintIdle(const Lane& lane, QRectF band) {
  const prof::Trace& trace = model_.run(lane.run)->trace;
  const TimeScale scale = g_->scale();
  const prof::TimeNs offset = model_.offset(lane.run);
  const double x0 = std::max(band.left(), scale.x(trace.first_time() - offset));
  const double x1 = std::min(band.right(), scale.x(trace.last_time() - offset));
  if (x1 <= x0) return;
  p_->setBrushOrigin(0, static_cast<int>(band.top()));
  p_->fillRect(QRectF(x0, band.top() + 3, x1 - x0, band.height() - 6), theme().idle);
  // Graphs recorded as a whole count as busy. Nothing is known about untraced stretches.
  const int rank = trace.tracks()[lane.tracks[0]].rank;
  const auto known_busy = [rank](const prof::Track& track) {
    if (track.rank != rank && track.rank >= 0) return false;
    return track.kind == TrackKind::Copies || track.kind == TrackKind::GraphLaunches || prof::untraced(track);
  };
  for (size_t i = 0; i < trace.tracks().size(); ++i)
    if (known_busy(trace.tracks()[i]))
      for (const LodRect& rect : rects(lane, i, *g_))
        if (rect.x1 - rect.x0 >= 1)
          p_->fillRect(QRectF(g_->gutter + rect.x0, band.top() + 3, rect.x1 - rect.x0, band.height() - 6),
                       theme().base);
}

TimelinePainter::Fill TimelinePainter::made(const QColor& fill) {
  const Theme& t = theme();
  return {fill, mixed(QColor(t.fill_edge.rgb()), fill, t.fill_edge.alphaF()), t.ink_on(fill)};
}

// What is not on the critical path.
TimelinePainter::Fill TimelinePainter::dimmed(const Fill& fill) {
  const Theme& t = theme();
  return {mixed(fill.fill, t.base, kOffPath), mixed(fill.edge, t.base, kOffPath), t.secondary};
}

std::optional<double> TimelinePainter::onPath(const Lane& lane, size_t track, const LodRect& rect) const {
  const prof::SpanPath* path = lane.gpu_steps ? nullptr : model_.paths()->of(model_.run(lane.run));
  if (!path) return std::nullopt;
  if (rect.count == 1 || reaches_far(rect)) {
    const auto span = path->of(track, rect.span);
    if (!span) return std::nullopt;
    const bool bright = span->slack_ns == prof::kNoSlack ? 2 * span->path_ns >= span->lasts_ns : span->on_path();  // of a range: most of it
    return bright ? 1.0 : 0.0;
  }
  const prof::TimeNs begin = model_.runRange(lane.run, g_->range).begin;
  const auto time = [&](float x) { return begin + static_cast<prof::TimeNs>(static_cast<double>(x) * g_->scale().ns_per_px()); };
  const prof::TimeRange column{time(rect.x0), time(rect.x1)};
  const auto ns = path->on_path(track, column);
  return ns ? std::optional(static_cast<double>(*ns) / static_cast<double>(std::max<prof::TimeNs>(1, column.length()))) : std::nullopt;
}

const TimelinePainter::Fill& TimelinePainter::fillOf(const Lane& lane, const prof::Track& track, const LodRect& rect) {
  const QColor colour = span_colour(model_.traceOf(lane), track, rect.span, rect.meaning);
  if (!colour.isValid()) return range_;
  const auto known = fills_.find(colour.rgb());
  return known != fills_.end() ? known->second : fills_.emplace(colour.rgb(), made(colour)).first->second;
}

void TimelinePainter::paintRects(const Lane& lane, size_t index, QRectF band) {
  const prof::Track& track = model_.traceOf(lane).tracks()[index];
  const auto& all = rects(lane, index, *g_);
  const RowInLane row = row_in(lane, index);
  const double top = std::round(band.top() + row.top) + inset(lane), height = std::floor(row.height) - 2 * inset(lane);
  for (size_t i = 0; i < all.size(); ++i) {
    const LodRect& rect = all[i];
    const double left = std::floor(g_->gutter + rect.x0);
    const double right = std::max(left + 1, std::round(g_->gutter + static_cast<double>(rect.x1)));
    const Fill& full = fillOf(lane, track, rect);
    const bool neutral = &full == &range_;
    const auto on_path = onPath(lane, index, rect);
    const bool dim = on_path && *on_path <= 0;
    const Fill fill = dim ? dimmed(full) : full;
    QRectF box(left, top, right - left, height);
    // A copy narrower than a pixel must not hide the kernels around it.
    const bool beside =
        track.kind == TrackKind::Copies && lane.track_kind == TrackKind::Stream && rect.x1 - rect.x0 < 1;
    if (rect.count > 1 && track.kind == TrackKind::Samples) {
      paintSample(box, fill);
      continue;
    }
    if ((rect.count > 1 && !reaches_far(rect)) || beside) {
      // Several spans in one column: the height is the share of time that they cover.
      const double share = rect.count > 1 ? static_cast<double>(rect.busy) : static_cast<double>(rect.x1 - rect.x0);
      const double filled = std::max(2.0, std::round(height * share));
      paintColumn(box, filled, neutral ? full.edge : full.fill, on_path);
      if (rect.count > 1) paintWait(lane, track, rect, QRectF(left, top + height - filled, box.width(), filled), dim);  // one reaches far
      continue;
    }
    if (track.kind == TrackKind::Samples) {
      paintSample(box, fill);
    } else if (box.width() < 3) {
      p_->fillRect(box, neutral ? fill.edge : fill.fill);
    } else {
      p_->fillRect(box, fill.edge);
      p_->fillRect(box.adjusted(1, 1, -1, -1), fill.fill);
    }
    const double next = i + 1 < all.size() ? g_->gutter + static_cast<double>(all[i + 1].x0) : band.right();
    const Fill* ink = track.kind == TrackKind::Samples ? &sampled_ : &fill;
    if (const QRectF wait = paintWait(lane, track, rect, box, dim); !wait.isEmpty()) {  // the label goes where more space is
      const bool in_wait = wait.width() > box.width() / 2;
      if (in_wait && !dim) ink = &waiting_;
      in_wait ? box.setRight(wait.right()) : box.setLeft(wait.right());
    }
    const double before = i > 0 ? g_->gutter + static_cast<double>(all[i - 1].x1) : band.left();
    if (next - left > 10) paintLabel(lane, track, rect, box, *ink, std::min(next - right, i > 0 ? left - before : next - right));
  }
}

// Its bright part is as high as the share of its time on the critical path.
void TimelinePainter::paintColumn(QRectF box, double filled, const QColor& colour, std::optional<double> on_path) {
  const double bright = on_path ? std::min(filled, std::ceil(box.height() * *on_path)) : filled;
  const auto part = [&](double high) { return QRectF(box.left(), box.bottom() - high, box.width(), high); };
  if (bright < filled) p_->fillRect(part(filled), mixed(colour, theme().base, kOffPath));
  if (bright > 0) p_->fillRect(part(bright), colour);
}

// A mark where the stack was seen. Until the next sample nobody knows, so nothing fills the time between.
void TimelinePainter::paintSample(QRectF box, const Fill& fill) {
  constexpr double kMark = 2;
  p_->fillRect(QRectF(box.left(), box.bottom() - 1, box.width(), 1), sampled_.edge);
  p_->fillRect(QRectF(box.left(), box.top(), std::min(kMark, box.width()), box.height()), fill.fill);
}

QRectF TimelinePainter::paintWait(const Lane& lane, const prof::Track& track, const prof::LodRect& rect, QRectF box, bool dim) {
  constexpr double kLeastBox = 3;
  if (track.rank < 0 || rect.meaning != prof::Meaning::Communication || box.width() < kLeastBox) return {};
  const prof::CollectiveWaits& waits =
      cache_.waits(model_.traceOf(lane), model_.runRange(lane.run, g_->range), clock_error(*model_.run(lane.run)));
  const auto parts = waits.of(track.rank, rect.span);
  if (!parts) return {};
  const double end = std::min(std::round(g_->scale().x(rect.span.start + parts->wait - model_.offset(lane.run))), box.right() - 1);
  const QRectF wait(box.left() + 1, box.top() + 1, end - box.left() - 1, box.height() - 2);
  if (wait.width() < 1) return {};
  p_->fillRect(wait, dim ? dimmed(waiting_).fill : waiting_.fill);
  return wait;
}

// Number of steps in one graph launch: up to the step of the next launch, or the last step of the run.
int64_t TimelinePainter::stepsOf(const Lane& lane, const prof::Track& track, const prof::Span& span) const {
  if (span.step == 0) return 1;
  const prof::Span* next = nullptr;
  prof::for_each_span(track, span.end(), span.end() + static_cast<prof::TimeNs>(span.duration) + 1,
                      [&](const prof::Span& s) {
                        if (s.start >= span.end()) next = &s;
                        return next == nullptr;
                      });
  if (next) return std::max<int64_t>(1, int64_t{next->step} - int64_t{span.step});
  const bool last = !track.blocks.empty() && track.blocks.back().reach <= span.end();
  const Run* run = model_.run(lane.run);
  return last && !run->live() ? std::max<int64_t>(1, run->stepsMade() - int64_t{span.step} + 1) : 1;
}

BlockNames TimelinePainter::namesFor(const Lane& lane, const prof::Track& track, const LodRect& rect) const {
  const prof::Trace& trace = model_.traceOf(lane);
  BlockNames names = block_names(trace, track, rect.span);
  if (track.kind != TrackKind::Steps) return names;
  const bool cut = rect.x1 >= static_cast<float>(g_->size.width() - g_->gutter) - 1;
  const QString time = span_time(static_cast<prof::TimeNs>(rect.span.duration));
  if (const int64_t steps = stepsOf(lane, track, rect.span); steps > 1) {
    const int64_t first = static_cast<int64_t>(rect.span.step) - 1;
    names.shorter = count_text(first) + "–" + count_text(first + steps - 1),
    names.full = QObject::tr("steps %1").arg(names.shorter);
  }
  names.layer = names.shorter, names.shorter = names.full;
  names.full += cut ? " (" + time + ", continues)" : " · " + time;
  return names;
}

// A folded lane sums up many rows: a label would name one of them.
void TimelinePainter::paintLabel(const Lane& lane, const prof::Track& track, const LodRect& rect, QRectF box,
                                 const Fill& fill, double space) {
  constexpr double kLeastHeight = 11;
  if (lane.folded || box.height() < kLeastHeight) return;
  const double left = std::max<double>(box.left(), g_->gutter);
  const BlockNames names = namesFor(lane, track, rect);
  const QString text = fitting_label(names, box.right() - left, [this](const QString& s) { return label_.width(s); });
  const double middle = box.center().y();
  if (!text.isEmpty()) {
    label_.draw(*p_, left + 4, middle, text, fill.ink);
  } else if (labels_outside(track.kind) && lane.tracks.size() == 1 && space > 70 && rect.span.span_kind() != SpanKind::Alloc) {
    // A call without neighbours can have its name and time beside it. At the end of a row of calls it would name the gap.
    const QString beside = names.full + " " + span_time(static_cast<prof::TimeNs>(rect.span.duration));
    const double width = label_.width(beside);
    if (width + 12 < space) label_.draw(*p_, box.right() + 6, middle, beside, theme().quiet);
  }
}

}  // namespace ws::app
