// Paints the lanes. They change only with the range, the size, the data or the theme.
#pragma once
#include <optional>
#include <unordered_map>

#include "app/timeline/block_label.h"
#include "app/timeline/counter_painter.h"

namespace ws::app {

QString allocations_text(const Run& run, double each);  // of a step: "15 allocations", "190 PyTorch allocations"; empty for none
QString lane_numbers(const Run& run);  // text beside its title: "step time 18.1 µs · 3 kernels"

class TimelinePainter {
 public:
  explicit TimelinePainter(const TimelineModel& model);
  void setTheme();                   // after a change of theme or font
  void forget() { cache_.clear(); }  // call it when the lanes changed
  void paint(QPainter& painter, const TimelineGeometry& geometry);
  const std::vector<prof::LodRect>& rects(const Lane& lane, size_t track, const TimelineGeometry& geometry);
  // The box of a span on the widget, with its inset. Empty if no lane shows the span.
  QRectF spanBox(int run, size_t track, const prof::Span& span, const TimelineGeometry& geometry) const;
  struct Hit {
    int lane = -1;
    size_t track = 0;
    prof::LodRect rect{};
    QRect box;  // box of the lane
  };
  std::optional<Hit> hitAt(QPoint at, const TimelineGeometry& geometry);
  // The layer, or the block of layers, under the pointer.
  std::optional<LayerBlock> layerAt(QPoint at, const TimelineGeometry& geometry) const;
  // The block of layers whose fold arrow is under the pointer; empty: none.
  std::string blockToFold(QPoint at, const TimelineGeometry& geometry);
  static int inset(const Lane& lane);

 private:
  struct Fill {
    QColor fill, edge, ink;
  };
  void paintArrow(const Lane& lane, double middle);
  void paintChevron(QPointF middle, bool folded, const QColor& ink);
  void paintGroup(const Lane& lane, int y);
  void paintSpans(const Lane& lane, int y);
  void paintLayers(const Lane& lane, int y);
  std::vector<LayerBlock> layersIn(const Lane& lane, const TimelineGeometry& geometry) const;
  void paintRects(const Lane& lane, size_t track, QRectF band);
  void paintColumn(QRectF box, double filled, const QColor& colour, std::optional<double> on_path);
  // The share of the time of a rectangle that is on the critical path. Empty: no path is shown there.
  std::optional<double> onPath(const Lane& lane, size_t track, const prof::LodRect& rect) const;
  void paintSample(QRectF box, const Fill& fill);
  void paintIdle(const Lane& lane, QRectF band);
  // The part of a collective that waits, in a paler colour; `dim`: off the critical path. Empty if it waits for less than a pixel.
  QRectF paintWait(const Lane& lane, const prof::Track& track, const prof::LodRect& rect, QRectF box, bool dim);
  void paintLabel(const Lane& lane, const prof::Track& track, const prof::LodRect& rect, QRectF box, const Fill& fill, double space);
  void paintGutter(const Lane& lane, int y);
  const Fill& fillOf(const Lane& lane, const prof::Track& track, const prof::LodRect& rect);
  static Fill made(const QColor& fill);
  static Fill dimmed(const Fill& fill);
  int64_t stepsOf(const Lane& lane, const prof::Track& track, const prof::Span& span) const;
  BlockNames namesFor(const Lane& lane, const prof::Track& track, const prof::LodRect& rect) const;

  const TimelineModel& model_;
  CounterPainter counters_;
  LaneCache cache_;
  TextCache label_, gutter_, small_, title_;
  Fill range_, waiting_, sampled_;
  Fill forward_, backward_, other_phase_;  // of layers: dark tones that carry labels
  std::unordered_map<QRgb, Fill> fills_;
  QPainter* p_ = nullptr;  // while painting
  const TimelineGeometry* g_ = nullptr;
};

}  // namespace ws::app
