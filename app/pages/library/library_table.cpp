#include "app/pages/library/library_table.h"

#include <QHeaderView>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <algorithm>

#include "app/pages/library/library_model.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kNameWidth = 172, kMostName = 420, kChangesWidth = 178, kMostChanges = 460;

class TickDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    painter->fillRect(option.rect, option.state & QStyle::State_Selected ? t.selected_row : t.base);
    painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), t.minor_grid);
    const int slot = index.data(LibraryModel::SlotRole).toInt();
    const QRectF box(option.rect.left() + 9, option.rect.center().y() - 6, 13, 13);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(slot >= 0 ? Qt::NoPen : QPen(t.field_outline, 1));
    painter->setBrush(slot >= 0 ? t.primary : t.input);
    painter->drawRoundedRect(box, 3, 3);
    if (slot >= 0) {
      painter->setPen(QPen(Qt::white, 1.6));
      painter->drawPolyline(QPolygonF{box.topLeft() + QPointF(3, 6.8), box.topLeft() + QPointF(5.5, 9.3),
                                      box.topLeft() + QPointF(10, 3.8)});
    }
    painter->restore();
  }
};

// The letter of a run stands before its name.
class NameDelegate : public QStyledItemDelegate {
 public:
  explicit NameDelegate(QTableView* table) : QStyledItemDelegate(table), rows_(table->itemDelegate()) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    rows_->paint(painter, option, index.siblingAtColumn(LibraryModel::Tick));  // the ground: this cell has no text
    const int slot = index.data(LibraryModel::SlotRole).toInt(), letter = slot >= 0 ? slot : index.data(LibraryModel::LetterRole).toInt();
    if (letter >= 0) draw_badge(*painter, QRectF(option.rect.left() + 8, option.rect.center().y() - 7, 15, 15), letter, slot >= 0);
    QStyleOptionViewItem words(option);
    words.rect.setLeft(option.rect.left() + kLetter);
    rows_->paint(painter, words, index);
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override { return rows_->sizeHint(option, index) + QSize(kLetter, 0); }

 private:
  static constexpr int kLetter = 22;
  QAbstractItemDelegate* rows_;
};

}  // namespace

LibraryTable::LibraryTable(LibraryFilter* runs, QWidget* parent) : QTableView(parent) {
  setModel(runs);
  style_table(*this, tr("Runs of the library"));
  setItemDelegateForColumn(LibraryModel::Tick, new TickDelegate(this));
  setItemDelegateForColumn(LibraryModel::Name, new NameDelegate(this));
  setSelectionMode(QAbstractItemView::ExtendedSelection);
  setSortingEnabled(true);
  sortByColumn(LibraryModel::Date, Qt::DescendingOrder);
  setContextMenuPolicy(Qt::CustomContextMenu);
  const int widths[] = {70, kNameWidth, 84, kChangesWidth, 84, 84, 104, 130, 92, 104, 112, 88, 112, 132};
  for (int i = 0; i < LibraryModel::kColumns; ++i) setColumnWidth(i, widths[i]);
  horizontalHeader()->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(horizontalHeader(), &QWidget::customContextMenuRequested, this, &LibraryTable::columnMenu);
  for (const auto signal : {&QAbstractItemModel::rowsInserted, &QAbstractItemModel::rowsRemoved})
    connect(runs, signal, this, &LibraryTable::fitColumns);
  connect(runs, &QAbstractItemModel::modelReset, this, &LibraryTable::fitColumns);
}

void LibraryTable::resizeEvent(QResizeEvent* event) {
  fitColumns();
  QTableView::resizeEvent(event);
}

void LibraryTable::showEvent(QShowEvent* event) {
  fitColumns();
  QTableView::showEvent(event);
}

void LibraryTable::mousePressEvent(QMouseEvent* event) {
  const QModelIndex index = indexAt(event->position().toPoint());
  if (event->button() != Qt::LeftButton || index.column() != LibraryModel::Tick) return QTableView::mousePressEvent(event);
  emit tickClicked(index);
}

bool LibraryTable::hasValues(int column) const {
  for (int row = 0; row < model()->rowCount(); ++row)
    if (const QString text = model()->index(row, column).data().toString(); !text.isEmpty() && text != QStringLiteral("–")) return true;
  return false;
}

// Hides columns without a value, and the least important ones when the window is narrow, unless the user has chosen the columns. Names
// are whole as long as there is space for them, then the changed choices: both say what differs.
void LibraryTable::fitColumns() {
  if (columns_chosen_) return;
  constexpr int kLeast[] = {LibraryModel::Preset, LibraryModel::Status, LibraryModel::Tags, LibraryModel::Peak, LibraryModel::Calls,
                            LibraryModel::Date,   LibraryModel::Device, LibraryModel::TrainingLoss, LibraryModel::TestLoss, LibraryModel::Changes};
  constexpr int kLessThanChanges = 3;  // so many of them give their place to the text of the changes
  const int space = viewport()->width();
  setColumnWidth(LibraryModel::Name, std::clamp(sizeHintForColumn(LibraryModel::Name) + 8, kNameWidth, kMostName));
  setColumnWidth(LibraryModel::Changes, kChangesWidth);
  for (int column : kLeast) setColumnHidden(column, !hasValues(column));
  for (int column : kLeast)
    if (horizontalHeader()->length() > space) setColumnHidden(column, true);
  const int wanted = std::clamp(sizeHintForColumn(LibraryModel::Changes) + 16, kChangesWidth, kMostChanges) - kChangesWidth;
  for (int i = 0; i < kLessThanChanges && !isColumnHidden(LibraryModel::Changes); ++i)
    if (horizontalHeader()->length() + wanted > space) setColumnHidden(kLeast[i], true);
  const int left = space - horizontalHeader()->length();
  const int widest = isColumnHidden(LibraryModel::Changes) ? LibraryModel::Name : LibraryModel::Changes;
  if (left > 0) setColumnWidth(widest, columnWidth(widest) + left);
  if (left < 0) setColumnWidth(LibraryModel::Name, std::max(kNameWidth, columnWidth(LibraryModel::Name) + left));
}

void LibraryTable::columnMenu(const QPoint& at) {
  QMenu menu(this);
  for (int column = LibraryModel::Preset; column < LibraryModel::kColumns; ++column) {
    QAction* action = menu.addAction(model()->headerData(column, Qt::Horizontal).toString());
    action->setCheckable(true);
    action->setChecked(!isColumnHidden(column));
    connect(action, &QAction::toggled, this, [this, column](bool on) {
      columns_chosen_ = true;
      setColumnHidden(column, !on);
    });
  }
  menu.exec(horizontalHeader()->mapToGlobal(at));
}

}  // namespace ws::app
