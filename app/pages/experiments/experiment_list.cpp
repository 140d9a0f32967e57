#include "app/pages/experiments/experiment_list.h"

#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "engine/devices/devices.h"
#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {
constexpr int kPathRole = Qt::UserRole, kOwnRole = Qt::UserRole + 1, kRowHeight = 24;

// True if more than half of the trials can run on such a machine.
bool runs_with(bool cuda, const std::string& path) {
  const std::vector<Trial> trials = trials_of(load_experiment(path), cuda);
  const auto here = std::ranges::count_if(trials, [](const Trial& trial) { return trial.skipped.empty(); });
  return static_cast<size_t>(here) * 2 > trials.size();
}

}  // namespace

ExperimentList::ExperimentList(const QString& own_folder, QWidget* parent)
    : QListWidget(parent), own_folder_(own_folder) {
  setAccessibleName(tr("Experiments"));
  setMinimumHeight(176);
  setStyleSheet(QString("QListWidget { padding-left: 7px; } QListWidget::item { height: %1px; }").arg(kRowHeight));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  show_whole_rows(*this);
}

// A user's experiment may have the title of a shipped one, so each kind has its own heading.
void ExperimentList::fill() {
  if (count() > 0) return;
  addHeading(tr("Shipped with Warpsight"));
  const bool cuda = cuda_.value_or(device_info().cuda);
  for (const ExperimentInfo& shipped : shipped_experiments()) try {
      if (runs_with(cuda, shipped.path)) add(QString::fromStdString(shipped.title), QString::fromStdString(shipped.path), false);
    } catch (const std::exception& problem) {
      emit said(QString::fromUtf8(problem.what()), true);
    }
  for (const QFileInfo& own : QDir(own_folder_).entryInfoList({"*.json"}, QDir::Files, QDir::Name)) try {
      const ExperimentSpec spec = load_experiment(own.absoluteFilePath().toStdString());
      add(QString::fromStdString(spec.title), own.absoluteFilePath(), true);
    } catch (const std::exception& problem) {
      emit said(QString::fromUtf8(problem.what()), true);
    }
  if (count() > 1) setCurrentRow(1);
}

void ExperimentList::setCuda(bool cuda) {
  if (cuda_.value_or(device_info().cuda) == cuda) return;
  cuda_ = cuda;
  if (count() == 0) return;
  const QString title = currentItem() ? currentItem()->text() : QString(), chosen = path();
  clear();
  if (!chosen.isEmpty()) select(title, chosen);
}

QString ExperimentList::keep(const ExperimentSpec& spec) {
  QString name = QString::fromStdString(spec.title).toLower().replace(QRegularExpression("[^a-z0-9]+"), "-");
  if (name.isEmpty() || name == "-") name = "experiment";
  QDir().mkpath(own_folder_);
  QString path = own_folder_ + "/" + name + ".json";
  for (int i = 2; QFileInfo::exists(path); ++i) path = QString("%1/%2-%3.json").arg(own_folder_, name).arg(i);
  ExperimentSpec kept = spec;
  kept.name = QFileInfo(path).completeBaseName().toStdString();
  if (kept.title.empty()) kept.title = kept.name;
  try {
    prof::write_whole(path.toStdString(), to_json(kept).dump(2) + "\n");
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return QString();
  }
  return path;
}

void ExperimentList::select(const QString& title, const QString& wanted) {
  fill();
  for (int row = 0; row < count(); ++row)
    if (const QString known = item(row)->data(kPathRole).toString();
        known == wanted || (!known.isEmpty() && QFileInfo(known) == QFileInfo(wanted)))
      return setCurrentRow(row);
  const auto shipped = shipped_experiments();
  add(title, wanted, std::ranges::none_of(shipped, [&](const ExperimentInfo& each) {
        return QFileInfo(QString::fromStdString(each.path)) == QFileInfo(wanted);
      }));
  setCurrentRow(count() - 1);
}

void ExperimentList::select(const ExperimentSpec& spec) {
  const QString title = QString::fromStdString(spec.title);
  for (const ExperimentInfo& shipped : shipped_experiments())
    if (shipped.name == spec.name) return select(title, QString::fromStdString(shipped.path));
  const QString own = own_folder_ + "/" + QString::fromStdString(file_name_of(spec.name)) + ".json";
  if (!QFileInfo::exists(own)) {
    QDir().mkpath(own_folder_);
    prof::write_whole(own.toStdString(), to_json(spec).dump(2) + "\n");
  }
  select(title, own);
}

QString ExperimentList::path() const { return currentItem() ? currentItem()->data(kPathRole).toString() : QString(); }

bool ExperimentList::own() const { return currentItem() && currentItem()->data(kOwnRole).toBool(); }

// After the last one comes the first.
int ExperimentList::nextRow() const {
  for (int i = 1; i < count(); ++i)
    if (const int row = (currentRow() + i) % count(); !item(row)->data(kPathRole).toString().isEmpty()) return row;
  return -1;
}

QString ExperimentList::nextTitle() const { return nextRow() < 0 ? QString() : item(nextRow())->text(); }

void ExperimentList::selectNext() {
  if (nextRow() >= 0) setCurrentRow(nextRow());
}

void ExperimentList::addHeading(const QString& text) {
  auto* item = new QListWidgetItem(text, this);
  item->setFlags(Qt::NoItemFlags);
  item->setFont(ui_font(11, 600));
}

void ExperimentList::add(const QString& title, const QString& path, bool own) {
  const bool first_own = own && (count() == 0 || !item(count() - 1)->data(kOwnRole).toBool());
  if (first_own) addHeading(tr("Your own"));
  auto* item = new QListWidgetItem(title.isEmpty() ? QFileInfo(path).completeBaseName() : title, this);
  item->setData(kPathRole, path);
  item->setData(kOwnRole, own);
  item->setToolTip((own ? tr("Your own: %1") : tr("Shipped with Warpsight: %1")).arg(path));
}

}  // namespace ws::app
