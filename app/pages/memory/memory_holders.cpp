#include "app/pages/memory/memory_holders.h"

#include <algorithm>

#include "app/text/units.h"
#include "app/timeline/block_label.h"
#include "app/widgets/table_style.h"

namespace ws::app {

void MemoryHoldersModel::setRun(const Run* run, prof::GroupBy by, const QString& allocator) {
  beginResetModel();
  rows_.clear(), meanings_.clear(), allocator_.clear();
  peak_ = 0, gap_ = {};
  const std::vector<std::string> none, &names = run ? run->trace.memory_sources : none;
  for (size_t i = 0; i < names.size(); ++i) {
    if (prof::is_driver_source(names[i]) || (!allocator.isEmpty() && allocator != QString::fromStdString(names[i]))) continue;
    const prof::MemoryHistory history = prof::memory_history(run->trace, static_cast<int>(i));
    if (history.peak_live <= peak_) continue;
    peak_ = history.peak_live, allocator_ = QString::fromStdString(names[i]);
    rows_ = prof::held_at_peak(run->trace, history, by);
    gap_ = prof::memory_gap(history, prof::driver_history(run->trace));
  }
  for (const prof::MemoryHolder& row : rows_) {
    const prof::OpInfo* op = op_of(run->trace, row.op);
    meanings_.push_back(op ? op->meaning : prof::Meaning::Other);
  }
  by_ = by == prof::GroupBy::Line ? tr("line") : by == prof::GroupBy::Layer ? tr("layer") : tr("op");
  endResetModel();
}

int MemoryHoldersModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int MemoryHoldersModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : Columns; }

QString MemoryHoldersModel::text(const prof::MemoryHolder& row, int column) const {
  switch (column) {
    case Holder:
      return QString::fromStdString(row.name);
    case Bytes:
      return bytes_text(static_cast<double>(row.bytes));
    case Share:
      return fixed_text(100.0 * static_cast<double>(row.bytes) / static_cast<double>(peak_), 1);
    default:
      return count_text(static_cast<int64_t>(row.blocks));
  }
}

QVariant MemoryHoldersModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const prof::MemoryHolder& row = rows_[static_cast<size_t>(index.row())];
  if (role == Qt::DisplayRole) return text(row, index.column());
  if (role == kMeaningRole && index.column() == Holder) return static_cast<int>(meanings_[static_cast<size_t>(index.row())]);
  if (role == Qt::ToolTipRole) return QString::fromStdString(row.name);
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(static_cast<int>((index.column() == Holder ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
  return {};
}

QVariant MemoryHoldersModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= Columns) return {};
  const QString names[] = {by_, tr("bytes"), tr("%"), tr("blocks")};
  if (role == Qt::DisplayRole) return names[section];
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(static_cast<int>((section == Holder ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
  return {};
}

}  // namespace ws::app
