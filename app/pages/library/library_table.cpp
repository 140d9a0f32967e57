// Which columns of the library's table have room, and which a person wants.
#include <QEvent>
#include <QHeaderView>
#include <QMenu>
#include <QTableView>

#include "app/pages/library/library_model.h"
#include "app/pages/library/library_tab.h"

namespace ws::app {
namespace {

constexpr int kChangesWidth = 178;

}  // namespace

void LibraryTab::setColumns() {
  const int widths[] = {54, 172, 84, kChangesWidth, 84, 70, 72, 92, 92, 100, 88, 112, 132};
  for (int i = 0; i < LibraryModel::kColumns; ++i) table_->setColumnWidth(i, widths[i]);
  table_->viewport()->installEventFilter(this);
  table_->horizontalHeader()->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(table_->horizontalHeader(), &QWidget::customContextMenuRequested, this, &LibraryTab::columnMenu);
}

bool LibraryTab::eventFilter(QObject* object, QEvent* event) {
  if (object == table_->viewport() && event->type() == QEvent::Resize) fitColumns();
  return QWidget::eventFilter(object, event);
}

// In a narrow window what says least goes, until a person has chosen the columns.
void LibraryTab::fitColumns() {
  if (columns_chosen_) return;
  constexpr int kLeast[] = {LibraryModel::Device, LibraryModel::Preset, LibraryModel::Tags,
                            LibraryModel::Peak,   LibraryModel::Calls,  LibraryModel::Date};
  const int room = table_->viewport()->width();
  table_->setColumnWidth(LibraryModel::Changes, kChangesWidth);
  for (int column : kLeast) table_->setColumnHidden(column, false);
  for (int column : kLeast)
    if (table_->horizontalHeader()->length() > room) table_->setColumnHidden(column, true);
  const int left = room - table_->horizontalHeader()->length();
  if (left > 0) table_->setColumnWidth(LibraryModel::Changes, table_->columnWidth(LibraryModel::Changes) + left);
}

void LibraryTab::columnMenu(const QPoint& at) {
  QMenu menu(this);
  for (int column = LibraryModel::Preset; column < LibraryModel::kColumns; ++column) {
    QAction* action = menu.addAction(table_->model()->headerData(column, Qt::Horizontal).toString());
    action->setCheckable(true);
    action->setChecked(!table_->isColumnHidden(column));
    connect(action, &QAction::toggled, this, [this, column](bool on) {
      columns_chosen_ = true;
      table_->setColumnHidden(column, !on);
    });
  }
  menu.exec(table_->horizontalHeader()->mapToGlobal(at));
}

}  // namespace ws::app
