// The ops of a plan as a table: headings per phase and layer, then one row per op.
#pragma once
#include <QAbstractTableModel>
#include <QPointer>
#include <map>

#include "app/core/runs/plan_times.h"
#include "app/workspace/run.h"
#include "engine/plan/op_tags.h"

namespace ws::app {

enum class PlanStage { Before, After };

class PlanModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Number, Name, Reads, Writes, Bytes, Flops, Time, Columns };
  using QAbstractTableModel::QAbstractTableModel;

  void setRun(Run* run, PlanStage stage);
  void refreshTimes();
  Run* run() const { return run_; }
  const Plan* plan() const;
  double sumUs() const;     // sum of the times of all ops
  double waitsUs() const { return times_.waits_us; }
  int opAt(int row) const;  // −1 for a heading
  int rowOf(int op) const;  // −1 if not in the table
  prof::OpTag tagAt(int row) const;
  int rowOfTag(prof::OpTag tag) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    int op = -1;
    QString heading;
  };
  QVariant text(const Row& row, int column) const;

  QPointer<Run> run_;
  PlanStage stage_ = PlanStage::After;
  std::vector<Row> rows_;
  std::vector<prof::OpTag> tags_;
  PlanTimes times_;
};

}  // namespace ws::app
