#include "app/core/runs/plan_budget.h"

#include <algorithm>

#include "app/core/runs/data_shape.h"
#include "engine/devices/persistent_budget.h"
#include "engine/plan/model.h"

namespace ws::app {

std::optional<CompiledPlan> plan_before_loading(const RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  if (!shape.known()) return std::nullopt;
  const int64_t batch = spec.train.batch > 0 ? std::min(spec.train.batch, shape.train) : shape.train;
  try {
    return compile(spec, make_model(spec.model, shape.input, shape.outputs), batch);
  } catch (const Failure&) {  // from another version, or the setup page says why the choices cannot run
    return std::nullopt;
  }
}

std::string plan_budget(const RunSpec& spec) {
  const std::optional<CompiledPlan> plan = plan_before_loading(spec);
  if (!plan) return {};
  try {
    return persistent_budget(spec, plan->plan, data_shape(spec.data).train);
  } catch (const Failure&) {
    return {};
  }
}

}  // namespace ws::app
