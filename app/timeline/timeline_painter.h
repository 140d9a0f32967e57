// Paints the lanes: everything that changes only with the range, the size, the data or the theme.
#pragma once
#include <QElapsedTimer>
#include <QFont>
#include <QHash>
#include <QPainter>
#include <QStaticText>
#include <map>

#include "app/timeline/block_label.h"
#include "app/timeline/timeline_model.h"
#include "profiling/trace/lod.h"

namespace ws::app {

struct TimelineGeometry {
  static constexpr int kOverview = 26, kRuler = 22;
  QSize size;
  int gutter = 150, scroll = 0;
  bool small = false;
  TimeRange range;

  int top() const { return kOverview + kRuler; }
  QRect plot() const { return {gutter, top(), size.width() - gutter, size.height() - top()}; }
  TimeScale scale() const {
    return {range, static_cast<double>(gutter), static_cast<double>(std::max(1, size.width() - gutter))};
  }
  int laneY(const Lane& lane) const { return top() + lane.y - scroll; }
};

// The rectangles of a track, asked from lod again only when the range, the width or the data changed.
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
    bool whole = false;  // otherwise more may have been read since
  };
  std::map<std::pair<const prof::Trace*, size_t>, Entry> entries_;
};

// Text with its shaping and its width kept: a timeline writes the same few words hundreds of times.
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

class TimelinePainter {
 public:
  explicit TimelinePainter(const TimelineModel& model);
  void setTheme();                                     // after a change of theme or font
  void forget() { cache_.clear(), numbers_.clear(); }  // other runs may stand where the old ones stood
  void paint(QPainter& painter, const TimelineGeometry& geometry);
  const std::vector<prof::LodRect>& rects(const Lane& lane, size_t track, const TimelineGeometry& geometry);
  // Where a span stands on the widget, inset as it is painted; empty when its lane is not shown.
  QRectF spanBox(const Lane& lane, size_t track, prof::TimeNs begin, prof::TimeNs end,
                 const TimelineGeometry& geometry) const;
  static int inset(const Lane& lane);

 private:
  struct Fill {
    QColor fill, edge, ink;
  };
  void paintGroup(const Lane& lane, int y);
  void paintSpans(const Lane& lane, int y);
  void paintRects(const Lane& lane, size_t track, QRectF band);
  void paintIdle(const Lane& lane, QRectF band);
  void paintLabel(const Lane& lane, const prof::Track& track, const prof::LodRect& rect, QRectF box, double room);
  void paintCounters(const Lane& lane, int y);
  void paintCurve(const prof::CounterTrack& counter, int run, QRectF band, double top, bool dotted, bool area);
  void paintGutter(const Lane& lane, int y);
  struct Held {
    QString letters, amount;
    double bytes;
    QColor colour;
  };
  std::vector<Held> heldInSight(const Lane& lane) const;
  void paintMemoryLabels(const Lane& lane, QRectF band, double top);
  double counterMost(const Lane& lane) const;
  const Fill& fillOf(const prof::Track& track, const prof::LodRect& rect) const;
  QString numbers(int run);
  int64_t stepsOf(const Lane& lane, const prof::Track& track, const prof::Span& span) const;
  BlockNames namesFor(const Lane& lane, const prof::Track& track, const prof::LodRect& rect) const;

  const TimelineModel& model_;
  LaneCache cache_;
  TextCache label_, gutter_, small_, title_;
  Fill fills_[prof::kMeanings], free_, range_;
  struct Numbers {
    QElapsedTimer age;
    size_t spans = 0;
    QString text;
  };
  std::map<const Run*, Numbers> numbers_;
  QPainter* p_ = nullptr;  // while painting
  const TimelineGeometry* g_ = nullptr;
};

}  // namespace ws::app
