// The one loss that the window shows of a run.
#pragma once
#include "app/core/runs/loss_figure.h"
#include "app/workspace/run.h"

namespace ws::app {

// The losses of a live run count up to where its figures were last made, so that every view shows the same number.
// A run whose steps were not read yet has the loss of its last step.
inline LossFigure loss_of(const Run& run) {
  const LossFigure known = loss_figure(run.testLoss(), run.countedSteps(), &StepPoint::loss);
  return run.steps.empty() && known.of_test() && std::isnan(known.value) ? LossFigure{run.trainLoss(), 1} : known;
}

}  // namespace ws::app
