#include "app/core/runs/plan_budget.h"

#include <algorithm>

#include "app/core/runs/data_shape.h"
#include "engine/devices/persistent_budget.h"
#include "engine/passes/compile.h"
#include "engine/plan/model.h"

namespace ws::app {

std::string plan_budget(const RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  if (!shape.known()) return {};
  try {
    const Model model = make_model(spec.model, shape.input, shape.outputs);
    const int64_t batch = spec.train.batch == 0 ? shape.train : std::min(spec.train.batch, shape.train);
    return persistent_budget(spec, compile(spec, model, batch).plan, shape.train);
  } catch (const Failure&) {
    return {};  // the setup page says why the choices cannot run
  }
}

}  // namespace ws::app
