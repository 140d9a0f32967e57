// The live dashboard: charts above, the timeline below, and one cursor for all of them.
#pragma once
#include <QPointer>
#include <QTimer>
#include <functional>

#include "app/charts/curve_pane.h"
#include "app/charts/split_pane.h"
#include "app/network/network_pane.h"
#include "app/pages/page.h"

class QSplitter;

namespace ws::app {

Page live_page(Workspace& workspace);

class LivePage : public QWidget {
  Q_OBJECT
 public:
  LivePage(TimeCursor* cursor, TrainingSession* session, QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);
  void setTimeline(QWidget* timeline, std::function<void(const std::vector<Run*>&)> show_runs);
  // A widget whose own zoom can be undone.
  struct Zoom {
    QWidget* pane;
    std::function<bool()> can;
    std::function<void()> undo;
  };
  void addZoom(Zoom zoom) { zooms_.push_back(std::move(zoom)); }
  void setCompact(bool compact);
  void undoZoom();  // for the pane under the pointer, else the focused one, else the charts
  CurvePane* loss() const { return loss_; }
  CurvePane* accuracy() const { return accuracy_; }
  CurvePane* calls() const { return calls_; }
  SplitPane* split() const { return split_; }
  NetworkPane* network() const { return network_; }
  void swapLossAndNetwork();
  QByteArray layoutState() const;
  void restoreLayout(const QByteArray& state);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void placeRows();
  void placeCharts();
  void redrawNext();
  void showCursor();
  void fitPanes();
  int chartsHeight() const;
  void fetchRange();

  TimeCursor* cursor_;
  QSplitter *rows_, *charts_, *small_;
  CurvePane *loss_, *accuracy_, *calls_;
  SplitPane* split_;
  NetworkPane* network_;
  std::vector<QPointer<Run>> runs_;
  std::vector<Zoom> zooms_;
  std::function<void(const std::vector<Run*>&)> timeline_runs_;
  bool dragged_ = false, charts_dragged_ = false;  // the user chose the height of the charts, or their widths
  bool compact_ = false;
  QTimer redraw_, fetch_;
  size_t next_ = 0;
};

}  // namespace ws::app
