#include "app/pages/library/runs_model.h"

#include <QDate>
#include <QHash>
#include <algorithm>
#include <cmath>

#include "app/workspace/run_library.h"
#include "app/workspace/shipped_runs.h"

namespace ws::app {
namespace {

QString day_of(const Run& run) {
  if (run.shipped) return origin_text(run).replace(0, 1, "R");
  const QDateTime& time = run.created;
  const auto days = time.date().daysTo(QDate::currentDate());
  if (!time.isValid()) return QObject::tr("Earlier");
  return days == 0 ? QObject::tr("Today") : days == 1 ? QObject::tr("Yesterday") : time.date().toString("d MMMM yyyy");
}

QString group_of(const Run& run) {
  if (run.shipped) return origin_text(run).replace(0, 1, "R");
  if (run.lab) return QObject::tr("Laboratory");
  if (!run.hasChoices()) return run.command.isEmpty() ? QObject::tr("Imported traces") : QObject::tr("Recorded programs");
  return QString::fromStdString(data_label(run.spec.data));
}

QString tip_of(const Run& run) {
  const QString message = run.summary ? QString::fromStdString(run.summary->message) : QString();
  const QString choices = run.hasChoices() ? changes_between(plain_choices(run.spec), run.spec, kAllChanges) : QString();
  const QString tip = message.isEmpty() ? run.path : message;
  return (choices.isEmpty() ? QString() : choices + '\n') + (run.shipped ? origin_text(run) : tip);
}

bool matches(const Run& run, const QString& filter) {
  const QString all = run.title + ' ' + spec_subtitle(run.spec) + ' ' + short_title(run.spec) + ' ' +
                      QString::fromStdString(run.spec.name) + ' ' + run.tags.join(' ') + ' ' + run.note + ' ' +
                      run.device;
  for (const QString& word : filter.split(' ', Qt::SkipEmptyParts))
    if (!all.contains(word, Qt::CaseInsensitive)) return false;
  return true;
}

}  // namespace

RunsModel::RunsModel(RunLibrary* library, QObject* parent) : QAbstractListModel(parent), library_(library) { reload(); }

int RunsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

Run* RunsModel::run(const QModelIndex& index) const {
  if (!index.isValid() || index.row() >= rowCount()) return nullptr;
  return rows_[static_cast<size_t>(index.row())].run;
}

QModelIndex RunsModel::indexOf(const Run* run) const {
  for (size_t i = 0; i < rows_.size() && run; ++i)  // a heading has no run
    if (rows_[i].run == run) return index(static_cast<int>(i));
  return {};
}

QVariant RunsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Row& row = rows_[static_cast<size_t>(index.row())];
  if (role == HeadingRole) return row.heading;
  if (role == ShortNameRole && row.run) return shortNameOf(*row.run);
  if (role == Qt::DisplayRole || role == Qt::AccessibleTextRole) return row.run ? nameOf(*row.run) : row.heading;
  if (!row.run) return {};
  if (role == RunRole) return QVariant::fromValue<QObject*>(row.run);
  if (role == Qt::CheckStateRole) return row.run->slot >= 0 ? Qt::Checked : Qt::Unchecked;
  if (role == Qt::ToolTipRole) return tip_of(*row.run);
  if (role == RoleRole) return static_cast<int>(shownAs(*row.run));
  return {};
}

// Ticked runs of one title are named by what differs, as in the timeline and the menus.
QString RunsModel::nameOf(const Run& run) const {
  const std::vector<Run*> ticked = library_->ticked();
  return run.slot >= 0 ? title_among(run, {ticked.begin(), ticked.end()}) : run.title;
}

ShownAs RunsModel::shownAs(const Run& run) const {
  const Selection& selection = library_->selection();
  return run.handle == selection.current()    ? ShownAs::Current
         : run.handle == selection.baseline() ? ShownAs::Baseline
         : selection.has(run.handle)          ? ShownAs::Compared
                                           : ShownAs::Nothing;
}

bool RunsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  Run* target = run(index);
  if (!target || role != Qt::CheckStateRole) return false;
  library_->setTicked(target, value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags RunsModel::flags(const QModelIndex& index) const {
  if (!run(index)) return Qt::NoItemFlags;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable | Qt::ItemNeverHasChildren;
}

void RunsModel::setFilter(const QString& filter) {
  filter_ = filter;
  reload();
}

void RunsModel::setOrder(RunOrder order) {
  order_ = order;
  reload();
}

// A reset would lose the place of the list: other roles or figures of the same runs only repaint it.
void RunsModel::reload() {
  std::vector<Row> rows;
  std::vector<Run*> runs;
  for (Run* run : library_->runs())
    if (matches(*run, filter_)) runs.push_back(run);
  sort(runs);
  QString last;
  for (Run* run : runs) {
    const QString heading = headingOf(*run);
    if (heading != last) rows.push_back({nullptr, last = heading});
    rows.push_back({run, {}});
  }
  const auto same = [](const Row& a, const Row& b) { return a.run == b.run && a.heading == b.heading; };
  if (std::ranges::equal(rows, rows_, same)) {
    if (!rows.empty()) emit dataChanged(index(0), index(rowCount() - 1));
    return;
  }
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

QString RunsModel::shortNameOf(const Run& run) const {
  const QString name = nameOf(run), heading = headingOf(run) + ' ';
  return name.startsWith(heading) ? name.mid(heading.size()) : name;
}

QString RunsModel::headingOf(const Run& run) const {
  return order_ == RunOrder::DataSet ? group_of(run) : order_ == RunOrder::Newest ? day_of(run) : QString();
}

// The runs come newest first. The data set with the newest run is on top.
void RunsModel::sort(std::vector<Run*>& runs) const {
  const auto speed = [](const Run* run) { return run->stepUs() > 0 ? run->stepUs() : 1e300; };
  const auto error = [](const Run* run) { return std::isnan(run->testAccuracy()) ? 2 : 1 - run->testAccuracy(); };
  if (order_ == RunOrder::DataSet) {
    QHash<QString, int> places;
    for (const Run* run : runs)
      if (const QString group = group_of(*run); !places.contains(group)) places.insert(group, static_cast<int>(places.size()));
    std::ranges::stable_sort(runs, {}, [&](const Run* run) { return places.value(group_of(*run)); });
  }
  if (order_ == RunOrder::Fastest) std::ranges::stable_sort(runs, {}, speed);
  if (order_ == RunOrder::Accuracy)  // of equal ones the faster first
    std::ranges::stable_sort(runs, {}, [&](const Run* run) { return std::pair(error(run), speed(run)); });
  if (order_ == RunOrder::Name)
    std::ranges::stable_sort(runs, [](const Run* a, const Run* b) { return a->title.localeAwareCompare(b->title) < 0; });
}

void RunsModel::repaintLive() {
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].run && rows_[i].run->live()) emit dataChanged(index(static_cast<int>(i)), index(static_cast<int>(i)));
}

}  // namespace ws::app
