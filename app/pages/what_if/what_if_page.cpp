#include "app/pages/one_run_page.h"
#include "app/pages/what_if/what_if_panel.h"

namespace ws::app {

Page what_if_page(Workspace& workspace) {
  auto* panel = new WhatIfPanel;
  QObject::connect(panel, &WhatIfPanel::said, &workspace, &Workspace::say);
  const auto take_state = [&workspace, panel] { panel->setTraining(workspace.session()->busy() || workspace.recording()->busy()); };
  QObject::connect(workspace.session(), &TrainingSession::stateChanged, panel, take_state);
  QObject::connect(&workspace, &Workspace::editWanted, panel, [&workspace, panel](Run* run, const QString& edit) {
    workspace.pick(run);
    workspace.bringToFront(panel);
    panel->ask(run, edit);
  });
  Page page = one_run_page(workspace, QObject::tr("What if"), panel, [panel, take_state](Run* run) { panel->setRun(run); take_state(); });
  return page;
}

}  // namespace ws::app
