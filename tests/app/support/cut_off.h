// What of a window is cut off or cannot be reached by the eye, in sentences; empty: everything is there.
#pragma once
#include <QAbstractScrollArea>
#include <QComboBox>
#include <QDialog>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>

#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"
#include "tests/app/support/painted_text.h"

namespace ws::test {
using ws::app::Segment;

// What is shortened on purpose, and says the whole in its tooltip.
inline bool may_be_short(const QWidget& w) {
  static const QStringList kNames{"Preset", "Current run", "Baseline"};
  if (w.objectName() == "note") return true;  // beside a pane's title: whole, or in brief, or not at all
  return kNames.contains(w.accessibleName()) && !w.toolTip().isEmpty();
}

inline bool scrolls(const QWidget& w) {
  for (const QWidget* p = w.parentWidget(); p; p = p->parentWidget())
    if (qobject_cast<const QAbstractScrollArea*>(p)) return true;
  return false;
}

// Where nobody can scroll sideways, nothing may stand beyond the edge.
inline bool beyond_the_scroll(const QWidget& w) {
  for (const QWidget* p = w.parentWidget(); p; p = p->parentWidget()) {
    const auto* area = qobject_cast<const QAbstractScrollArea*>(p);
    if (!area || area->horizontalScrollBarPolicy() != Qt::ScrollBarAlwaysOff) continue;
    return w.mapTo(area->viewport(), QPoint(w.width(), 0)).x() > area->viewport()->width() + 1;
  }
  return false;
}

inline QString words(const QWidget& w) {
  if (const auto* label = qobject_cast<const QLabel*>(&w)) return label->text();
  if (const auto* button = qobject_cast<const QAbstractButton*>(&w)) return button->text();
  if (const auto* box = qobject_cast<const QComboBox*>(&w)) return box->currentText();
  return {};
}

// Empty: it fits. Else what is missing.
inline QString shortage(const QWidget& w) {
  const QString text = words(w);
  if (text.isEmpty() || may_be_short(w)) return {};
  QSize need = w.sizeHint();
  if (qobject_cast<const Segment*>(&w)) need = w.minimumSizeHint();
  if (const auto* label = qobject_cast<const QLabel*>(&w); label && label->wordWrap())
    need = {label->minimumSizeHint().width() > label->width() ? label->minimumSizeHint().width() : 0,
            label->heightForWidth(label->width())};
  if (const auto* box = qobject_cast<const QComboBox*>(&w))
    need = {box->fontMetrics().horizontalAdvance(text) + 28, 0};  // its frame and the arrow
  if (const auto* push = qobject_cast<const QPushButton*>(&w); push && push->menu())
    need = {push->fontMetrics().horizontalAdvance(text) + 22, 0};  // the arrow stands in its frame
  const bool button = qobject_cast<const QAbstractButton*>(&w) != nullptr;
  if (need.width() > w.width() + 1 || (!button && need.height() > w.height() + 1))
    return QString("%1×%2, needs %3×%4").arg(w.width()).arg(w.height()).arg(need.width()).arg(need.height());
  const bool named_like_its_menu = qobject_cast<const QDialog*>(w.window());
  if (text.endsWith(QChar(0x2026)) && qobject_cast<const QLabel*>(&w) && !named_like_its_menu)
    return "ends with an ellipsis";
  if (beyond_the_scroll(w)) return "beyond the edge of what scrolls";
  const QRect seen = w.visibleRegion().boundingRect();
  if (!scrolls(w) && !seen.contains(w.rect().adjusted(1, 1, -1, -1)))
    return QString("%1×%2 seen of %3×%4").arg(seen.width()).arg(seen.height()).arg(w.width()).arg(w.height());
  return {};
}

inline QStringList short_columns(const QHeaderView& header) {
  QStringList found;
  if (!header.isVisible() || header.orientation() != Qt::Horizontal) return found;
  for (int i = 0; header.model() && i < header.count(); ++i) {
    const QString title = header.model()->headerData(i, Qt::Horizontal).toString();
    if (header.model()->headerData(i, Qt::Horizontal, Qt::ToolTipRole).toString() == title) continue;  // a run's
    int need = 0;
    for (const QString& line : title.split('\n'))
      need = std::max(need, header.fontMetrics().horizontalAdvance(line) + 12);
    if (header.textElideMode() == Qt::ElideNone) need = header.sectionSizeHint(i) + 6;
    if (!header.isSectionHidden(i) && header.sectionSize(i) < need)
      found << QString("column “%1”: %2, needs %3").arg(title).arg(header.sectionSize(i)).arg(need);
  }
  return found;
}

inline QStringList short_tabs(const QTabBar& tabs) {
  const bool roomy = tabs.objectName() == "strip" && !tabs.property("tight").toBool();
  const int frame = roomy ? 24 : 14;  // of a tab, as the style sheet has it
  QStringList found;
  for (int i = 0; i < tabs.count(); ++i)
    if (const int need = tabs.fontMetrics().horizontalAdvance(tabs.tabText(i)) + frame;
        tabs.isTabVisible(i) && tabs.tabRect(i).width() < need)
      found << QString("tab “%1”: %2, needs %3").arg(tabs.tabText(i)).arg(tabs.tabRect(i).width()).arg(need);
  return found;
}

inline QString beyond_the_edge(const QTableView& table) {
  constexpr int kMostColumns = 6;  // of two runs, or of five
  if (table.accessibleName() == "Measures" && table.model()->columnCount() > kMostColumns) return {};
  const int more = table.horizontalScrollBar()->maximum();
  return more > 0 ? QString("table “%1”: %2 pixels of columns are out of sight").arg(table.accessibleName()).arg(more)
                  : QString();
}

// A number that is clipped is another number.
inline QString clipped_number(const QLineEdit& edit) {
  static const QRegularExpression number(R"(^[-+0-9.,e ]+$)");
  constexpr int kFrame = 14;
  const int need = edit.fontMetrics().horizontalAdvance(edit.text()) + kFrame;
  if (edit.hasFocus() || !number.match(edit.text()).hasMatch() || need <= edit.width()) return {};
  return QString("field “%1”: %2 for %3, needs %4").arg(edit.accessibleName()).arg(edit.width()).arg(edit.text()).arg(need);
}

// Looks at the rows in sight.
inline QStringList clipped_numbers(const QTableView& table) {
  QStringList found;
  const QAbstractItemModel& model = *table.model();
  const int first = std::max(0, table.rowAt(0)), last = table.rowAt(table.viewport()->height() - 1);
  for (int row = first; row < (last < 0 ? model.rowCount() : last + 1); ++row)
    for (int column = 0; column < model.columnCount(); ++column) {
      const QModelIndex index = model.index(row, column);
      const QString text = index.data().toString();
      if (table.isColumnHidden(column) || !(index.data(Qt::TextAlignmentRole).toInt() & Qt::AlignRight)) continue;
      constexpr int kMargins = 12;
      const double need = ws::app::number_width(ws::app::ui_font(12), text) + kMargins;
      if (need > table.columnWidth(column))
        found << QString("“%1” of table “%2”: %3, needs %4").arg(text, table.accessibleName()).arg(table.columnWidth(column)).arg(need);
    }
  return found;
}

// Space for an arrow is an arrow.
inline QString text_beside_arrow(const QPushButton& button) {
  return button.property("menu").toBool() && !button.menu() ? QString("button “%1” keeps room for an arrow").arg(button.text()) : QString();
}

// Charts, timelines, maps and bars: what is not made of labels and buttons.
inline bool paints_letters(const QWidget& w) {
  return QString(w.metaObject()->className()).startsWith("ws::app::") && !qobject_cast<const QAbstractButton*>(&w) &&
         !qobject_cast<const QAbstractScrollArea*>(&w);
}

inline QStringList cut_off(const QWidget& window) {
  QStringList found;
  for (QWidget* w : window.findChildren<QWidget*>()) {
    if (!w->isVisible() || w->window() != &window) continue;
    if (const QString why = shortage(*w); !why.isEmpty())
      found << QString("%1 “%2” (%3): %4")
                   .arg(w->metaObject()->className(), words(*w).left(60), w->parentWidget()->metaObject()->className(),
                        why);
    if (const auto* header = qobject_cast<const QHeaderView*>(w)) {
      found << short_columns(*header);
      if (header->orientation() == Qt::Horizontal)
        for (const QString& line : unreadable(*header->viewport())) found << "heading " + line;
    }
    if (const auto* push = qobject_cast<const QPushButton*>(w); push && !text_beside_arrow(*push).isEmpty())
      found << text_beside_arrow(*push);
    if (const auto* tabs = qobject_cast<const QTabBar*>(w)) found << short_tabs(*tabs);
    if (const auto* table = qobject_cast<const QTableView*>(w); table && !beyond_the_edge(*table).isEmpty())
      found << beyond_the_edge(*table);
    if (const auto* table = qobject_cast<const QTableView*>(w)) found << clipped_numbers(*table);
    if (const auto* edit = qobject_cast<const QLineEdit*>(w); edit && !clipped_number(*edit).isEmpty())
      found << clipped_number(*edit);
    if (paints_letters(*w))
      for (const QString& line : unreadable(*w)) found << QString("%1: %2").arg(w->metaObject()->className(), line);
  }
  return found;
}

}  // namespace ws::test
