#include "app/report/figure_model.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QTableView>
#include <algorithm>
#include <cmath>

#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "profiling/base/whole_file.h"

namespace ws::app {

void FigureModel::setTable(FigureTable table) {
  const auto names = [](const FigureTable& of) {
    std::vector<std::string> all;
    for (const auto& column : of.columns) all.push_back(column.name);
    return all;
  };
  const bool same = table.rows.size() == table_.rows.size() && names(table) == names(table_);
  if (!same) beginResetModel();
  table_ = std::move(table);
  if (!same) return endResetModel();
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

int FigureModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.rows.size());
}
int FigureModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.columns.size());
}

bool FigureModel::isNumber(int column) const {
  return table_.columns[static_cast<size_t>(column)].kind != FigureTable::Kind::Text;
}

QString FigureModel::text(int row, int column) const {
  const auto r = static_cast<size_t>(row), c = static_cast<size_t>(column);
  const auto* number = std::get_if<double>(&table_.rows[r][c]);
  if (!number) return app::text(std::get<std::string>(table_.rows[r][c]));
  const FigureTable::Column& kind = table_.columns[c];
  if (std::isnan(*number)) return QStringLiteral("—");
  return kind.kind == FigureTable::Kind::Bytes ? bytes_text(*number) : fixed_text(*number, kind.decimals);
}

QVariant FigureModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount() || index.column() >= columnCount()) return {};
  const auto& cell = table_.rows[static_cast<size_t>(index.row())][static_cast<size_t>(index.column())];
  if (role == Qt::DisplayRole) return text(index.row(), index.column());
  if (role == kSectionRole) return isSum(index.row());
  if (role == kSortRole) {
    if (const auto* name = std::get_if<std::string>(&cell)) return app::text(*name);
    const double value = std::get<double>(cell);
    return std::isnan(value) ? -1.0 : value;
  }
  if (role == Qt::ToolTipRole && !isNumber(index.column())) return text(index.row(), index.column());
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isNumber(index.column()) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  return {};
}

QVariant FigureModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const FigureTable::Column& column = table_.columns[static_cast<size_t>(section)];
  if (role == Qt::DisplayRole) return app::text(column.name);
  if (role == Qt::ToolTipRole && !column.tip.empty()) return app::text(column.tip);
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isNumber(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  return {};
}

bool FigureSorter::lessThan(const QModelIndex& a, const QModelIndex& b) const {
  const auto* model = static_cast<const FigureModel*>(sourceModel());
  if (model->isSum(a.row()) != model->isSum(b.row()))
    return model->isSum(b.row()) == (sortOrder() == Qt::AscendingOrder);
  return QSortFilterProxyModel::lessThan(a, b);
}

QTableView* figure_table(QWidget* parent, FigureModel& model, FigureSorter& sorter, const QString& name) {
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

QString ask_and_write(QWidget* parent, const QString& name, const FigureTable& table) {
  const QString path = QFileDialog::getSaveFileName(parent, QObject::tr("Export a table"), name, QObject::tr("CSV (*.csv)"));
  if (path.isEmpty()) return {};
  prof::write_whole(path.toStdString(), to_csv(table));
  return QObject::tr("Written: %1").arg(QFileInfo(path).fileName());
}

void fit_figure_columns(QTableView& table, const FigureModel& model) {
  constexpr int kMargins = 18, kHeadMargins = 23, kLeastName = 52, kRowsMeasured = 300;
  const int columns = model.columnCount(), rows = std::min(model.rowCount(), kRowsMeasured);
  int names = -1, taken = 0;
  for (int c = 0; c < columns; ++c) {
    if (names < 0 && model.figures().columns[static_cast<size_t>(c)].kind == FigureTable::Kind::Text) {
      names = c;
      continue;
    }
    double wide = 0;
    for (int r = 0; r < rows; ++r)
      wide = std::max(wide, number_width(ui_font(12, model.isSum(r) ? 600 : 400), model.index(r, c).data().toString()));
    const QHeaderView* header = table.horizontalHeader();
    const bool sorted = header->sortIndicatorSection() == c;  // its arrow needs space
    const QString title = model.headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
    const int head =
        sorted ? header->sectionSizeHint(c) + 2 : header->fontMetrics().horizontalAdvance(title) + kHeadMargins;
    table.setColumnWidth(c, std::max(static_cast<int>(wide) + kMargins, head));
    taken += table.columnWidth(c);
  }
  const int left = table.viewport()->width() - taken;
  if (names >= 0) return table.setColumnWidth(names, std::max(kLeastName, left));
  for (int c = 0; c < columns && left > 0; ++c) table.setColumnWidth(c, table.columnWidth(c) + left / columns);
}

}  // namespace ws::app
