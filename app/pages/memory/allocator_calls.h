// The driver's allocator calls of a run, as counted by driver callbacks: one row per op, the most expensive first.
#pragma once
#include <QAbstractTableModel>
#include <vector>

#include "app/workspace/run.h"

namespace ws::app {

class AllocatorCallsModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Op, Calls, CallsAStep, UsAStep, UsACall, Bytes, Columns };
  using QAbstractTableModel::QAbstractTableModel;
  void setRun(const Run* run);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    QString name;
    prof::Meaning meaning = prof::Meaning::Allocation;
    prof::AllocatorHistory::OpCalls sums;
  };
  QString text(const Row& row, int column) const;
  std::vector<Row> rows_;
  double steps_ = 0;
};

}  // namespace ws::app
