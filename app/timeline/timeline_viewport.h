// Which times and lanes of the timeline are visible, the selected range, and the zooms to undo.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <optional>

#include "app/timeline/timeline_geometry.h"
#include "app/timeline/timeline_model.h"
#include "app/workspace/focus.h"

namespace ws::app {

class TimelineViewport : public QObject {
  Q_OBJECT
 public:
  TimelineViewport(TimelineModel* model, Focus* focus, QObject* parent);

  const TimelineGeometry& geometry() const { return geometry_; }
  const std::optional<TimeRange>& selected() const { return selected_; }
  std::optional<TimeRange> chosenTime() const;  // time of the selected span
  bool canUndo() const { return !undo_.empty(); }
  int scrollLimit() const { return std::max(0, model_->contentHeight() - geometry_.plot().height()); }

  void resize(QSize size);
  void setGutter(int width);
  void setScroll(int y);
  void setRange(TimeRange range, bool remember = true);
  void endGesture() { last_zoom_.invalidate(); }  // the next zoom gets its own undo entry
  void zoomBy(double factor);                     // around the cursor or the middle
  void panBy(double share);
  void fit();  // the selection or the range; otherwise, or the second time, everything
  void undo();
  void redo();
  void showLane(const Lane& lane);
  void showRun(int run);  // brings its lanes into view, if they do not fit below the lanes of the run above

  void selectRange(TimeRange range);
  void chooseSpan(int run, size_t track, const prof::Span& span);  // replaces a selected range
  bool anythingChosen() const { return selected_ || focus_->choice().index() != 0; }
  void clearSelection();

 signals:
  void changed();  // the lanes must be repainted
  void scrolled(int y, int limit);

 private:
  void refresh();
  void fitGutter();

  TimelineModel* model_;
  Focus* focus_;
  TimelineGeometry geometry_;
  bool own_gutter_ = false;  // the user chose its width
  std::optional<TimeRange> selected_;
  std::vector<TimeRange> undo_, redo_;
  QElapsedTimer last_zoom_;
};

}  // namespace ws::app
