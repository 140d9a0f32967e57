// The one loss that the window shows of a run.
#pragma once
#include "app/core/runs/loss_figure.h"
#include "app/workspace/run.h"

namespace ws::app {

// The losses of a live run count up to where its figures were last made, so that every view shows the same number.
// A run whose steps were not read yet has the loss of its last step.
inline LossFigure training_loss_of(const Run& run) {
  return run.steps.empty() ? LossFigure{run.trainLoss(), 1} : mean_of_newest(run.countedSteps(), &StepPoint::loss);
}

inline LossFigure loss_of(const Run& run) { return std::isfinite(run.testLoss()) ? LossFigure{run.testLoss(), 0} : training_loss_of(run); }

}  // namespace ws::app
