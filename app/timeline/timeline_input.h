// Turns mouse and key events of the timeline into commands to its viewport and its search.
#pragma once
#include <QBasicTimer>
#include <QObject>
#include <QPoint>

#include "app/timeline/timeline_overlay.h"
#include "app/timeline/timeline_search.h"

class QContextMenuEvent;
class QKeyEvent;
class QMouseEvent;
class QWheelEvent;

namespace ws::app {

class TimelineInput : public QObject {
  Q_OBJECT
 public:
  // `surface` is the widget whose events it filters.
  TimelineInput(QWidget* surface, TimelineModel* model, TimelineViewport* viewport, TimelineOverlay* overlay,
                TimelineSearch* search);

  bool eventFilter(QObject*, QEvent* event) override;

 signals:
  void noteWanted(int mark);
  void laneMenuWanted(const QString& key, const QPoint& at);

 protected:
  void timerEvent(QTimerEvent*) override;

 private:
  enum class Drag { None, Press, Range, RangeBegin, RangeEnd, Pan, Gutter, Overview, Lane };
  const TimelineGeometry& geometry() const { return viewport_->geometry(); }
  bool keyPress(const QKeyEvent& event);
  bool moveKey(int key, Qt::KeyboardModifiers modifiers);
  bool commandKey(const QKeyEvent& event);
  void wheel(QWheelEvent& event);
  void press(const QMouseEvent& event);
  void moveTo(QPoint at);
  void dragTo(QPoint at);
  void release(const QMouseEvent& event);
  void zoomTo(QPoint at);
  void askForMenu(const QContextMenuEvent& event);
  void overviewTo(int x);
  void click(QPoint at);
  void showCard(QPoint at);
  void hideCard();
  std::optional<Drag> onHandle(QPoint at) const;  // handle of the selected range

  QWidget* surface_;
  TimelineModel* model_;
  TimelineViewport* viewport_;
  TimelineOverlay* overlay_;
  TimelineSearch* search_;
  Drag drag_ = Drag::None;
  QPoint pressed_, pointer_;
  QString dragged_lane_;
  TimeRange range_at_press_;
  int scroll_at_press_ = 0;
  prof::TimeNs anchor_ = 0;
  QBasicTimer rest_timer_;
};

}  // namespace ws::app
