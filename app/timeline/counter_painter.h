// Paints the lanes with curves: counters and memory, one line per run, drawn as steps.
#pragma once
#include "app/timeline/lane_cache.h"
#include "app/timeline/timeline_geometry.h"
#include "app/timeline/timeline_model.h"

namespace ws::app {

class CounterPainter {
 public:
  explicit CounterPainter(const TimelineModel& model) : model_(model) {}
  void setTheme();  // after a change of theme or font
  void paint(QPainter& painter, const TimelineGeometry& geometry, const Lane& lane, int y);

 private:
  struct Held {
    QString letters, amount;
    double bytes;
    QColor colour;
  };
  std::vector<Held> heldInSight(const Lane& lane) const;
  void paintFlat(const Lane& lane, int y);
  void paintMemoryLabels(const Lane& lane, QRectF band, double top);
  void paintCurve(const prof::CounterTrack& counter, int run, QRectF band, double top, bool dotted, bool area);
  double mostInSight(const Lane& lane) const;

  const TimelineModel& model_;
  TextCache small_;
  QPainter* p_ = nullptr;  // while painting
  const TimelineGeometry* g_ = nullptr;
};

}  // namespace ws::app
