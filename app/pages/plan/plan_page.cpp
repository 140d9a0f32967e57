#include "app/core/runs/data_shape.h"
#include "app/pages/one_run_page.h"
#include "app/pages/plan/plan_panel.h"

namespace ws::app {

Page plan_page(Workspace& workspace) {
  auto* panel = new PlanPanel(workspace.focus());
  Page page = one_run_page(workspace, QObject::tr("Plan"), panel, [panel](Run* run) { panel->setRun(run); });
  page.of_training = true, page.needs = QObject::tr("It needs a training of Warpsight.");
  Choices* choices = workspace.choices();
  const auto show_budget = [panel, choices] {
    panel->setBudget(choices->cuda() ? QString::fromStdString(plan_budget(choices->spec())) : QString());
  };
  QObject::connect(choices, &Choices::changed, panel, show_budget);
  show_budget();
  return page;
}

}  // namespace ws::app
