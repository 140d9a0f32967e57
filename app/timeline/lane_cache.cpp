#include "app/timeline/lane_cache.h"

#include <QFontMetricsF>
#include <cmath>

namespace ws::app {
namespace {

// From this many spans per pixel, neighbouring columns look the same. One column then covers two
// pixels, which halves the look-ups.
constexpr double kManyPerPixel = 400;

int columns_for(const prof::Track& track, TimeRange range, int pixels) {
  if (track.blocks.empty()) return pixels;
  const prof::TimeNs first = track.blocks.front().first, last = track.blocks.back().reach;
  const prof::TimeNs seen = std::min(last, range.end) - std::max(first, range.begin);
  if (seen <= 0 || last <= first) return pixels;
  const double spans = static_cast<double>(track.spans) * static_cast<double>(seen) / static_cast<double>(last - first);
  return spans > kManyPerPixel * pixels ? std::max(1, pixels / 2) : pixels;
}

std::vector<prof::LodRect> rects_of(const prof::Track& track, TimeRange range, int pixels) {
  const int columns = columns_for(track, range, pixels);
  auto rects = prof::lod(track, range.begin, range.end, columns);
  if (columns == pixels) return rects;
  const float wider = static_cast<float>(pixels) / static_cast<float>(columns);
  for (prof::LodRect& rect : rects) rect.x0 *= wider, rect.x1 *= wider;
  return rects;
}

// True if spans that are read later change no pixel. A block narrower than a pixel is drawn from its sums.
bool looks_whole(const prof::Track& track, TimeRange range, int pixels) {
  const auto& starts = track.block_starts;
  const auto blocks = std::ranges::lower_bound(starts, range.end) - std::ranges::lower_bound(starts, range.begin);
  return blocks > 2 * pixels || prof::in_memory(track, range.begin, range.end);
}

}  // namespace

const std::vector<prof::LodRect>& LaneCache::rects(const prof::Trace& trace, size_t track, TimeRange range,
                                                   int pixels) {
  const prof::Track& source = trace.tracks()[track];
  Entry& entry = entries_[{&trace, track}];
  const auto evicted = static_cast<size_t>(trace.losses.evicted_spans);
  if (entry.pixels == pixels && entry.range == range && entry.spans == source.spans && entry.evicted == evicted &&
      entry.whole)
    return entry.rects;
  entry = {range, pixels, source.spans, evicted, rects_of(source, range, pixels), looks_whole(source, range, pixels)};
  return entry.rects;
}

const prof::CollectiveWaits& LaneCache::waits(const prof::Trace& trace, TimeRange range, prof::TimeNs clock_error) {
  const auto evicted = static_cast<size_t>(trace.losses.evicted_spans);
  const auto [at, fresh] = waits_.try_emplace(&trace);
  Waits& entry = at->second;
  if (!fresh && entry.range == range && entry.spans == trace.span_count() && entry.evicted == evicted) return entry.known;
  const bool whole = std::ranges::all_of(trace.tracks(), [range](const prof::Track& track) {
    return track.rank < 0 || track.time_of(prof::Meaning::Communication) == 0 || prof::in_memory(track, range.begin, range.end);
  });
  entry = {range, trace.span_count(), evicted, whole, prof::CollectiveWaits(trace, range, clock_error)};
  return entry.known;
}

void TextCache::setFont(QFont font) {
  font_ = std::move(font);
  entries_.clear();
  height_ = QFontMetricsF(font_).height();
}

TextCache::Entry& TextCache::entry(const QString& text) {
  constexpr qsizetype kMost = 4096;  // step numbers never repeat, so limit the size
  auto it = entries_.find(text);
  if (it != entries_.end()) return *it;
  if (entries_.size() > kMost) entries_.clear();
  QStaticText prepared(text);
  prepared.setTextFormat(Qt::PlainText);
  prepared.setPerformanceHint(QStaticText::AggressiveCaching);
  prepared.prepare({}, font_);
  const double width = QFontMetricsF(font_).horizontalAdvance(text);
  return *entries_.insert(text, {prepared, width});
}

double TextCache::width(const QString& text) { return entry(text).width; }

void TextCache::draw(QPainter& painter, double left, double middle, const QString& text, const QColor& colour) {
  painter.setFont(font_);
  painter.setPen(colour);
  painter.drawStaticText(QPointF(left, std::round(middle - height_ / 2)), entry(text).text);
}

}  // namespace ws::app
