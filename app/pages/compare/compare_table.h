// Cells of the tables on the Compare page: a value, and its difference from the baseline beside it.
#pragma once
#include <QColor>
#include <QStyledItemDelegate>
#include <QTableWidget>

namespace ws::app {

constexpr int kBesideRole = Qt::UserRole + 11;  // text at the right of the value
constexpr int kColourRole = Qt::UserRole + 12;  // colour of that text, or of the whole cell if there is none
constexpr int kStrongRole = Qt::UserRole + 13;  // bold

class CompareDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  static constexpr int kBesideWidth = 92;
  static constexpr int kStackedHeight = 36;  // height of a row with differences below the numbers
};

// Shows whole rows only: a row that the lower edge would cut stays empty until one scrolls to it.
class CompareTable : public QTableWidget {
 public:
  using QTableWidget::QTableWidget;
  int cutFrom() const;  // y in the viewport where the row begins that does not fit; -1: all rows fit

 protected:
  void paintEvent(QPaintEvent* event) override;
};

QTableWidgetItem* table_item(const QString& text, bool number = false);
// Sets column headings with the badges of the runs, from column `first` on.
void head_with_runs(QTableWidget& table, int first, const std::vector<std::pair<int, QString>>& runs);
void elide_run_heads(QTableWidget& table, int first, bool whole_or_none = false);  // to the column widths; tooltips have the full titles

}  // namespace ws::app
