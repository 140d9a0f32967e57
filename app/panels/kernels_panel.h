// Which kernels take the time: a sortable table, the spread of one of them, and its slowest executions.
#pragma once
#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QTimer>

#include "app/charts/pane.h"
#include "app/panels/panel_table.h"
#include "app/timeline/selection.h"
#include "profiling/analysis/kernel_table.h"

class QLabel;
class QLineEdit;

namespace ws::app {

class KernelModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Name, Count, Total, Share, Mean, Median, P99, Max, Grid, Registers, Columns };
  using QAbstractTableModel::QAbstractTableModel;
  void setRows(std::vector<prof::KernelRow> rows);
  const prof::KernelRow* rowAt(int row) const;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QVariant sortValue(const prof::KernelRow& row, int column) const;
  QString text(const prof::KernelRow& row, int column) const;
  std::vector<prof::KernelRow> rows_;
};

class KernelsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit KernelsPanel(Selection* selection, QWidget* parent = nullptr);
  void setRun(Run* run);
  KernelModel* model() { return &model_; }
  QTableView* table() const { return table_; }
  QTableView* instances() const { return instances_; }
  const HistogramView* histogram() const { return histogram_; }
  void refresh();

 protected:
  void showEvent(QShowEvent*) override;
  void resizeEvent(QResizeEvent*) override;

 private:
  void buildTable(Pane* pane);
  void fitColumns();
  void drillDown();
  TimeRange lookedAt() const;
  void fillInstances(const prof::KernelRow& row, TimeRange range);

  Selection* selection_;
  QPointer<Run> run_;
  KernelModel model_;
  QSortFilterProxyModel sorted_;
  QTableView *table_, *instances_;
  class InstanceModel* instance_model_;
  HistogramView* histogram_;
  Pane *top_, *below_;
  QPushButton* group_;
  QLineEdit* filter_;
  QLabel* empty_;
  QTimer refresh_;
  bool launched_ = true;  // the rows have grids
  prof::GroupBy by_ = prof::GroupBy::Name;
};

}  // namespace ws::app
