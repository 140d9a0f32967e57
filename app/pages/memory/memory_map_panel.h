// The memory page: what holds the memory at its peak, the plan beside the map, block sizes and holes over time below, and either who held the
// memory at its peak, or the calls of the driver's allocator by op.
#pragma once
#include <QTimer>

#include "app/pages/memory/memory_map_view.h"
#include "app/pages/memory/memory_time_view.h"
#include "app/pages/plan/plan_panel.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_model.h"
#include "app/widgets/table_style.h"
#include "app/workspace/focus.h"
#include "profiling/analysis/memory_account.h"

class QLabel;
class QStackedWidget;

namespace ws::app {

class Headlined;

class MemoryMapPanel : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryMapPanel(Focus* focus, QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return run_; }
  MemoryMapView* view() const { return view_; }
  QString headline() const;
  QString notes() const;  // the line below it
  const MemoryTimeView* overTime() const { return over_time_; }
  enum CallsColumn { Op, Calls, CallsAStep, UsAStep, UsACall, Asked };
  enum HoldersColumn { Holder, Bytes, Share, Blocks };
  TableModel* calls() { return &calls_; }
  TableModel* holders() { return &holders_; }
  void refresh();

 protected:
  void changeEvent(QEvent*) override;
  void showEvent(QShowEvent*) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  enum class Source { Best, Plan, Events };
  // The table below. Best: who held the memory, where the program's allocator reported its blocks.
  enum class Below { Best, Layers, Lines, Ops, Calls };
  void showFinding();
  std::vector<MemoryPart> parts() const;  // at the peak, by contents; empty if unknown
  void showLegend();
  bool isRecorded() const;  // another program: it has no plan
  void chooseBlock(const MapBlock& block);
  void setSource(Source source);
  QStringList allocators() const;  // of a recorded program: PyTorch has one for each device
  int shownAllocator() const;      // < 0: there is only one
  void fillAllocators();
  void buildOptions();
  QWidget* buildBelow();
  Pane* buildCalls();
  Pane* buildHolders();
  void addTableChoice(Pane& pane);
  void setBelow(Below below);
  void refreshBelow();
  void refreshHolders();
  void fitCalls();

  Focus* focus_;
  QPointer<Run> run_;
  Headlined* finding_;
  PlanPanel* plan_;
  Pane* pane_;
  MemoryMapView* view_;
  MemoryTimeView* over_time_;
  TableModel calls_;
  QTableView* calls_table_;
  Pane* calls_pane_;
  QLabel* no_calls_;
  prof::HeldMemory held_;
  TableModel holders_;
  QTableView* holders_table_;
  Pane* holders_pane_;
  QLabel* no_holders_;
  QStackedWidget* tables_;
  QWidget* below_map_;
  Below below_ = Below::Best;
  QLabel* phases_;
  QPushButton* source_button_;
  bool showsAll(const MemoryMap& map) const;
  QString stepText(const MemoryMap& map) const;
  QPushButton* whole_ = nullptr;  // shows all steps, not only one
  Source source_ = Source::Best;
  QPushButton* allocator_button_;
  QString allocator_;  // chosen by the user; empty: the one that held the most
  QTimer refresh_;
};

}  // namespace ws::app
