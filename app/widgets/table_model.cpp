#include "app/widgets/table_model.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QTableView>
#include <algorithm>
#include <functional>
#include <vector>

#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/glossary.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

QString value_text(const Table::Cell& cell, const Table::Column& column) {
  if (!cell.text.empty()) return text(cell.text);
  if (const auto* words = std::get_if<std::string>(&cell.value)) return text(*words);
  if (!cell.known()) return QStringLiteral("—");
  const double value = cell.number();
  switch (column.kind) {
    case Table::Kind::Count:
      return count_text(static_cast<int64_t>(value));
    case Table::Kind::Significant:
      return significant_text(value);
    case Table::Kind::Bytes:
      return bytes_text(value);
    case Table::Kind::Percent:
      return fixed_text(100 * value, column.decimals);
    case Table::Kind::Time:
      return us_text(value);
    default:
      return fixed_text(value, column.decimals);
  }
}

QVariant sort_value(const Table::Cell& cell) {
  if (const auto* words = std::get_if<std::string>(&cell.value)) return text(*words);
  return cell.known() ? QVariant(cell.number()) : QVariant();
}

int alignment(bool left) { return static_cast<int>((left ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter); }

}  // namespace

void TableModel::setTable(Table table) {
  const bool same = table.rows.size() == table_.rows.size() &&
                    std::ranges::equal(table.columns, table_.columns, {}, &Table::Column::name, &Table::Column::name);
  if (!same) beginResetModel();
  table_ = std::move(table);
  if (!same) return endResetModel();
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

int TableModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(table_.rows.size()); }
int TableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.columns.size());
}

Table::Row::Part TableModel::part(int row) const {
  return row >= 0 && row < rowCount() ? table_.rows[static_cast<size_t>(row)].part : Table::Row::Part::Body;
}
bool TableModel::isLeft(int column) const { return table_.columns[static_cast<size_t>(column)].kind == Table::Kind::Text; }

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount() || index.column() >= columnCount()) return {};
  const auto& cells = table_.rows[static_cast<size_t>(index.row())].cells;
  const auto column = static_cast<size_t>(index.column());
  if (role == Qt::TextAlignmentRole) return alignment(isHeading(index.row()) || isLeft(index.column()));
  if (role == kSectionRole) return part(index.row()) != Table::Row::Part::Body;
  if (column >= cells.size()) return {};  // right of a heading
  const Table::Cell& cell = cells[column];
  if (role == Qt::DisplayRole) return value_text(cell, table_.columns[column]);
  if (role == Qt::ForegroundRole && !cell.known() && !cell.text.empty()) return theme().quiet;  // words instead of a value
  if (role == kSortRole) return sort_value(cell);
  if (role == kMeaningRole && cell.swatch >= 0) return cell.swatch;
  if (role == kBarRole && cell.bar >= 0) return cell.bar;
  if (role == Qt::ToolTipRole && !cell.tip.empty()) return text(cell.tip);
  if (role == Qt::ToolTipRole && isLeft(index.column())) return value_text(cell, table_.columns[column]);
  return {};
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const Table::Column& column = table_.columns[static_cast<size_t>(section)];
  if (role == Qt::DisplayRole) return text(column.unit.empty() ? column.name : column.name + ", " + column.unit);
  const Word* word = role == Qt::ToolTipRole || role == Qt::FontRole ? word_of(text(column.name)) : nullptr;
  if (role == Qt::FontRole && word) return word_font({}, word->name);  // all but the line is as in the other headings
  if (role == Qt::ToolTipRole && word) return word_tip(*word) + (column.tip.empty() ? QString() : "<br>" + text(column.tip).toHtmlEscaped());
  if (role == Qt::ToolTipRole && !column.tip.empty()) return text(column.tip);
  if (role == Qt::TextAlignmentRole) return alignment(isLeft(section));
  return {};
}

bool TableSorter::lessThan(const QModelIndex& a, const QModelIndex& b) const {
  const auto* model = static_cast<const TableModel*>(sourceModel());
  const bool ascending = sortOrder() == Qt::AscendingOrder;
  if (model->isSum(a.row()) != model->isSum(b.row())) return model->isSum(b.row()) == ascending;
  const bool a_known = a.data(kSortRole).isValid(), b_known = b.data(kSortRole).isValid();
  if (a_known != b_known) return a_known == ascending;
  return QSortFilterProxyModel::lessThan(a, b);
}

QTableView* table_view(QWidget* parent, TableModel& model, TableSorter& sorter, const QString& name) {
  auto* table = new QTableView(parent);
  sorter.setSourceModel(&model);
  sorter.setSortRole(kSortRole);
  table->setModel(&sorter);
  style_table(*table, name);
  table->setSortingEnabled(true);
  table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  sorter.sort(-1);
  return table;
}

QString ask_and_write(QWidget* parent, const QString& name, const Table& table) {
  const QString path = QFileDialog::getSaveFileName(parent, QObject::tr("Export a table"), name, QObject::tr("CSV (*.csv)"));
  if (path.isEmpty()) return {};
  prof::write_whole(path.toStdString(), to_csv(table));
  return written_text(path);
}

// The first column of texts is cut if there is not enough space. What is left goes to all columns of texts.
namespace {

// The widest columns give away what is missing, so that no column is cut while another has more space.
void narrow(QTableView& table, std::vector<int> columns, int missing) {
  constexpr int kLeastName = 52;
  std::ranges::sort(columns, std::greater{}, [&](int column) { return table.columnWidth(column); });
  int sum = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    sum += table.columnWidth(columns[i]);
    const int each = (sum - missing) / static_cast<int>(i + 1);
    if (i + 1 < columns.size() && each < table.columnWidth(columns[i + 1])) continue;
    for (size_t wide = 0; wide <= i; ++wide) table.setColumnWidth(columns[wide], std::max(kLeastName, each));
    return;
  }
}

}  // namespace

void fit_columns(QTableView& table, const TableModel& model) {
  constexpr int kMargins = 18, kRowsMeasured = 300;
  constexpr double kBars = 0.28;  // of the width
  const int columns = model.columnCount(), rows = std::min(model.rowCount(), kRowsMeasured);
  std::vector<int> shown, texts;
  int left = table.viewport()->width();
  for (int c = 0; c < columns; ++c) {
    if (table.isColumnHidden(c)) continue;
    double wide = 0;
    for (int r = 0; r < rows; ++r)
      if (!model.isHeading(r)) wide = std::max(wide, number_width(ui_font(12, model.isSum(r) ? 600 : 400), model.index(r, c).data().toString()));
    if (rows > 0 && model.index(0, c).data(kBarRole).isValid()) wide += kBars * table.viewport()->width();
    table.setColumnWidth(c, std::max(static_cast<int>(wide) + kMargins, table.horizontalHeader()->sectionSizeHint(c)));
    shown.push_back(c);
    left -= table.columnWidth(c);
    if (model.table().columns[static_cast<size_t>(c)].kind == Table::Kind::Text) texts.push_back(c);
  }
  if (left < 0) return narrow(table, texts, -left);
  const std::vector<int>& wider = texts.empty() ? shown : texts;
  for (size_t i = 0; i < wider.size() && left > 0; ++i) {
    const int more = left / static_cast<int>(wider.size() - i);
    table.setColumnWidth(wider[i], table.columnWidth(wider[i]) + more);
    left -= more;
  }
}

}  // namespace ws::app
