// The plan of the displayed run: its ops before and after the passes, each with buffers, work and measured time.
#pragma once
#include <QTableView>
#include <QTimer>

#include "app/core/runs/plan_times.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_model.h"
#include "app/workspace/focus.h"

class QLabel;

namespace ws::app {

enum class PlanStage { Before, After };

class PlanPanel : public Pane {
  Q_OBJECT
 public:
  explicit PlanPanel(Focus* focus, QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return run_; }
  enum Column { Number, Name, Reads, Writes, Bytes, Flops, Time, Columns };
  TableModel* model() { return &model_; }
  const Plan* plan() const;
  int opAt(int row) const;  // −1 for a heading
  int rowOf(int op) const;  // −1 if not in the table
  std::string blockAt(int row) const;  // the block of layers whose heading it is; empty for other rows
  QTableView* table() const { return table_; }
  void setStage(PlanStage stage);
  void setBudget(const QString& lines);  // where a persistent kernel would keep the network; shown without a plan
  void setNarrow(bool narrow);  // only #, op, reads, bytes and µs, beside the memory map

 signals:
  void opChosen(int op);
  void kernelWanted(const QString& op);  // a person writes a kernel for it

 protected:
  void resizeEvent(QResizeEvent*) override;

 private:
  void present(Run* run);
  void refreshTimes();
  prof::OpTag tagAt(int row) const;
  void showNote();
  void shareWidth();
  void fold(int row);
  void chooseRow(const QModelIndex& index);
  void showSelection();
  void showWhetherWritable();

  Focus* focus_;
  TableModel model_;
  std::vector<prof::OpTag> tags_;
  PlanTimes times_;
  PlanStage stage_ = PlanStage::After;
  QTableView* table_;
  QLabel *log_, *empty_;
  QPushButton *stage_button_, *write_;
  QPointer<Run> run_;
  QTimer refresh_;
  std::string shown_id_;
  QString budget_;
  bool narrow_ = false;
};

}  // namespace ws::app
