#include "app/pages/library/library_model.h"

#include <cmath>
#include <map>

#include "app/text/units.h"
#include "app/workspace/run_library.h"

namespace ws::app {
namespace {

const std::map<std::string, RunSpec>& preset_specs() {
  static const auto all = [] {
    std::map<std::string, RunSpec> specs;
    for (const ws::Preset& preset : presets()) try {
        specs[preset.name] = load_spec(preset.name);
      } catch (const std::exception&) {  // a preset that cannot be read has nothing to differ from
      }
    return specs;
  }();
  return all;
}

double finite(double value) { return std::isfinite(value) ? value : std::nan(""); }

double loss_of(const Run& run) {
  if (!run.steps.empty() && run.live()) return static_cast<double>(run.steps.back().loss);
  return run.summary ? finite(run.summary->final_train_loss) : std::nan("");
}

double accuracy_of(const Run& run) {
  if (run.regression()) return std::nan("");
  if (!run.evals.empty()) return 100 * finite(run.evals.back().accuracy);
  return run.summary && run.summary->test_accuracy > 0 ? 100 * finite(run.summary->test_accuracy) : std::nan("");
}

double calls_of(const Run& run) {
  if (!run.summary || run.summary->steps == 0 || run.origin == RunOrigin::Imported) return std::nan("");
  return static_cast<double>(run.summary->calls.device_allocate + run.summary->calls.device_free) /
         static_cast<double>(run.summary->steps);
}

QString shown(double value, int decimals) {
  return std::isnan(value) ? QStringLiteral("–") : fixed_text(value, decimals);
}

}  // namespace

QString status_text(const Run& run) {
  if (run.live()) return run.progress && run.progress->paused ? QObject::tr("paused") : QObject::tr("training");
  if (run.elsewhere) return QObject::tr("training elsewhere");
  if (run.unfinished) return QObject::tr("unfinished");
  if (run.lab) return QObject::tr("lab sweep");
  if (run.origin == RunOrigin::Imported) return QObject::tr("imported");
  return run.summary ? QString::fromUtf8(to_string(run.summary->status).data()) : QObject::tr("finished");
}

QString changes_text(const Run& run) {
  if (run.origin == RunOrigin::Imported) return {};
  const auto preset = preset_specs().find(run.spec.name);
  const RunSpec plain;
  QStringList parts[4];  // how it ran says most, which rows it took least
  for (const FieldChange& change : diff(preset == preset_specs().end() ? plain : preset->second, run.spec)) {
    if (change.key == "exec.device") continue;  // has its own column
    const Field& f = field(change.key);
    const QString value = QString::fromStdString(change.to), label = QString::fromUtf8(f.label.data());
    const bool clear = f.kind == FieldKind::Choice && value != "off";
    parts[f.group == "Execution"  ? 0
          : f.group == "Model"    ? 1
          : f.group == "Training" ? 2
                                  : 3]
        << (clear ? value : label + " " + value);
  }
  return (parts[0] + parts[1] + parts[2] + parts[3]).join(", ");
}

LibraryModel::LibraryModel(RunLibrary* library, QObject* parent) : QAbstractTableModel(parent), library_(library) {
  connect(library_, &RunLibrary::changed, this, &LibraryModel::reload);
  reload();
}

void LibraryModel::reload() {
  beginResetModel();
  rows_.assign(library_->runs().begin(), library_->runs().end());
  changes_.clear();
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
  return at != changes_.end() ? *at : *changes_.insert(&run, changes_text(run));
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
    case Loss:
      return std::isnan(loss_of(run)) ? QStringLiteral("–") : significant_text(loss_of(run));
    case Accuracy:
      return shown(accuracy_of(run), 2);
    case StepTime:
      return run.usPerStep() > 0 ? us_text(run.usPerStep()) : QStringLiteral("–");
    case Peak:
      return run.summary && run.summary->peak_bytes > 0
                 ? significant_text(static_cast<double>(run.summary->peak_bytes) / (1 << 20))
                 : QStringLiteral("–");
    case Calls:
      return shown(calls_of(run), 1);
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
      return run.slot < 0 ? 99 : run.slot;
    case Loss:
      return loss_of(run);
    case Accuracy:
      return accuracy_of(run);
    case StepTime:
      return run.usPerStep() > 0 ? run.usPerStep() : std::nan("");
    case Peak:
      return run.summary ? static_cast<double>(run.summary->peak_bytes) : std::nan("");
    case Calls:
      return calls_of(run);
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
    case Qt::CheckStateRole:
      return index.column() == Tick ? QVariant(run->slot >= 0 ? Qt::Checked : Qt::Unchecked) : QVariant();
    case Qt::TextAlignmentRole:
      return index.column() >= Loss && index.column() <= Calls ? int(Qt::AlignRight | Qt::AlignVCenter)
                                                               : int(Qt::AlignLeft | Qt::AlignVCenter);
    case Qt::ToolTipRole:
      if (index.column() == Status && run->summary) return QString::fromStdString(run->summary->message);
      return run->note.isEmpty() ? text(*run, index.column()) : run->note;
    default:
      return {};
  }
}

QVariant LibraryModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Horizontal && role == Qt::TextAlignmentRole)
    return int((section >= Loss && section <= Calls ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == Loss)
    return tr("From the last test, or from the last batch if no test ran.");
  if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == StepTime)
    return tr("Mean of the whole run, traced or not");
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {"",         tr("Name"),    tr("Preset"),    tr("Changed choices"), tr("Status"),
                           tr("Loss"), tr("Test accuracy, %"), tr("µs a step"), tr("Peak, MiB"),       tr("Driver calls"),
                           tr("Tags"), tr("Device"),  tr("Date")};
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
  if (role == Qt::CheckStateRole) return library_->setTicked(run, value.toInt() == Qt::Checked), true;
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

// What is not known stands last, whichever way the column is sorted.
bool LibraryFilter::lessThan(const QModelIndex& a, const QModelIndex& b) const {
  const QVariant x = a.data(LibraryModel::SortRole), y = b.data(LibraryModel::SortRole);
  if (x.userType() != QMetaType::Double) return QSortFilterProxyModel::lessThan(a, b);
  const bool no_x = std::isnan(x.toDouble()), no_y = std::isnan(y.toDouble());
  if (no_x || no_y) return no_x == no_y ? false : (sortOrder() == Qt::AscendingOrder ? no_y : no_x);
  return x.toDouble() < y.toDouble();
}

}  // namespace ws::app
