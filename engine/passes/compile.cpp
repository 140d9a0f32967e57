#include "engine/passes/compile.h"

#include <algorithm>

#include "engine/passes/passes.h"

namespace ws {
namespace {

CompiledPlan finish(Plan before, const ExecSpec& exec, bool own_kernels) {
  validate(before);
  CompiledPlan made;
  made.before = before;
  made.before.id = plan_hash(before);
  Plan fused = fuse(insert_all_reduce(std::move(before)), exec.fusion);
  if (own_kernels) fused = use_own_kernels(std::move(fused));
  made.plan = insert_sync(place_memory(std::move(fused), exec.allocator), exec.sync);
  validate(made.plan);
  made.plan.id = plan_hash(made.plan);
  return made;
}

}  // namespace

CompiledPlan compile(const RunSpec& spec, const Model& model, int64_t rows, int rank) {
  return finish(build_plan(spec, model, rows, rank), spec.exec, true);
}

CompiledPlan compile_evaluation(const RunSpec& spec, const Model& model, int64_t batch) {
  return finish(build_evaluation_plan(spec, model, batch), spec.exec, false);
}

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
