// Who held the memory when the most bytes were live: one row per op, layer or line, the most bytes first.
#pragma once
#include <QAbstractTableModel>
#include <vector>

#include "app/workspace/run.h"
#include "profiling/analysis/memory_account.h"

namespace ws::app {

class MemoryHoldersModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Holder, Bytes, Share, Blocks, Columns };
  using QAbstractTableModel::QAbstractTableModel;
  // The blocks of that allocator of the program; empty: of the one that held the most.
  void setRun(const Run* run, prof::GroupBy by, const QString& allocator = {});
  const QString& allocator() const { return allocator_; }
  uint64_t peak() const { return peak_; }
  const prof::MemoryGap& gap() const { return gap_; }
  prof::OpTag op(int row) const { return rows_[static_cast<size_t>(row)].op; }  // kNoOp: none is known

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString text(const prof::MemoryHolder& row, int column) const;

  std::vector<prof::MemoryHolder> rows_;
  std::vector<prof::Meaning> meanings_;
  QString allocator_, by_;
  uint64_t peak_ = 0;
  prof::MemoryGap gap_;
};

}  // namespace ws::app
