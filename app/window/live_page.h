// The live dashboard: charts above, the timeline below, one cursor through all of them.
#pragma once
#include <QTimer>
#include <QWidget>
#include <functional>

#include "app/charts/curve_pane.h"
#include "app/charts/split_pane.h"
#include "app/timeline/time_cursor.h"

class QSplitter;

namespace ws::app {

class LivePage : public QWidget {
  Q_OBJECT
 public:
  explicit LivePage(TimeCursor* cursor, QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);
  void setTimeline(QWidget* timeline, std::function<void(const std::vector<Run*>&)> show_runs);
  void setCompact(bool compact);
  void undoZoom();
  CurvePane* loss() const { return loss_; }
  CurvePane* accuracy() const { return accuracy_; }
  CurvePane* calls() const { return calls_; }
  SplitPane* split() const { return split_; }
  QByteArray layoutState() const;
  void restoreLayout(const QByteArray& state);

 private:
  void redrawNext();
  void showCursor();
  void fetchRange();

  TimeCursor* cursor_;
  QSplitter *rows_, *charts_;
  CurvePane *loss_, *accuracy_, *calls_;
  SplitPane* split_;
  std::vector<Run*> runs_;
  std::function<void(const std::vector<Run*>&)> timeline_runs_;
  QTimer redraw_, fetch_;
  size_t next_ = 0;
};

}  // namespace ws::app
