#include "app/core/remote/recorded_update.h"

#include <utility>

namespace ws::app {

RunUpdate take_update(prof::RecordedProgram& program) {
  RunUpdate update;
  for (prof::TraceBatch batch = program.take(); !batch.empty(); batch = program.take())
    update.traces.push_back(std::move(batch));
  const prof::LiveCurves curves = program.take_curves();
  for (const prof::Metric& m : curves.metrics)
    update.steps.push_back({m.step, static_cast<float>(m.loss), static_cast<float>(m.accuracy), m.wall_s});
  for (const prof::Evaluation& e : curves.evaluations) {
    EpochResult test{.step = e.step, .wall_s = e.wall_s};
    test.test = Evaluation{e.test_loss, e.test_accuracy, 0};
    update.epochs.push_back(test);
  }
  return update;
}

}  // namespace ws::app
