// Paints everything on top of the lanes: overview, ruler, cursor, range, the selected
// span and its partner, marks, card.
#pragma once
#include <QElapsedTimer>
#include <optional>

#include "app/timeline/hover_card.h"
#include "app/timeline/timeline_painter.h"
#include "app/timeline/timeline_viewport.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {

class TimelineOverlay {
 public:
  TimelineOverlay(TimelineModel* model, Focus* focus, TimelineViewport* viewport, TimelinePainter* painter);

  void paint(QPainter& painter);
  void forget() { overview_.clear(); }  // call it when the lanes changed
  void showCard(HoverCard card, QRect lane, QPoint pointer);
  bool hideCard();  // returns true if a card was visible

  struct Jump {  // to the partner of the selected span
    int run = -1;
    prof::FoundSpan to;
  };
  const std::optional<Jump>& jump() const { return jump_; }
  bool onJumpArrow(QPoint at) const { return jump_ && jump_arrow_.contains(at); }
  std::optional<TimelinePainter::Hit> hitAt(QPoint at);
  bool foldBlockAt(QPoint at);  // folds or opens the block of layers whose arrow is under the pointer
  std::optional<TimeRange> layerAt(QPoint at) const;  // of the layer under the pointer
  int markAt(QPoint at) const;  // −1 if there is none
  TimeScale overviewScale() const;

 private:
  QRect overviewPlot() const;
  void paintOverview();
  void paintRuler();
  void paintRange();
  void paintSelection();
  void paintSameOp(const Lane&, int run, const prof::Span* span, prof::OpTag op, std::optional<prof::NameId> name);
  void paintConnector(const QRectF& call, const QRectF& kernel);
  void paintEdgeArrow(const QRectF& box);
  void paintCursor();
  void paintMarks();
  void paintEmpty();
  void paintCard();

  TimelineModel* model_;
  Focus* focus_;
  TimelineViewport* viewport_;
  TimelinePainter* painter_;
  const TimelineGeometry* g_;
  QPainter* p_ = nullptr;  // while painting
  std::optional<HoverCard> card_;
  QRect card_lane_;
  QPoint card_pointer_;
  LaneCache overview_;
  QElapsedTimer overview_age_;
  TimeRange overview_range_;
  QRectF jump_arrow_;  // points to a partner off screen
  std::optional<Jump> jump_;
};

}  // namespace ws::app
