#include "app/pages/compare/compare_table.h"

#include <QHeaderView>
#include <QPainter>

#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {

void CompareDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const Theme& t = theme();
  const bool section = index.data(kSectionRole).toBool();
  const QColor back = section ? t.header : option.state & QStyle::State_Selected ? t.selected_row : t.base;
  painter->fillRect(option.rect, back);
  painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), t.minor_grid);
  // In a narrow column the secondary text is below the number, not beside it.
  const bool number = static_cast<Qt::Alignment>(index.data(Qt::TextAlignmentRole).toInt()) & Qt::AlignRight,
             stacked = number && option.rect.height() >= kStackedHeight;
  QRect box = stacked ? option.rect.adjusted(2, 3, -6, -kStackedHeight / 2)
                      : option.rect.adjusted(8, 0, number ? -8 : -4, 0);
  const QVariant colour = index.data(kColourRole);
  const QString beside = index.data(kBesideRole).toString();
  painter->setFont(ui_font(section ? 11.5 : 12, section || index.data(kStrongRole).toBool() ? 600 : 400));
  if (!beside.isEmpty()) {
    painter->setPen(colour.isValid() ? colour.value<QColor>() : t.secondary);
    const QRect below(box.left(), option.rect.top() + kStackedHeight / 2, box.width(), kStackedHeight / 2 - 3);
    if (stacked) painter->setFont(ui_font(11));
    const QRect place = stacked ? below : box;
    const bool fits = number_width(painter->font(), beside) <= place.width();  // else its mark alone
    draw_number(*painter, place, Qt::AlignRight | Qt::AlignVCenter, fits ? beside : beside.left(1));
    if (!stacked) box.setRight(box.right() - kBesideWidth);
    painter->setFont(ui_font(12, index.data(kStrongRole).toBool() ? 600 : 400));
  }
  const QColor ink = section ? t.secondary : colour.isValid() && beside.isEmpty() ? colour.value<QColor>() : t.text;
  painter->setPen(ink);
  const QString text = index.data().toString();
  if (number)
    draw_number(*painter, box, Qt::AlignRight | Qt::AlignVCenter, text);
  else
    painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, painter->fontMetrics().elidedText(text, option.textElideMode, box.width()));
}

int CompareTable::cutFrom() const {
  const int height = viewport()->height(), row = rowAt(height - 1), top = row < 0 ? 0 : rowViewportPosition(row);
  return row >= 0 && top > 0 && top + rowHeight(row) > height ? top : -1;
}

void CompareTable::paintEvent(QPaintEvent* event) {
  QTableWidget::paintEvent(event);
  if (const int top = cutFrom(); top >= 0) QPainter(viewport()).fillRect(viewport()->rect().adjusted(0, top, 0, 0), theme().base);
}

QTableWidgetItem* table_item(const QString& text, bool number) {
  auto* made = new QTableWidgetItem(text);
  if (number) made->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return made;
}

void elide_run_heads(QTableWidget& table, int first, bool whole_or_none) {
  constexpr int kBeside = 40;  // letter and margins
  const QFontMetrics metrics(table.horizontalHeader()->font());
  for (int column = first; column < table.columnCount(); ++column)
    if (QTableWidgetItem* head = table.horizontalHeaderItem(column); head && !head->icon().isNull()) {
      const int space = std::max(0, table.columnWidth(column) - kBeside);
      const bool fits = metrics.horizontalAdvance(head->toolTip()) <= space;
      head->setText(whole_or_none && !fits ? QString() : metrics.elidedText(head->toolTip(), Qt::ElideRight, space));
    }
}

void head_with_runs(QTableWidget& table, int first, const std::vector<std::pair<int, QString>>& runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    auto* head = new QTableWidgetItem(badge_icon(runs[i].first), runs[i].second);
    head->setToolTip(runs[i].second);
    table.setHorizontalHeaderItem(first + static_cast<int>(i), head);
  }
}

}  // namespace ws::app
