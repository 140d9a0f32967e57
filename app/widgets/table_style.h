// The style of tables, backgrounds and titles, which the pages share.
#pragma once
#include <QTableView>

#include "profiling/annotate/annotate.h"

class QLabel;

namespace ws::app {

class Pane;

// Dense rows, no grid, row selection, keyboard navigation by row.
void style_table(QTableView& table, const QString& name);
void show_whole_rows(QAbstractItemView& rows);  // also of a list or a tree: covers a row of which only a part fits
// Makes the table the body of the pane. Returns the label that replaces the table while the table is hidden.
QLabel* put_table(Pane& pane, QTableView* table);
// Background and borders that the style sheet gives a "header", a "footer" or a "panel".
void style_ground(QWidget& widget, const QString& part);
// The title line of a panel in the right column.
void style_panel_title(QLabel& title);
// A cell of the first column has the colour square of the meaning stored under this role.
constexpr int kMeaningRole = Qt::UserRole + 1;
constexpr int kDataWaitSwatch = static_cast<int>(prof::kMeanings);  // instead of a meaning: the colour of waits for data
constexpr int kSectionRole = Qt::UserRole + 2;  // True: the row is a heading
constexpr int kBarRole = Qt::UserRole + 4;      // length of a bar before the number, as a share of the longest; in the colour of kMeaningRole
constexpr int kSortRole = Qt::UserRole + 3;

}  // namespace ws::app
