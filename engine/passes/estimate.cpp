#include "engine/passes/estimate.h"

#include <algorithm>

#include "engine/passes/passes.h"

namespace ws {

PlanEstimate estimate(const RunSpec& spec, LayerShape input, int64_t outputs, int64_t train_rows) {
  const Model model = make_model(spec.model, input, outputs);
  const int64_t batch = spec.train.batch == 0 ? train_rows : std::min(spec.train.batch, train_rows);
  const Plan plan = fuse(insert_all_reduce(build_plan(spec, model, batch)), spec.exec.fusion);
  PlanEstimate e;
  e.parameters = model.parameter_count();
  for (const Op& op : plan.ops) e.flops_per_step += flops(plan, op);
  return e;
}

}  // namespace ws
