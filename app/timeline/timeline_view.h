// The timeline itself: one widget as large as its viewport, that paints a cached picture of the lanes and the overlays
// on it.
#pragma once
#include <QBasicTimer>
#include <QElapsedTimer>
#include <QPixmap>
#include <QWidget>
#include <optional>

#include "app/timeline/hover_card.h"
#include "app/workspace/selection.h"
#include "app/timeline/stored_search.h"
#include "app/timeline/timeline_model.h"
#include "app/timeline/timeline_painter.h"

namespace ws::app {

class TimelineView : public QWidget {
  Q_OBJECT
 public:
  TimelineView(TimelineModel* model, Selection* selection, QWidget* parent = nullptr);

  QSize minimumSizeHint() const override { return {360, 200}; }
  int scroll() const { return geometry_.scroll; }
  int scrollLimit() const;
  bool canUndoZoom() const { return !undo_.empty(); }
  const TimelineGeometry& timelineGeometry() const { return geometry_; }

  struct Hit {
    int lane = -1;
    size_t track = 0;
    prof::LodRect rect{};
    QRect box;  // of the lane
  };
  std::optional<Hit> hitAt(QPoint at);

 public slots:
  void setScroll(int y);
  void fit();                  // the selection or the range; else, or again, everything
  void zoomBy(double factor);  // around the cursor, or the middle
  void panBy(double share);
  void undoZoom();
  void redoZoom();
  void nextSame(bool forward);
  void addMark();
  void nextMark(bool forward);
  void clearSelection();
  bool jumpToStep(int64_t step);
  void jumpToSlowestStep();
  void jumpToLongestGap();
  bool find(const QString& text, bool forward);  // next span whose name, op or layer holds the text
  void showSelected();

 signals:
  void scrollChanged(int y, int limit);
  void said(const QString& sentence);  // for the status bar
  void noteWanted(int mark);
  void laneMenuWanted(const QString& key, const QPoint& at);

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void mouseReleaseEvent(QMouseEvent*) override;
  void mouseDoubleClickEvent(QMouseEvent*) override;
  void contextMenuEvent(QContextMenuEvent*) override;
  void leaveEvent(QEvent*) override;
  void wheelEvent(QWheelEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  void timerEvent(QTimerEvent*) override;
  void changeEvent(QEvent*) override;
  bool event(QEvent*) override;

 private:
  enum class Drag { None, Press, Range, RangeBegin, RangeEnd, Pan, Gutter, Overview, Lane };
  void stale();  // the picture of the lanes is out of date
  void paintLanes(QPainter&);
  void paintOverview(QPainter&);
  void paintRuler(QPainter&);
  void paintRange(QPainter&);
  void paintSelection(QPainter&);
  void paintSameOp(QPainter&, const Lane&, int run, const prof::Span* span, prof::OpTag op,
                   std::optional<prof::NameId> name);
  void paintConnector(QPainter&, const QRectF& call, const QRectF& kernel);
  void paintEdgeArrow(QPainter&, const QRectF& box);
  void paintCursor(QPainter&);
  void paintMarks(QPainter&);
  void paintEmpty(QPainter&);
  void paintCard(QPainter&);
  void click(QPoint at, Qt::KeyboardModifiers);
  void hover(QPoint at);
  void overviewTo(int x);
  void dragTo(QPoint at);
  void setRange(TimeRange range, bool remember = true);
  void selectRange(TimeRange range);
  const Lane* laneOf(int run, size_t track) const;
  QRectF boxOf(int run, size_t track, const prof::Span& span) const;
  void goTo(int run, const prof::FoundSpan& found);
  bool showStep(int run, const prof::Span& step, double margin);
  using StoredQuestion = std::function<std::optional<StoredHit>(prof::StoredSpans&)>;
  // What the trace in memory said, `known`, may not be all: asks the run's file too, and shows the better of both.
  void askFile(Run* run, const QString& what, std::optional<prof::FoundSpan> known, const QString& none, StoredQuestion ask,
               const std::function<void(int run, const prof::FoundSpan& found)>& show,
               const std::function<bool(const prof::Span& a, const prof::Span& b)>& better);
  void askNextSame(Run* run, const prof::Track& track, const prof::Span& span, std::optional<prof::FoundSpan> known,
                   bool forward, const QString& none);
  void askStepOnGpu(Run* run, const prof::FoundSpan& known, StoredQuestion ask);
  void askFound(Run* run, const QString& text, prof::TimeNs from, std::optional<prof::FoundSpan> known, bool forward);
  void showGap(int run, TimeRange gap);
  std::optional<TimeRange> chosenTime() const;
  int keyOf(const QKeyEvent*) const;
  bool moveKey(int key, Qt::KeyboardModifiers);
  int markAt(QPoint at) const;
  void describe();

  TimelineModel* model_;
  Selection* selection_;
  TimelinePainter painter_;
  TimelineGeometry geometry_;
  QPixmap lanes_;  // valid while kept_
  bool stale_ = true, kept_ = false;
  qreal lanes_ratio_ = 0;
  Drag drag_ = Drag::None;
  QPoint pressed_, pointer_;
  QString dragged_lane_;
  TimeRange range_at_press_;
  int scroll_at_press_ = 0;
  prof::TimeNs anchor_ = 0;
  std::optional<TimeRange> selected_;
  std::vector<TimeRange> undo_, redo_;
  QElapsedTimer last_zoom_;
  QBasicTimer hover_timer_;
  std::optional<HoverCard> card_;
  QRect card_lane_;
  LaneCache overview_;
  QElapsedTimer overview_age_;
  TimeRange overview_range_;
  QRectF jump_arrow_;  // to a partner off screen
  std::optional<prof::FoundSpan> jump_to_;
  int jump_run_ = -1;
  bool fit_all_next_ = false;
  StoredSearch* search_ = new StoredSearch(this);
};

}  // namespace ws::app
