#include "app/pages/plan/plan_model.h"

#include <numeric>

#include "app/widgets/table_style.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

QString text_of(std::string_view view) { return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size())); }

QString heading_of(const Plan& plan, const Op& op) {
  QString heading = text_of(to_string(op.phase));
  const auto layer = static_cast<size_t>(op.layer);
  if (op.layer < 0 || layer >= plan.layer_names.size()) return heading;
  if (layer < plan.layer_parts.size() && !plan.layer_parts[layer].empty())
    heading += " · " + QString::fromStdString(plan.layer_parts[layer]);
  heading += " · " + QString::fromStdString(plan.layer_names[layer]);
  return heading;
}

QString names_of(const Plan& plan, const std::vector<BufferId>& ids) {
  constexpr size_t kNamed = 3;
  QStringList names;
  for (size_t i = 0; i < std::min(kNamed, ids.size()); ++i) names << QString::fromStdString(plan.buffer(ids[i]).name);
  if (ids.size() > kNamed) names << QString("+%1").arg(ids.size() - kNamed);
  return names.isEmpty() ? QStringLiteral("—") : names.join("  ");
}

int64_t written_bytes(const Plan& plan, const Op& op) {
  int64_t total = 0;
  for (BufferId id : op.out) total += plan.buffer(id).bytes();
  return total;
}

}  // namespace

const Plan* PlanModel::plan() const {
  if (!run_ || !run_->plan) return nullptr;
  return stage_ == PlanStage::Before ? &run_->plan->before : &run_->plan->plan;
}

void PlanModel::setRun(Run* run, PlanStage stage) {
  beginResetModel();
  run_ = run, stage_ = stage;
  rows_.clear(), tags_.clear(), times_ = {};
  if (const Plan* shown = plan()) {
    QString heading;
    for (size_t i = 0; i < shown->ops.size(); ++i) {
      const QString next = heading_of(*shown, shown->ops[i]);
      if (next != heading) rows_.push_back({-1, heading = next});
      rows_.push_back({static_cast<int>(i), {}});
    }
    tags_ = op_tags(*shown, run_->trace);
    times_ = plan_times(*shown, run_->trace);
  }
  endResetModel();
}

void PlanModel::refreshTimes() {
  if (!plan() || rows_.empty()) return;
  tags_ = op_tags(*plan(), run_->trace);
  times_ = plan_times(*plan(), run_->trace);
  emit dataChanged(index(0, Time), index(rowCount() - 1, Time));
}

double PlanModel::sumUs() const { return std::accumulate(times_.us.begin(), times_.us.end(), 0.0); }

int PlanModel::opAt(int row) const {
  return row >= 0 && row < static_cast<int>(rows_.size()) ? rows_[static_cast<size_t>(row)].op : -1;
}

int PlanModel::rowOf(int op) const {
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].op == op && op >= 0) return static_cast<int>(i);
  return -1;
}

prof::OpTag PlanModel::tagAt(int row) const {
  const int op = opAt(row);
  return op < 0 ? prof::kNoOp : tags_[static_cast<size_t>(op)];
}

int PlanModel::rowOfTag(prof::OpTag tag) const {
  for (size_t op = 0; op < tags_.size(); ++op)
    if (tags_[op] == tag && tag != prof::kNoOp) return rowOf(static_cast<int>(op));
  return -1;
}

int PlanModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int PlanModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : Columns; }

QVariant PlanModel::text(const Row& row, int column) const {
  const Plan& shown = *plan();
  const Op& op = shown.ops[static_cast<size_t>(row.op)];
  switch (column) {
    case Number:
      return row.op;
    case Name:
      return QString::fromStdString(op.kind == OpKind::MatMul ? describe(shown, op) : op.name);
    case Reads:
      return names_of(shown, op.in);
    case Writes:
      return names_of(shown, op.out);
    case Bytes:
      return op.out.empty() ? QStringLiteral("—") : bytes_text(static_cast<double>(written_bytes(shown, op)));
    case Flops:
      return flops(shown, op) ? significant_text(static_cast<double>(flops(shown, op))) : QStringLiteral("—");
    case Time: {
      const double us = times_.us[static_cast<size_t>(row.op)];
      return us > 0 ? us_text(us) : QStringLiteral("—");
    }
    default:
      return {};
  }
}

QVariant PlanModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !plan()) return {};
  const Row& row = rows_[static_cast<size_t>(index.row())];
  const int column = index.column();
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(static_cast<int>((column == Number && row.op >= 0) || column >= Bytes
                                                    ? Qt::AlignRight | Qt::AlignVCenter
                                                    : Qt::AlignLeft | Qt::AlignVCenter));
  if (role == kSectionRole) return row.op < 0;
  if (row.op < 0) return role == Qt::DisplayRole && column == Number ? QVariant(row.heading) : QVariant();
  const Op& op = plan()->ops[static_cast<size_t>(row.op)];
  if (role == Qt::DisplayRole) return text(row, column);
  if (role == kMeaningRole && column == Name) return static_cast<int>(meaning_of(op));
  if (role == Qt::ToolTipRole)
    return QString::fromStdString(describe(*plan(), op) + (op.note.empty() ? "" : "\n" + op.note));
  return {};
}

QVariant PlanModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static const char* const kNames[] = {"#", "op", "reads", "writes", "bytes", "FLOP", "mean, µs"};
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::DisplayRole && section < Columns) return QString::fromUtf8(kNames[section]);
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(static_cast<int>(
        section == Number || section >= Bytes ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter));
  return {};
}

}  // namespace ws::app
