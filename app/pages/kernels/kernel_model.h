// The table model of the kernels page.
#pragma once
#include <QAbstractTableModel>

#include "profiling/analysis/kernel_table.h"

namespace ws::app {

class KernelModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column {
    Name,
    Count,
    Total,
    Share,
    Min,
    Mean,
    Sigma,
    Median,
    P90,
    P95,
    P99,
    P999,
    Max,
    Grid,
    Registers,
    Occupancy,
    WithCalls,  // by line
    Columns
  };
  using QAbstractTableModel::QAbstractTableModel;
  void setRows(std::vector<prof::KernelRow> rows, prof::GroupBy by = prof::GroupBy::Name);
  const prof::KernelRow* rowAt(int row) const;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QVariant sortValue(const prof::KernelRow& row, int column) const;
  QString text(const prof::KernelRow& row, int column) const;
  QString readable(const prof::KernelRow& row) const;

  std::vector<prof::KernelRow> rows_;
  bool kernels_ = true;  // a row is one kernel, not a line or module with several
};

}  // namespace ws::app
