// The look of tables, grounds and titles, which the pages share.
#pragma once
#include <QTableView>

class QLabel;

namespace ws::app {

class Pane;

// Dense rows, no grid, whole rows selected, the keyboard moves by row.
void style_table(QTableView& table, const QString& name);
// Makes the table the body of the pane. The label that is returned stands there in its place while it is hidden.
QLabel* put_table(Pane& pane, QTableView* table);
// The ground and edges that the style sheet gives a "header", a "footer" or a "panel".
void style_ground(QWidget& widget, const QString& part);
// The title line of a panel of the right side.
void style_panel_title(QLabel& title);
// A cell of the first column has the colour square of the meaning stored under this role.
constexpr int kMeaningRole = Qt::UserRole + 1;
constexpr int kSectionRole = Qt::UserRole + 2;  // true: the row is a heading over the rows below
constexpr int kSortRole = Qt::UserRole + 3;

}  // namespace ws::app
