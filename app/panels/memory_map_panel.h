// The memory page: figures, the plan beside the map, block sizes below.
#pragma once
#include <QTimer>

#include "app/charts/pane.h"
#include "app/panels/memory_map_view.h"
#include "app/panels/panel_table.h"
#include "app/panels/plan_panel.h"
#include "app/timeline/selection.h"

namespace ws::app {

class MemoryMapPanel : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryMapPanel(Selection* selection, QWidget* parent = nullptr);
  void setRun(Run* run);
  MemoryMapView* view() const { return view_; }
  FigureStrip* figures() const { return figures_; }
  void refresh();

 protected:
  void showEvent(QShowEvent*) override;

 private:
  enum class Source { Best, Plan, Events };
  void showFigures();
  void chooseBlock(const MapBlock& block);
  void setSource(Source source);

  Selection* selection_;
  QPointer<Run> run_;
  FigureStrip* figures_;
  PlanPanel* plan_;
  Pane* pane_;
  MemoryMapView* view_;
  HistogramView* sizes_;
  QPushButton* source_button_;
  Source source_ = Source::Best;
  QTimer refresh_;
};

}  // namespace ws::app
