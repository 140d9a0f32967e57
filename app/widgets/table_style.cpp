#include "app/widgets/table_style.h"

#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kRowHeight = 22, kHeaderHeight = 24, kNumberWidth = 56;

class RowDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    const bool chosen = option.state & QStyle::State_Selected, section = index.data(kSectionRole).toBool();
    const QColor back = section ? t.header : chosen ? t.selected_row : t.base;
    painter->fillRect(option.rect, back);
    painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), t.minor_grid);
    QRect box = option.rect.adjusted(8, 0, -8, 0);
    const QVariant meaning = index.data(kMeaningRole);
    if (const QVariant bar = index.data(kBarRole); bar.isValid()) {
      const QRectF most = QRectF(box).adjusted(0, 4, -kNumberWidth, -4);
      if (meaning.isValid() && bar.toDouble() > 0) draw_fill(*painter, QRectF(most.left(), most.top(), std::max(1.0, most.width() * bar.toDouble()), most.height()), meaning_brush(static_cast<prof::Meaning>(meaning.toInt())));
    } else if (meaning.isValid()) {
      draw_fill(*painter, QRectF(box.left(), box.center().y() - 4, 9, 9),
                meaning_brush(static_cast<prof::Meaning>(meaning.toInt())));
      box.setLeft(box.left() + 16);
    }
    const auto align = static_cast<Qt::Alignment>(index.data(Qt::TextAlignmentRole).toInt());
    const bool number = align & Qt::AlignRight;
    painter->setFont(ui_font(section ? 11.5 : 12, section ? 600 : 400));
    const QVariant pale = index.data(Qt::ForegroundRole);
    const QColor ink = pale.isValid() ? pale.value<QColor>() : t.text;
    painter->setPen(section ? t.secondary : ink);
    const QString text = index.data().toString();
    if (number)
      draw_number(*painter, box, Qt::AlignRight | Qt::AlignVCenter, text);
    else
      painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, painter->fontMetrics().elidedText(text, option.textElideMode, box.width()));
  }
};

}  // namespace

void style_table(QTableView& table, const QString& name) {
  table.setAccessibleName(name);
  table.setShowGrid(false);
  table.setFrameShape(QFrame::NoFrame);
  table.setSelectionBehavior(QAbstractItemView::SelectRows);
  table.setSelectionMode(QAbstractItemView::SingleSelection);
  table.setEditTriggers(QAbstractItemView::NoEditTriggers);
  table.setItemDelegate(new RowDelegate(&table));
  table.setTabKeyNavigation(false);
  table.setWordWrap(false);
  table.setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table.verticalHeader()->hide();
  table.verticalHeader()->setDefaultSectionSize(kRowHeight);
  table.verticalHeader()->setMinimumSectionSize(kRowHeight);
  table.horizontalHeader()->setFixedHeight(kHeaderHeight);
  table.horizontalHeader()->setHighlightSections(false);
  table.horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table.horizontalHeader()->setFont(ui_font(11));
  table.horizontalHeader()->setTextElideMode(Qt::ElideRight);
}

QLabel* put_table(Pane& pane, QTableView* table) {
  auto* body = new QWidget(&pane);
  auto* words = new QLabel(body);
  words->setAlignment(Qt::AlignCenter);
  words->setWordWrap(true);
  words->setMargin(16);
  words->setForegroundRole(QPalette::PlaceholderText);
  words->hide();
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(table);
  column->addWidget(words, 1);
  pane.setBody(body);
  return words;
}

void style_ground(QWidget& widget, const QString& part) {
  widget.setObjectName(part);
  widget.setAttribute(Qt::WA_StyledBackground);
}

void style_panel_title(QLabel& title) {
  title.setFixedHeight(28);
  title.setFont(ui_font(12.5));
  title.setIndent(12);
  title.setAutoFillBackground(true);
  title.setBackgroundRole(QPalette::AlternateBase);
}

}  // namespace ws::app
