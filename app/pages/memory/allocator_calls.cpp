#include "app/pages/memory/allocator_calls.h"

#include <algorithm>

#include "app/timeline/block_label.h"
#include "app/widgets/table_style.h"
#include "app/text/units.h"
#include "app/timeline/time_scale.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {

void AllocatorCallsModel::setRun(const Run* run) {
  beginResetModel();
  rows_.clear();
  steps_ = run ? static_cast<double>(run->stepsMade()) : 0;
  if (run)
    for (const auto& [tag, sums] : run->allocator_calls.by_op()) {
      const prof::OpInfo* op = op_of(run->trace, tag);
      Row row{op ? QString::fromStdString(op->name) : tr("outside any op"), prof::Meaning::Allocation, sums};
      if (op) row.meaning = op->meaning;
      rows_.push_back(std::move(row));
    }
  std::ranges::stable_sort(rows_, [](const Row& a, const Row& b) { return a.sums.all.ns > b.sums.all.ns; });
  endResetModel();
}

int AllocatorCallsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int AllocatorCallsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : Columns; }

QString AllocatorCallsModel::text(const Row& row, int column) const {
  const prof::CallSums &all = row.sums.all, &in_steps = row.sums.in_steps;
  const double us = static_cast<double>(all.ns) * 1e-3;
  switch (column) {
    case Op:
      return row.name;
    case Calls:
      return count_text(static_cast<int64_t>(all.calls()));
    case CallsAStep:
      return steps_ > 0 ? fixed_text(static_cast<double>(in_steps.calls()) / steps_, 2) : QStringLiteral("—");
    case UsAStep:
      return steps_ > 0 ? us_text(static_cast<double>(in_steps.ns) * 1e-3 / steps_) : QStringLiteral("—");
    case UsACall:
      return all.calls() > 0 ? us_text(us / static_cast<double>(all.calls())) : QStringLiteral("—");
    case Bytes:
      return bytes_text(static_cast<double>(all.bytes));
    default:
      return {};
  }
}

QVariant AllocatorCallsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Row& row = rows_[static_cast<size_t>(index.row())];
  if (role == Qt::DisplayRole) return text(row, index.column());
  if (role == kMeaningRole && index.column() == Op) return static_cast<int>(row.meaning);
  if (role == Qt::ToolTipRole)
    return tr("%1 allocations and %2 frees, %3 in them together")
        .arg(row.sums.all.allocations)
        .arg(row.sums.all.frees)
        .arg(time_axis_text(static_cast<double>(row.sums.all.ns) * 1e-3));
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(
        static_cast<int>((index.column() == Op ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
  return {};
}

QVariant AllocatorCallsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static const char* const kNames[] = {"op", "calls", "a step", "µs a step", "µs a call", "asked for"};
  if (orientation != Qt::Horizontal || section < 0 || section >= Columns) return {};
  if (role == Qt::DisplayRole) return QString::fromUtf8(kNames[section]);
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(static_cast<int>((section == Op ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
  return {};
}

}  // namespace ws::app
