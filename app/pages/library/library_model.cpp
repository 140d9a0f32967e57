#include "app/pages/library/library_model.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <map>

#include "app/text/units.h"
#include "app/workspace/run_loss.h"
#include "app/workspace/run_library.h"

namespace ws::app {
namespace {

const std::map<std::string, RunSpec>& preset_specs() {
  static const auto all = [] {
    std::map<std::string, RunSpec> specs;
    for (const ws::Preset& preset : presets()) try {
        specs[preset.name] = load_spec(preset.name);
      } catch (const std::exception&) {  // nothing to compare with a preset that cannot be read
      }
    return specs;
  }();
  return all;
}

QString shown(double value, int decimals) {
  return std::isnan(value) ? QStringLiteral("–") : fixed_text(value, decimals);
}

QString loss_text(double loss) { return std::isfinite(loss) ? significant_text(loss) : QStringLiteral("–"); }

}  // namespace

QString status_text(const Run& run) {
  if (run.live() && run.recording) return QObject::tr("recording");
  if (run.live()) return run.progress && run.progress->paused ? QObject::tr("paused") : QObject::tr("training");
  if (run.elsewhere) return QObject::tr("training elsewhere");
  if (run.unfinished) return QObject::tr("unfinished");
  if (run.lab) return QObject::tr("lab sweep");
  if (run.shipped) return QObject::tr("recorded");
  if (run.origin == RunOrigin::Imported) return run.command.isEmpty() ? QObject::tr("imported") : QObject::tr("recorded");
  return run.summary ? QString::fromUtf8(to_string(run.summary->status).data()) : QObject::tr("finished");
}

QString changes_text(const Run& run) {
  if (run.origin == RunOrigin::Imported) return {};
  const auto preset = preset_specs().find(run.spec.name);
  const RunSpec plain;
  QStringList parts[4];  // most important first: execution; last: data rows
  for (const FieldChange& change : diff(preset == preset_specs().end() ? plain : preset->second, run.spec)) {
    if (change.key == "exec.device") continue;  // has its own column
    const Field& f = field(change.key);
    QString value = QString::fromStdString(change.to);
    if (f.kind == FieldKind::Choice) value.replace('-', ' ');  // as Setup writes it
    parts[f.group == "Execution"  ? 0
          : f.group == "Model"    ? 1
          : f.group == "Training" ? 2
                                  : 3]
        << QString::fromUtf8(f.label.data()) + " " + value;
  }
  return (parts[0] + parts[1] + parts[2] + parts[3]).join(", ");
}

LibraryModel::LibraryModel(RunLibrary* library, QObject* parent) : QAbstractTableModel(parent), library_(library) {
  connect(library_, &RunLibrary::changed, this, &LibraryModel::reload);
  reload();
}

// A reset would lose the selected rows: other figures of the same runs only repaint them.
void LibraryModel::reload() {
  changes_.clear();
  if (std::ranges::equal(rows_, library_->runs(), {}, &QPointer<Run>::data)) {
    if (!rows_.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
    return;
  }
  beginResetModel();
  rows_.assign(library_->runs().begin(), library_->runs().end());
  endResetModel();
}

int LibraryModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

Run* LibraryModel::run(int row) const {
  return row >= 0 && row < rowCount() ? rows_[static_cast<size_t>(row)].data() : nullptr;
}

const QString& LibraryModel::changes(const Run& run) const {
  const auto at = changes_.find(&run);
  return at != changes_.end() && !run.live() ? *at : *changes_.insert(&run, changes_text(run));
}

QString LibraryModel::text(const Run& run, int column) const {
  switch (column) {
    case Name:
      return run.title;
    case Preset:
      return run.origin == RunOrigin::Imported ? QString() : QString::fromStdString(run.spec.name);
    case Changes:
      return changes(run);
    case Status:
      return status_text(run);
    case TestLoss:
      return loss_text(run.testLoss());
    case TrainingLoss:
      return loss_text(training_loss_of(run).value);
    case Accuracy:
      return shown(100 * run.testAccuracy(), 2);
    case StepTime:
      return step_time_text(run.stepUs());
    case Peak:
      return std::isnan(run.peakBytes()) ? QStringLiteral("–") : bytes_text(run.peakBytes());
    case Calls:
      return shown(run.driverCalls(), 1);
    case Tags:
      return run.tags.join(", ");
    case Device:
      return run.device;
    case Date:
      return run.created.isValid() ? run.created.toString("yyyy-MM-dd HH:mm") : QString();
    default:
      return {};
  }
}

QVariant LibraryModel::number(const Run& run, int column) const {
  switch (column) {
    case Tick:
      return run.slot < 0 ? INT_MAX : run.slot;
    case TestLoss:
      return run.testLoss();
    case TrainingLoss:
      return training_loss_of(run).value;
    case Accuracy:
      return 100 * run.testAccuracy();
    case StepTime:
      return run.stepUs();
    case Peak:
      return run.peakBytes();
    case Calls:
      return run.driverCalls();
    case Date:
      return run.created;
    default:
      return text(run, column);
  }
}

QVariant LibraryModel::data(const QModelIndex& index, int role) const {
  const Run* run = index.isValid() ? this->run(index.row()) : nullptr;
  if (!run) return {};
  switch (role) {
    case Qt::DisplayRole:
      return text(*run, index.column());
    case Qt::AccessibleTextRole:
      return index.column() == Tick ? (run->slot >= 0 ? tr("ticked") : tr("not ticked")) : text(*run, index.column());
    case SortRole:
      return number(*run, index.column());
    case SlotRole:
      return run->slot;
    case LetterRole:
      return run->letter;
    case Qt::CheckStateRole:
      return index.column() == Tick ? QVariant(run->slot >= 0 ? Qt::Checked : Qt::Unchecked) : QVariant();
    case Qt::TextAlignmentRole:
      return index.column() >= TestLoss && index.column() <= Calls ? int(Qt::AlignRight | Qt::AlignVCenter)
                                                               : int(Qt::AlignLeft | Qt::AlignVCenter);
    case Qt::ToolTipRole:
      if (index.column() == Status && run->summary) return QString::fromStdString(run->summary->message);
      if (index.column() == StepTime) return step_time_tip(run->step_time.p5_us, run->step_time.p95_us);
      if (index.column() == Tick) return run->slot >= 0 ? tr("Compared. Click to leave it out.") : tr("Click to compare this run.");
      if (index.column() == TrainingLoss) return QString::fromStdString(long_name(training_loss_of(*run)));
      return index.column() == Name && !run->note.isEmpty() ? run->title + '\n' + run->note : text(*run, index.column());
    default:
      return {};
  }
}

QVariant LibraryModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Horizontal && role == Qt::TextAlignmentRole)
    return int((section >= TestLoss && section <= Calls ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == TestLoss) return tr("From the last test. A run without a test has none.");
  if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == TrainingLoss) return tr("Mean of the last training steps.");
  if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == Changes) return tr("What differs from the preset.");
  if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == StepTime)
    return step_time_tip(NAN, NAN);
  if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == Calls)
    return tr("Calls of cudaMalloc, cudaFree and similar per step");
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Compare"),   tr("Name"),          tr("Preset"),           tr("Changed settings"), tr("Status"),
                           tr("Test loss"), tr("Training loss"), tr("Test accuracy, %"), tr("Step time"),       tr("Peak memory"),
                           tr("Allocator calls"), tr("Tags"), tr("Device"),  tr("Date")};
  return names[section];
}

Qt::ItemFlags LibraryModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;
  if (index.column() == Tick) flags |= Qt::ItemIsUserCheckable;
  if (index.column() == Name || index.column() == Tags) flags |= Qt::ItemIsEditable;
  return flags;
}

bool LibraryModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  Run* run = index.isValid() ? this->run(index.row()) : nullptr;
  if (!run) return false;
  if (role == Qt::CheckStateRole) {
    library_->setTicked(run, value.toInt() == Qt::Checked);
    return true;
  }
  if (role != Qt::EditRole) return false;
  return index.column() == Name ? library_->rename(run, value.toString())
                                : library_->setTags(run, value.toString().split(','));
}

LibraryFilter::LibraryFilter(LibraryModel* model, QObject* parent) : QSortFilterProxyModel(parent), model_(model) {
  setSourceModel(model);
  setSortRole(LibraryModel::SortRole);
  setDynamicSortFilter(true);
}

void LibraryFilter::setText(const QString& text) {
  words_ = text.split(' ', Qt::SkipEmptyParts);
  invalidateFilter();
}

void LibraryFilter::setStatus(const QString& status) {
  status_ = status;
  invalidateFilter();
}

void LibraryFilter::setTag(const QString& tag) {
  tag_ = tag;
  invalidateFilter();
}

Run* LibraryFilter::run(const QModelIndex& index) const {
  return index.isValid() ? model_->run(mapToSource(index).row()) : nullptr;
}

bool LibraryFilter::holds(const Run& run, const QString& word) const {
  const QString key = word.section(':', 0, 0), rest = word.section(':', 1);
  const auto in = [](const QString& text, const QString& wanted) { return text.contains(wanted, Qt::CaseInsensitive); };
  if (word.contains(':') && !rest.isEmpty()) {
    if (key == "tag") return run.tags.contains(rest, Qt::CaseInsensitive);
    if (key == "status") return in(status_text(run), rest);
    if (key == "device") return in(run.device, rest);
    if (key == "preset") return in(QString::fromStdString(run.spec.name), rest);
  }
  return in(run.title + ' ' + QString::fromStdString(run.spec.name) + ' ' + changes_text(run) + ' ' + status_text(run) +
                ' ' + run.tags.join(' ') + ' ' + run.note + ' ' + run.device,
            word);
}

bool LibraryFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  const Run* run = model_->run(row);
  if (!run || (!status_.isEmpty() && status_text(*run) != status_) || (!tag_.isEmpty() && !run->tags.contains(tag_)))
    return false;
  return std::all_of(words_.begin(), words_.end(), [&](const QString& word) { return holds(*run, word); });
}

// Unknown values are last in both sort directions.
bool LibraryFilter::lessThan(const QModelIndex& a, const QModelIndex& b) const {
  const QVariant x = a.data(LibraryModel::SortRole), y = b.data(LibraryModel::SortRole);
  if (x.userType() != QMetaType::Double) return QSortFilterProxyModel::lessThan(a, b);
  const bool no_x = std::isnan(x.toDouble()), no_y = std::isnan(y.toDouble());
  if (no_x || no_y) return no_x == no_y ? false : (sortOrder() == Qt::AscendingOrder ? no_y : no_x);
  return x.toDouble() < y.toDouble();
}

}  // namespace ws::app
