#include "app/widgets/table_style.h"

#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QScrollBar>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "app/widgets/pane.h"
#include "app/widgets/theme.h"
#include "profiling/analysis/step_breakdown.h"

namespace ws::app {
namespace {

constexpr int kRowHeight = 22, kHeaderHeight = 24, kNumberWidth = 56, kMargin = 8;

class RowDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    const bool chosen = option.state & QStyle::State_Selected, section = index.data(kSectionRole).toBool();
    const QColor back = section ? t.header : chosen ? t.selected_row : t.base;
    painter->fillRect(option.rect, back);
    painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), t.minor_grid);
    QRect box = option.rect.adjusted(kMargin, 0, -kMargin, 0);
    const QVariant meaning = index.data(kMeaningRole);
    const QBrush fill = meaning.toInt() == kDataWaitSwatch ? part_brush({prof::Meaning::Idle, prof::PartKind::HostData}) : meaning_brush(static_cast<prof::Meaning>(meaning.toInt()));
    if (const QVariant bar = index.data(kBarRole); bar.isValid()) {
      const QRectF most = QRectF(box).adjusted(0, 4, -kNumberWidth, -4);
      if (meaning.isValid() && bar.toDouble() > 0) draw_fill(*painter, QRectF(most.left(), most.top(), std::max(1.0, most.width() * bar.toDouble()), most.height()), fill);
    } else if (meaning.isValid()) {
      draw_fill(*painter, QRectF(box.left(), box.center().y() - 4, 9, 9), fill);
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

// The heading of a column of numbers ends where its numbers end.
class TableHeader : public QHeaderView {
 public:
  explicit TableHeader(QWidget* parent) : QHeaderView(Qt::Horizontal, parent) {
    setSectionsClickable(true), setHighlightSections(false);
    setFont(ui_font(11));
    setTextElideMode(Qt::ElideRight);
  }

 protected:
  void paintSection(QPainter* painter, const QRect& rect, int section) const override {
    const Theme& t = theme();
    const QRect line(rect.left(), rect.bottom(), rect.width(), 1), edge(rect.right(), rect.top(), 1, rect.height());
    painter->fillRect(rect, t.header);
    for (const QRect& border : {line, edge}) painter->fillRect(border, t.border);
    const Heading heading = headingOf(section);
    QRect box = rect.adjusted(kMargin, 0, -kMargin, 0);
    const bool sorted = isSortIndicatorShown() && sortIndicatorSection() == section;
    const int mark = sorted ? kMark : 0, icon = heading.icon.isNull() ? 0 : iconSize().width() + kApart;
    painter->setFont(heading.font);
    painter->setPen(sorted ? t.text : t.secondary);
    const QString words = painter->fontMetrics().elidedText(heading.words, textElideMode(), box.width() - icon - mark);
    const int wide = icon + painter->fontMetrics().horizontalAdvance(words);
    if (heading.right) box.setLeft(std::max(box.left(), box.right() + 1 - wide - mark));
    if (sorted) paintMark(*painter, heading.right ? box.left() : box.left() + wide + kApart, box.center().y());
    if (heading.right) box.setLeft(box.left() + mark);
    if (icon > 0) heading.icon.paint(painter, QRect(box.left(), box.center().y() - iconSize().height() / 2, iconSize().width(), iconSize().height()));
    painter->setPen(sorted ? t.text : t.secondary);
    painter->drawText(box.adjusted(icon, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, words);
  }

  // With space for the mark, so that a click moves nothing.
  QSize sectionSizeFromContents(int section) const override {
    const Heading heading = headingOf(section);
    const int icon = heading.icon.isNull() ? 0 : iconSize().width() + kApart;
    return {QFontMetrics(heading.font).horizontalAdvance(heading.words) + icon + kMark + 2 * kMargin, kHeaderHeight};
  }

 private:
  static constexpr int kMark = 12, kApart = 4;
  struct Heading {
    QString words;
    QFont font;
    QIcon icon;
    bool right;
  };
  Heading headingOf(int section) const {
    if (!model()) return {{}, font(), {}, false};  // it went before its table
    const auto of = [&](int role) { return model()->headerData(section, Qt::Horizontal, role); };
    QVariant align = of(Qt::TextAlignmentRole);
    for (int row = 0; !align.isValid() && row < std::min(model()->rowCount(), kRowsAsked); ++row)
      if (const QModelIndex cell = model()->index(row, section); !cell.data(kSectionRole).toBool()) align = cell.data(Qt::TextAlignmentRole);
    const QVariant font = of(Qt::FontRole);
    return {of(Qt::DisplayRole).toString(), font.isValid() ? font.value<QFont>().resolve(this->font()) : this->font(), of(Qt::DecorationRole).value<QIcon>(),
            align.isValid() && (align.toInt() & Qt::AlignRight)};
  }
  static constexpr int kRowsAsked = 8;

  void paintMark(QPainter& painter, int left, int middle) const {
    const bool up = sortIndicatorOrder() == Qt::AscendingOrder;
    const int high = up ? -3 : 3;
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme().focus);
    painter.drawPolygon(QPolygonF{{left + 0.0, middle - high + 0.5}, {left + 8.0, middle - high + 0.5}, {left + 4.0, middle + high + 0.5}});
    painter.restore();
  }
};

// Lies over the lowest row if only a part of it fits, so that no row is cut.
class CutRowCover : public QWidget {
 public:
  explicit CutRowCover(QAbstractItemView& rows) : QWidget(&rows), rows_(rows) {
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Base);
    hide();
    rows.viewport()->installEventFilter(this);
    connect(rows.verticalScrollBar(), &QScrollBar::valueChanged, this, &CutRowCover::place);
    connect(rows.verticalScrollBar(), &QScrollBar::rangeChanged, this, &CutRowCover::place);
  }

 protected:
  bool eventFilter(QObject* object, QEvent* event) override {
    if (event->type() == QEvent::Resize) QMetaObject::invokeMethod(this, &CutRowCover::place, Qt::QueuedConnection);
    return QWidget::eventFilter(object, event);
  }

 private:
  void place() {
    const QRect seen = rows_.viewport()->geometry(), row = rows_.visualRect(rows_.indexAt({1, seen.height() - 1}));
    const bool cut = row.top() > 0 && row.bottom() >= seen.height();  // the only row may be higher than the table
    if (cut) setGeometry(seen.left(), seen.top() + row.top(), seen.width(), seen.height() - row.top());
    setVisible(cut);
  }
  QAbstractItemView& rows_;
};

}  // namespace

void style_table(QTableView& table, const QString& name) {
  table.setAccessibleName(name);
  table.setHorizontalHeader(new TableHeader(&table));
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
  show_whole_rows(table);
}

void show_whole_rows(QAbstractItemView& rows) { new CutRowCover(rows); }

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
