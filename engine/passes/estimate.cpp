#include "engine/passes/estimate.h"

#include <algorithm>

#include "engine/passes/passes.h"

namespace ws {

PlanEstimate estimate(const RunSpec& spec, int64_t inputs, int64_t outputs, int64_t train_rows) {
  const Model model = make_model(spec.model, inputs, outputs);
  const int64_t batch = spec.train.batch == 0 ? train_rows : std::min(spec.train.batch, train_rows);
  const Plan plan = place_memory(fuse(insert_all_reduce(build_plan(spec, model, batch)), spec.exec.fusion), Allocator::Arena);
  PlanEstimate e;
  e.parameters = model.parameter_count();
  e.step_bytes = plan.arena_bytes;
  e.data_bytes = train_rows * (inputs + 1) * 4;
  for (const Op& op : plan.ops) e.flops_per_step += flops(plan, op);
  for (const Buffer& b : plan.buffers)
    if (b.role == Role::Parameter || b.role == Role::Shadow || b.role == Role::State) e.parameter_bytes += b.bytes();
  return e;
}

}  // namespace ws
