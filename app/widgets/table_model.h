// Shows a Table: formats its cells for the window, and sorts by their values.
#pragma once
#include <QAbstractTableModel>
#include <QSortFilterProxyModel>

#include "profiling/base/table.h"

class QTableView;

namespace ws::app {

class TableModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  using QAbstractTableModel::QAbstractTableModel;
  // Keeps what is selected if the new table has the same columns and as many rows.
  void setTable(Table table);
  const Table& table() const { return table_; }
  bool isHeading(int row) const { return part(row) == Table::Row::Part::Heading; }
  bool isSum(int row) const { return part(row) == Table::Row::Part::Sum; }
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  Table::Row::Part part(int row) const;
  bool isLeft(int column) const;
  Table table_;
};

// A sum stays last in both directions, and unknown values stay below known ones.
class TableSorter : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;

 protected:
  bool lessThan(const QModelIndex& a, const QModelIndex& b) const override;
};

// Sorted by a click on a header; at first in the order of the table.
QTableView* table_view(QWidget* parent, TableModel& model, TableSorter& sorter, const QString& name);
// Asks for a file and writes the table as CSV. Returns the message to show, empty if nothing was chosen. Throws Failure.
QString ask_and_write(QWidget* parent, const QString& name, const Table& table);
// Numbers get the width of their longest text; the column of the names gets the rest.
void fit_columns(QTableView& view, const TableModel& model);

}  // namespace ws::app
