// The plan of the displayed run: its ops before and after the passes, each with buffers, work and measured time.
#pragma once
#include <QTableView>
#include <QTimer>

#include "app/widgets/pane.h"
#include "app/pages/plan/plan_model.h"
#include "app/workspace/focus.h"

class QLabel;

namespace ws::app {

// The messages of the passes, one line per pass.
QStringList pass_lines(const std::vector<std::string>& log);

class PlanPanel : public Pane {
  Q_OBJECT
 public:
  explicit PlanPanel(Focus* focus, QWidget* parent = nullptr);
  void setRun(Run* run);
  PlanModel* model() { return &model_; }
  QTableView* table() const { return table_; }
  void setStage(PlanStage stage);
  void setBudget(const QString& lines);  // where a persistent kernel would keep the network; shown without a plan
  void setNarrow(bool narrow);  // only #, op, reads, bytes and µs, beside the memory map

 signals:
  void opChosen(int op);

 protected:
  void resizeEvent(QResizeEvent*) override;

 private:
  void present(Run* run);
  void showNote();
  void shareWidth();
  void chooseRow(const QModelIndex& index);
  void showSelection();

  Focus* focus_;
  PlanModel model_;
  PlanStage stage_ = PlanStage::After;
  QTableView* table_;
  QLabel *log_, *empty_;
  QPushButton* stage_button_;
  QPointer<Run> run_;
  QTimer refresh_;
  std::string shown_id_;
  QString budget_;
  bool narrow_ = false;
};

}  // namespace ws::app
