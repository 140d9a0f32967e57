#include "app/pages/kernels/kernel_model.h"

#include "app/text/units.h"
#include "app/widgets/table_style.h"

namespace ws::app {
namespace {

QString ns_text(double ns) { return us_text(ns / 1000); }

bool is_number(int column) {
  return column != KernelModel::Name && column != KernelModel::Grid && column != KernelModel::Occupancy;
}

// Tooltip of a cell; empty if the cell shows everything.
QString tip(const prof::KernelRow& row, int column) {
  if (column == KernelModel::Name && row.kind == prof::SpanKind::GraphRun)
    return QObject::tr(
        "A whole CUDA graph, from its launch to the end of its last kernel. The level Kernels records each kernel.");
  if (column == KernelModel::Name) return QString::fromStdString(row.key);
  if (!row.several_shapes ||
      (column != KernelModel::Grid && column != KernelModel::Registers && column != KernelModel::Occupancy))
    return {};
  return QObject::tr("From the first of several shapes. “By name and shape” has a row for each.");
}

}  // namespace

void KernelModel::setRows(std::vector<prof::KernelRow> rows, prof::GroupBy by) {
  beginResetModel();
  rows_ = std::move(rows);
  kernels_ = by == prof::GroupBy::Name || by == prof::GroupBy::Shape;
  endResetModel();
}

// Shortens a kernel name by its template arguments, which the tooltip has. Lines, modules and ops stay unchanged.
QString KernelModel::readable(const prof::KernelRow& row) const {
  const bool kernel = kernels_ && row.kind == prof::SpanKind::Kernel;
  return QString::fromStdString(kernel ? prof::short_kernel_name(row.key) : row.key);
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
    case Min:
      return static_cast<qlonglong>(row.time.min);
    case Mean:
      return row.time.mean;
    case Sigma:
      return row.time.stddev;
    case Median:
      return static_cast<qlonglong>(row.time.median);
    case P90:
      return static_cast<qlonglong>(row.time.p90);
    case P95:
      return static_cast<qlonglong>(row.time.p95);
    case P999:
      return static_cast<qlonglong>(row.time.p999);
    case P99:
      return static_cast<qlonglong>(row.time.p99);
    case Max:
      return static_cast<qlonglong>(row.time.max);
    case Grid:
      return row.detail.grid[0] * row.detail.grid[1] * row.detail.grid[2];
    case Registers:
      return row.detail.registers;
    case Occupancy:
      return row.occupancy ? row.occupancy->share : -1.0;
    case WithCalls:
      return static_cast<qlonglong>(row.with_calls);
    default:
      return {};
  }
}

QString KernelModel::text(const prof::KernelRow& row, int column) const {
  const prof::Detail& d = row.detail;
  const bool only_calls = row.time.count == 0 && row.with_calls > 0;
  if (only_calls && column != Name && column != Count && column != WithCalls) return QStringLiteral("—");
  switch (column) {
    case WithCalls:
      return row.with_calls > 0 ? ns_text(static_cast<double>(row.with_calls)) : QStringLiteral("—");
    case Name:
      return row.kind == prof::SpanKind::GraphRun ? tr("%1 · whole graph").arg(readable(row)) : readable(row);
    case Count:
      return count_text(static_cast<int64_t>(row.time.count));
    case Total:
      return ns_text(static_cast<double>(row.time.total));
    case Share:
      return fixed_text(row.share * 100, 1);
    case Min:
      return ns_text(static_cast<double>(row.time.min));
    case Mean:
      return ns_text(row.time.mean);
    case Sigma:
      return ns_text(row.time.stddev);
    case Median:
      return ns_text(static_cast<double>(row.time.median));
    case P90:
      return ns_text(static_cast<double>(row.time.p90));
    case P95:
      return ns_text(static_cast<double>(row.time.p95));
    case P999:
      return ns_text(static_cast<double>(row.time.p999));
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
    case Occupancy:
      return row.occupancy
                 ? fixed_text(row.occupancy->share * 100, 1) + " % · " + prof::limit_name(row.occupancy->limit)
                 : QStringLiteral("—");
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
  if (role == Qt::ToolTipRole)
    if (const QString text = tip(*row, index.column()); !text.isEmpty()) return text;
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(
        static_cast<int>((is_number(index.column()) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
  return {};
}

QVariant KernelModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static const char* const kNames[] = {
      "name",    "count",   "total, µs", "share, %",  "min, µs", "mean, µs",     "σ, µs",     "median, µs",
      "p90, µs", "p95, µs", "p99, µs",   "p99.9, µs", "max, µs", "grid · block", "registers", "occupancy · limit",
      "with calls, µs"};
  if (orientation != Qt::Horizontal || section < 0 || section >= Columns) return {};
  if (role == Qt::DisplayRole) return QString::fromUtf8(kNames[section]);
  if (role == Qt::ToolTipRole && section == WithCalls)
    return tr("Time of the line with all lines that it calls");
  if (role == Qt::ToolTipRole && section == Occupancy)
    return tr("Share of the warps that a multiprocessor can hold, and what limits it.");
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(
        static_cast<int>((is_number(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
  return {};
}

}  // namespace ws::app
