#include <QClipboard>
#include <QGuiApplication>
#include <QMenu>
#include <QStackedWidget>
#include <algorithm>

#include "app/core/runs/spec_line.h"
#include "app/pages/page.h"
#include "app/pages/setup/program_panel.h"
#include "app/pages/setup/setup_panel.h"
#include "app/text/units.h"
#include "profiling/base/failure.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {
namespace {

// Passes the live run, and the run with choices that Setup compares with: the shown one, else the first other ticked one.
void show_runs(SetupPanel* panel, Workspace& workspace) {
  TrainingSession* session = workspace.session();
  const Run* live = session->busy() ? session->run() : nullptr;
  panel->setLive(live ? std::optional(live->spec) : std::nullopt);
  std::vector<Run*> candidates = workspace.library()->ticked();
  candidates.insert(candidates.begin(), workspace.shownRun());
  for (const Run* run : candidates)
    if (run && run != live && run->slot >= 0 && run->hasChoices()) return panel->setOther(run->spec, run_letter(run->slot));
  panel->setOther(std::nullopt, {});
}

// What is known of the shown program: from its file, else from the recording itself. nullopt: Setup is shown.
std::optional<RecordedCommand> shown_program(const Workspace& workspace) {
  const Run* run = workspace.shownProgram();
  if (!run) return std::nullopt;
  try {
    if (!run->path.isEmpty())
      if (const auto recorded = recorded_command(prof::read_run_summary(run->path.toStdString()))) return recorded;
  } catch (const Failure&) {  // the file is gone, or not yet there
  }
  RecordedCommand recorded;
  recorded.words = run->command;
  return recorded;
}

// Uses the newest recording of the program at each level.
std::vector<LevelCost> level_costs(Workspace& workspace, const QStringList& command) {
  std::vector<LevelCost> costs;
  std::vector<const Run*> runs;
  for (const Run* run : workspace.library()->runs())
    if (run->command == command && run->stepUs() > 0) runs.push_back(run);
  std::ranges::stable_sort(runs, std::greater<>{}, &Run::created);
  for (const Run* run : runs)
    if (std::ranges::find(costs, run->record_level, &LevelCost::level) == costs.end())
      costs.push_back({run->record_level, run->stepUs()});
  return costs;
}

void show_program(QStackedWidget* stack, ProgramPanel* program, Workspace& workspace) {
  const auto recorded = shown_program(workspace);
  if (recorded) program->showProgram(*recorded, level_costs(workspace, recorded->words));
  program->watch(recorded ? workspace.shownProgram() : nullptr);
  stack->setCurrentIndex(recorded ? 1 : 0);
}

QMenu* preset_menu(SetupPanel* panel, Choices* choices) {
  auto* menu = new QMenu(QObject::tr("Preset"), panel);
  for (const Preset& preset : presets_by_title())
    menu->addAction(QString::fromStdString(preset.title), choices,
                    [choices, name = preset.name] { choices->usePreset(QString::fromStdString(name)); });
  return menu;
}

void copy_choices(Workspace& workspace) {
  QGuiApplication::clipboard()->setText(QString::fromStdString(spec_line(workspace.choices()->spec())));
  workspace.say(QObject::tr("Copied: the settings as one line. Somebody else pastes it with Run › Paste settings, or trains it with warpsight train --spec."), false);
}

void paste_choices(Workspace& workspace) {
  try {
    workspace.choices()->edit(spec_of_line(QGuiApplication::clipboard()->text().toStdString()));
    workspace.say(QObject::tr("The settings of the line are set."), false);
  } catch (const Failure& problem) {
    workspace.say(QString::fromUtf8(problem.what()), true);
  }
}

}  // namespace

Page setup_page(Workspace& workspace) {
  auto* panel = new SetupPanel(workspace.choices());
  auto* program = new ProgramPanel;
  auto* stack = new QStackedWidget;
  stack->addWidget(panel), stack->addWidget(program);
  const auto refresh = [panel, stack, program, &workspace] {
    show_runs(panel, workspace);
    show_program(stack, program, workspace);
  };
  QObject::connect(program, &ProgramPanel::recordWanted, &workspace, &Workspace::recordWanted);
  QObject::connect(&workspace, &Workspace::recordAgainWanted, program, &ProgramPanel::recordAgain);
  QObject::connect(panel, &SetupPanel::apply, workspace.session(), &TrainingSession::change);
  QObject::connect(panel, &SetupPanel::anewWanted, &workspace, &Workspace::trainAnew);
  QObject::connect(workspace.session(), &TrainingSession::stateChanged, panel, refresh);
  QObject::connect(workspace.library(), &RunLibrary::tickedChanged, panel, refresh);
  Page page;
  page.title = QObject::tr("Setup"), page.widget = stack;
  page.set_compact = [panel](bool narrow) { panel->setCompact(narrow); };
  page.menus.push_back(
      {MenuName::Run,
       {preset_menu(panel, workspace.choices())->menuAction(),
        page_action(panel, QObject::tr("Settings as JSON…"), QKeySequence("Ctrl+J"), [panel] { panel->editJson(); }),
        page_action(panel, QObject::tr("Copy settings as a line"), {}, [&workspace] { copy_choices(workspace); }),
        page_action(panel, QObject::tr("Paste settings"), {}, [&workspace] { paste_choices(workspace); })}});
  return page;
}

}  // namespace ws::app
