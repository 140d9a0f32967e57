// The timeline widget, as large as its viewport. It caches a picture of the lanes and paints the overlay on it.
#pragma once
#include <QPixmap>
#include <QWidget>

#include "app/timeline/timeline_input.h"
#include "app/timeline/timeline_overlay.h"
#include "app/timeline/timeline_painter.h"
#include "app/timeline/timeline_search.h"
#include "app/timeline/timeline_viewport.h"

namespace ws::app {

class TimelineView : public QWidget {
  Q_OBJECT
 public:
  TimelineView(TimelineModel* model, Focus* focus, QWidget* parent = nullptr);

  QSize minimumSizeHint() const override { return {360, 200}; }
  TimelineSearch* search() { return &search_; }
  TimelineViewport* viewport() { return &viewport_; }
  bool canUndoZoom() const { return viewport_.canUndo(); }
  const TimelineGeometry& timelineGeometry() const { return viewport_.geometry(); }
  std::optional<TimelinePainter::Hit> hitAt(QPoint at) { return painter_.hitAt(at, viewport_.geometry()); }

 public slots:
  void fit() { viewport_.fit(); }
  void undoZoom() { viewport_.undo(); }
  void clearSelection() { overlay_.hideCard(); viewport_.clearSelection(); }

 signals:
  void said(const QString& sentence);  // for the status bar
  void noteWanted(int mark);
  void laneMenuWanted(const QString& key, const QPoint& at);

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override { viewport_.resize(size()); }
  void changeEvent(QEvent*) override;
  bool event(QEvent*) override;

 private:
  void stale();  // the picture of the lanes is out of date
  void paintLanes(QPainter&);
  void describe();

  TimelineModel* model_;
  Focus* focus_;
  TimelineViewport viewport_;
  TimelinePainter painter_;
  TimelineOverlay overlay_;
  TimelineSearch search_;
  TimelineInput input_;
  QPixmap lanes_;  // valid while kept_
  bool stale_ = true, kept_ = false;
  qreal lanes_ratio_ = 0;
};

}  // namespace ws::app
