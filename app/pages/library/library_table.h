// The table of kept runs, with the columns that fit or that the user chose.
#pragma once
#include <QTableView>

namespace ws::app {

class LibraryFilter;

class LibraryTable : public QTableView {
  Q_OBJECT
 public:
  explicit LibraryTable(LibraryFilter* runs, QWidget* parent = nullptr);

 signals:
  void tickClicked(const QModelIndex& index);  // compares a run, or no longer. A click beside it selects the run.

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  void fitColumns();
  bool hasValues(int column) const;  // false: no run has a value there
  void columnMenu(const QPoint& at);  // chooses the visible columns

  bool columns_chosen_ = false;
};

}  // namespace ws::app
