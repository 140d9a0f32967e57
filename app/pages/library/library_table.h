// The table of kept runs, with the columns that there is room for or that a person chose.
#pragma once
#include <QTableView>

namespace ws::app {

class LibraryFilter;

class LibraryTable : public QTableView {
  Q_OBJECT
 public:
  explicit LibraryTable(LibraryFilter* runs, QWidget* parent = nullptr);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fitColumns();
  void columnMenu(const QPoint& at);  // which columns stand in the table

  bool columns_chosen_ = false;
};

}  // namespace ws::app
