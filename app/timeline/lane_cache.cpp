#include <QFontMetricsF>

#include "app/timeline/timeline_painter.h"

namespace ws::app {

const std::vector<prof::LodRect>& LaneCache::rects(const prof::Trace& trace, size_t track, TimeRange range, int pixels) {
  const prof::Track& source = trace.tracks()[track];
  Entry& entry = entries_[{&trace, track}];
  const auto evicted = static_cast<size_t>(trace.losses.evicted_spans);
  if (entry.pixels == pixels && entry.range == range && entry.spans == source.spans && entry.evicted == evicted) return entry.rects;
  entry = {range, pixels, source.spans, evicted, prof::lod(source, range.begin, range.end, pixels)};
  return entry.rects;
}

void TextCache::setFont(QFont font) {
  font_ = std::move(font);
  entries_.clear();
  height_ = QFontMetricsF(font_).height();
}

TextCache::Entry& TextCache::entry(const QString& text) {
  constexpr qsizetype kMost = 4096;  // step numbers never repeat
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
