// Keeps data between repaints of the lanes: the rectangles of the tracks and the shaped texts.
#pragma once
#include <QFont>
#include <QHash>
#include <QPainter>
#include <QStaticText>
#include <map>

#include "profiling/trace/lod.h"
#include "profiling/trace/time_range.h"

namespace ws::app {

using prof::TimeRange;

// Calls lod() for the rectangles of a track again only if the range, the width or the data changed.
class LaneCache {
 public:
  const std::vector<prof::LodRect>& rects(const prof::Trace& trace, size_t track, TimeRange range, int pixels);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    TimeRange range;
    int pixels = 0;
    size_t spans = 0, evicted = 0;
    std::vector<prof::LodRect> rects;
    bool whole = false;  // if false, more may have been read since
  };
  std::map<std::pair<const prof::Trace*, size_t>, Entry> entries_;
};

// Caches the shape and the width of texts, because a timeline draws the same few words hundreds of times.
class TextCache {
 public:
  explicit TextCache(QFont font = {}) { setFont(std::move(font)); }
  void setFont(QFont font);
  double width(const QString& text);
  void draw(QPainter& painter, double left, double middle, const QString& text, const QColor& colour);
  const QFont& font() const { return font_; }

 private:
  struct Entry {
    QStaticText text;
    double width;
  };
  Entry& entry(const QString& text);
  QFont font_;
  double height_ = 0;
  QHash<QString, Entry> entries_;
};

}  // namespace ws::app
