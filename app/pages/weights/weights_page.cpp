#include "app/pages/one_run_page.h"
#include "app/pages/weights/weights_panel.h"

namespace ws::app {
namespace {

AskTrainer trainer_of(TrainingSession* session) {
  return [session](const Run& run, std::function<void(Executor&)> question) {
    TrainControl* control = session->control();
    if (!control || session->run() != &run || !run.live()) return false;
    control->ask(std::move(question));
    return true;
  };
}

}  // namespace

Page weights_page(Workspace& workspace) {
  auto* panel = new WeightsPanel(trainer_of(workspace.session()));
  return one_run_page(QObject::tr("Weights"), panel, [panel](Run* run) { panel->setRun(run); });
}

}  // namespace ws::app
