// Shows a FigureTable: sorts by its numbers and keeps a sum at the end.
#pragma once
#include <QAbstractTableModel>
#include <QSortFilterProxyModel>

#include "app/core/report/figure_table.h"

class QTableView;

namespace ws::app {

class FigureModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  using QAbstractTableModel::QAbstractTableModel;
  void setTable(FigureTable table);
  const FigureTable& figures() const { return table_; }
  bool isSum(int row) const { return table_.sum && row + 1 == rowCount(); }
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString text(int row, int column) const;
  bool isNumber(int column) const;

  FigureTable table_;
};

// The sum stays last in both directions. Unknown values are smaller than known ones.
class FigureSorter : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;

 protected:
  bool lessThan(const QModelIndex& a, const QModelIndex& b) const override;
};

// Sorted by a click on a header; at first in the order of the figures.
QTableView* figure_table(QWidget* parent, FigureModel& model, FigureSorter& sorter, const QString& name);
// Asks for a file and writes the table as CSV. Returns the message to show, empty if nothing was chosen. Throws Failure.
QString ask_and_write(QWidget* parent, const QString& name, const FigureTable& table);
// Numbers get the width of their longest text; the column of the names gets the rest.
void fit_figure_columns(QTableView& table, const FigureModel& model);

}  // namespace ws::app
