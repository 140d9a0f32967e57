#include "app/panels/kernels_panel.h"
#include "app/panels/units.h"

namespace ws::app {
namespace {

QString ns_text(double ns) { return us_text(ns / 1000); }
QString readable(const std::string& key) { return QString::fromStdString(prof::plain_kernel_name(key)); }

bool is_number(int column) { return column != KernelModel::Name && column != KernelModel::Grid; }

}  // namespace

void KernelModel::setRows(std::vector<prof::KernelRow> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

const prof::KernelRow* KernelModel::rowAt(int row) const {
  return row >= 0 && row < static_cast<int>(rows_.size()) ? &rows_[static_cast<size_t>(row)] : nullptr;
}

int KernelModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int KernelModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : Columns; }

QVariant KernelModel::sortValue(const prof::KernelRow& row, int column) const {
  switch (column) {
    case Name:
      return QString::fromStdString(row.key);
    case Count:
      return static_cast<qulonglong>(row.time.count);
    case Total:
    case Share:
      return static_cast<qlonglong>(row.time.total);
    case Mean:
      return row.time.mean;
    case Median:
      return static_cast<qlonglong>(row.time.median);
    case P99:
      return static_cast<qlonglong>(row.time.p99);
    case Max:
      return static_cast<qlonglong>(row.time.max);
    case Grid:
      return row.detail.grid[0] * row.detail.grid[1] * row.detail.grid[2];
    case Registers:
      return row.detail.registers;
    default:
      return {};
  }
}

QString KernelModel::text(const prof::KernelRow& row, int column) const {
  const prof::Detail& d = row.detail;
  switch (column) {
    case Name:
      return readable(row.key);
    case Count:
      return count_text(static_cast<int64_t>(row.time.count));
    case Total:
      return ns_text(static_cast<double>(row.time.total));
    case Share:
      return fixed_text(row.share * 100, 1);
    case Mean:
      return ns_text(row.time.mean);
    case Median:
      return ns_text(static_cast<double>(row.time.median));
    case P99:
      return ns_text(static_cast<double>(row.time.p99));
    case Max:
      return ns_text(static_cast<double>(row.time.max));
    case Grid:
      return d.block[0] == 0 ? QStringLiteral("—")
                             : QString("%1×%2×%3 · %4×%5×%6")
                                   .arg(d.grid[0])
                                   .arg(d.grid[1])
                                   .arg(d.grid[2])
                                   .arg(d.block[0])
                                   .arg(d.block[1])
                                   .arg(d.block[2]);
    case Registers:
      return d.registers ? QString::number(d.registers) : QStringLiteral("—");
    default:
      return {};
  }
}

QVariant KernelModel::data(const QModelIndex& index, int role) const {
  const prof::KernelRow* row = index.isValid() ? rowAt(index.row()) : nullptr;
  if (!row) return {};
  if (role == Qt::DisplayRole) return text(*row, index.column());
  if (role == kSortRole) return sortValue(*row, index.column());
  if (role == kMeaningRole && index.column() == Name) return static_cast<int>(row->meaning);
  if (role == Qt::ToolTipRole && index.column() == Name) return QString::fromStdString(row->key);
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(
        static_cast<int>((is_number(index.column()) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
  return {};
}

QVariant KernelModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static const char* const kNames[] = {"name",       "count",   "total, µs", "share, %",     "mean, µs",
                                       "median, µs", "p99, µs", "max, µs",   "grid · block", "registers"};
  if (orientation != Qt::Horizontal || section < 0 || section >= Columns) return {};
  if (role == Qt::DisplayRole) return QString::fromUtf8(kNames[section]);
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(
        static_cast<int>((is_number(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
  return {};
}

}  // namespace ws::app
