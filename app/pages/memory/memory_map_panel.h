// The memory page: figures, the plan beside the map, block sizes and holes over time below, and the calls
// of the driver's allocator by op.
#pragma once
#include <QTimer>

#include "app/pages/memory/allocator_calls.h"
#include "app/pages/memory/memory_map_view.h"
#include "app/pages/memory/memory_time_view.h"
#include "app/pages/plan/plan_panel.h"
#include "app/widgets/figure_strip.h"
#include "app/widgets/histogram.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/workspace/selection.h"

class QLabel;

namespace ws::app {

class MemoryMapPanel : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryMapPanel(Selection* selection, QWidget* parent = nullptr);
  void setRun(Run* run);
  MemoryMapView* view() const { return view_; }
  FigureStrip* figures() const { return figures_; }
  const MemoryTimeView* overTime() const { return over_time_; }
  AllocatorCallsModel* calls() { return &calls_; }
  void refresh();

 protected:
  void showEvent(QShowEvent*) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  enum class Source { Best, Plan, Events };
  void showFigures();
  void chooseBlock(const MapBlock& block);
  void setSource(Source source);
  QWidget* buildBelow();
  void refreshBelow();
  void fitCalls();

  Selection* selection_;
  QPointer<Run> run_;
  FigureStrip* figures_;
  PlanPanel* plan_;
  Pane* pane_;
  MemoryMapView* view_;
  HistogramView* sizes_;
  MemoryTimeView* over_time_;
  AllocatorCallsModel calls_;
  QTableView* calls_table_;
  Pane* calls_pane_;
  QLabel* no_calls_;
  QPushButton* source_button_;
  Source source_ = Source::Best;
  QTimer refresh_;
};

}  // namespace ws::app
