// Keeps data between repaints of the lanes: the rectangles of the tracks and the shaped texts.
#pragma once
#include <QFont>
#include <QHash>
#include <QPainter>
#include <QStaticText>
#include <map>

#include "profiling/analysis/collective_waits.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/trace.h"

namespace ws::app {

using prof::TimeRange;

// Calls lod() for the rectangles of a track again only if the range, the width or the data changed.
class LaneCache {
 public:
  const std::vector<prof::LodRect>& rects(const prof::Trace& trace, size_t track, TimeRange range, int pixels);
  // Which part of the collectives in the range waits.
  const prof::CollectiveWaits& waits(const prof::Trace& trace, TimeRange range, prof::TimeNs clock_error);
  void forgetUnread() { std::erase_if(waits_, [](const auto& each) { return !each.second.whole; }); }  // once a repaint
  void clear() { entries_.clear(); waits_.clear(); }

 private:
  struct Entry {
    TimeRange range;
    int pixels = 0;
    size_t spans = 0, evicted = 0;
    std::vector<prof::LodRect> rects;
    bool whole = false;  // if false, more may have been read since
  };
  struct Waits {
    TimeRange range;
    size_t spans = 0, evicted = 0;
    bool whole = false;  // if false, more may have been read since
    prof::CollectiveWaits known;
  };
  std::map<std::pair<const prof::Trace*, size_t>, Entry> entries_;
  std::map<const prof::Trace*, Waits> waits_;
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
