// Runs single steps on an executor from chosen start values, the way every executor test needs it.
#pragma once
#include <numeric>

#include "engine/passes/compile.h"
#include "engine/executor/executor.h"

namespace ws::test {

inline TrainState initial_state(const Model& model, const RunSpec& spec) {
  TrainState state;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    state.parameters.push_back(initial_values(model, spec.model, static_cast<ParamId>(i), spec.train.seed));
  for (int slot = 0; slot < moments_of(spec.train.optimizer); ++slot)
    for (const Parameter& p : model.parameters)
      state.moments[slot].emplace_back(static_cast<size_t>(p.elements()), 0.0f);
  return state;
}

// Trains `steps` full batches of `batch` rows from `state` and returns where it ended; fills `results` when given.
inline TrainState run_steps(Executor& executor, const RunSpec& spec, const Model& model, const data::Dataset& data,
                            const TrainState& state, int64_t batch, int64_t steps,
                            std::vector<StepResult>* results = nullptr) {
  executor.load(model, data, spec);
  executor.set_state(state);
  executor.bind(compile(spec, model, batch).plan);
  std::vector<uint32_t> order(static_cast<size_t>(data.train.rows));
  std::iota(order.begin(), order.end(), 0u);
  executor.begin_epoch(order);
  const std::vector<float> lrs(static_cast<size_t>(steps), static_cast<float>(spec.train.lr));
  executor.run(0, 0, lrs);
  std::vector<StepResult> own;
  executor.results(results ? *results : own, true);
  return executor.state();
}

}  // namespace ws::test
