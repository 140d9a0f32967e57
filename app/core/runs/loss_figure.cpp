#include "app/core/runs/loss_figure.h"

namespace ws::app {

std::string short_name(const LossFigure& loss) { return loss.of_test() ? "test loss" : "training loss"; }

std::string long_name(const LossFigure& loss) {
  if (loss.steps < 2) return short_name(loss) + (loss.of_test() ? "" : ", last step");
  return short_name(loss) + ", mean of the last " + std::to_string(loss.steps) + " steps";
}

}  // namespace ws::app
