#include "app/pages/library/run_actions.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenu>
#include <cmath>

#include "app/workspace/library_jobs.h"
#include "app/text/qt_text.h"
#include "engine/devices/devices.h"
#include "app/workspace/run_library.h"

namespace ws::app {
namespace {

// Numbers have no list of values: half and twice are common choices to try.
std::vector<std::string> other_values(const Field& f, const RunSpec& spec) {
  std::vector<std::string> values;
  const std::string now = field_text(spec, f.key);
  for (const FieldValue& value : f.values)
    if (value.name != now) values.emplace_back(value.name);
  if (f.kind == FieldKind::Flag) values.push_back(now == "true" ? "false" : "true");
  const bool doubled =
      f.key == "train.batch" || f.key == "train.lr" || f.key == "train.epochs" || f.key == "exec.graph_steps";
  if (!doubled) return values;
  const double number = std::strtod(now.c_str(), nullptr);
  if (number <= 0) return values;
  const auto written = [&](double v) { return QString::number(v, 'g', 6).toStdString(); };
  if (f.kind == FieldKind::Number || std::fmod(number, 2) == 0) values.push_back(written(number / 2));
  values.push_back(written(number * 2));
  return values;
}

void add_value(QMenu& menu, const Run& run, const Field& f, const std::string& value, const OneChange& chosen) {
  RunSpec spec = run.spec;
  QAction* action = menu.addAction(QString::fromStdString(value));
  try {
    set_field(spec, f.key, value);
  } catch (const std::exception& problem) {
    action->setEnabled(false);
    action->setToolTip(QString::fromUtf8(problem.what()));
    return;
  }
  if (const auto why = why_invalid(spec, device_info().cuda)) {
    action->setEnabled(false);
    action->setToolTip(QString::fromStdString(why->text));
    return;
  }
  const QString title = run.title + QStringLiteral(" · ") + text(f.label) + " " + QString::fromStdString(value);
  QObject::connect(action, &QAction::triggered, &menu, [chosen, spec, title] { chosen(spec, title); });
}

}  // namespace

void fill_change_menu(QMenu& menu, const Run& run, const OneChange& chosen) {
  menu.setEnabled(run.origin != RunOrigin::Imported);
  std::string_view group;
  for (const Field& f : fields()) {
    const std::vector<std::string> values = other_values(f, run.spec);
    if (values.empty() || f.group == "Data") continue;
    if (!group.empty() && f.group != group) menu.addSeparator();
    group = f.group;
    auto* values_menu =
        menu.addMenu(text(f.label) + QStringLiteral("  ") + QString::fromStdString(field_text(run.spec, f.key)));
    values_menu->setToolTipsVisible(true);
    for (const std::string& value : values) add_value(*values_menu, run, f, value, chosen);
  }
}

void ask_title(QWidget* parent, RunLibrary& library, Run* run) {
  bool ok = false;
  const QPointer<Run> kept = run;
  const QString title = QInputDialog::getText(parent, QObject::tr("Rename a run"), QObject::tr("Name"),
                                              QLineEdit::Normal, run->title, &ok);
  if (ok && kept) library.rename(kept, title);
}

void ask_tags(QWidget* parent, RunLibrary& library, const std::vector<Run*>& runs) {
  bool ok = false;
  const std::vector<QPointer<Run>> kept(runs.begin(), runs.end());
  const QString known = library.allTags().join(", ");
  const QString tags =
      QInputDialog::getText(parent, QObject::tr("Tags"),
                            known.isEmpty() ? QObject::tr("Separate tags with commas")
                                            : QObject::tr("Separate tags with commas. In use: %1").arg(known),
                            QLineEdit::Normal, runs.front()->tags.join(", "), &ok);
  for (const auto& run : kept)
    if (ok && run) library.setTags(run, tags.split(','));
}

void ask_note(QWidget* parent, RunLibrary& library, Run* run) {
  bool ok = false;
  const QPointer<Run> kept = run;
  const QString note = QInputDialog::getMultiLineText(parent, QObject::tr("Notes"), run->title, run->note, &ok);
  if (ok && kept) library.setNote(kept, note);
}

void ask_export(QWidget* parent, LibraryJobs& jobs, const std::vector<Run*>& runs) {
  if (runs.empty()) return;
  const std::vector<QPointer<Run>> kept(runs.begin(), runs.end());
  if (runs.size() == 1) {
    const QString path = QFileDialog::getSaveFileName(
        parent, QObject::tr("Export a run"), QString(runs.front()->title).replace('/', '-') + ".wsrun",
        QObject::tr("Run file (*.wsrun);;Chrome trace (*.json *.json.gz)"));
    if (!path.isEmpty() && kept.front()) jobs.exportRun(*kept.front(), path);
    return;
  }
  const QString folder =
      QFileDialog::getExistingDirectory(parent, QObject::tr("Export %1 runs to a folder").arg(runs.size()));
  for (const auto& run : kept)
    if (!folder.isEmpty() && run) jobs.exportRun(*run, folder + "/" + QFileInfo(run->path).fileName());
}

void ask_import(QWidget* parent, LibraryJobs& jobs) {
  const QStringList paths = QFileDialog::getOpenFileNames(
      parent, QObject::tr("Import runs"), {},
      QObject::tr("Runs and traces (%1);;All files (*)").arg(readable_files()));
  for (const QString& path : paths) jobs.import(path);
}

}  // namespace ws::app
