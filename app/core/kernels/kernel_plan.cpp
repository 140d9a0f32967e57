#include "app/core/kernels/kernel_plan.h"

#include <algorithm>

#include "app/core/runs/data_shape.h"
#include "engine/devices/devices.h"
#include "engine/lab/ceilings.h"
#include "engine/passes/compile.h"

namespace ws::app {
namespace {

constexpr int64_t kRowsOfData = 1024;

// A persistent kernel runs no other kernel, so its plan would have no op for one.
RunSpec with_single_kernels(RunSpec spec) {
  spec.exec.kernels.clear();
  if (spec.exec.launch == Launch::Persistent || spec.exec.launch == Launch::Auto) spec.exec.launch = Launch::Eager;
  return spec;
}

}  // namespace

Plan plan_for_kernels(const RunSpec& asked) {
  const RunSpec spec = with_single_kernels(asked);
  const DataShape shape = data_shape(spec.data);
  if (!shape.known()) return plan_of(spec, data::load(spec.data)).plan;
  const int64_t rows = spec.train.batch == 0 ? shape.train : std::min(spec.train.batch, shape.train);
  return compile(spec, make_model(spec.model, shape.input, std::max<int64_t>(1, shape.outputs)), rows).plan;
}

std::vector<CheckedShape> checked_shapes(const RunSpec& asked) {
  RunSpec spec = asked;
  if (spec.data.limit == 0) spec.data.limit = kRowsOfData;
  std::vector<CheckedShape> shapes{{"the shapes of the run", spec}};
  for (const int64_t batch : {1, 3, 37, 129}) {
    shapes.push_back({"batch " + std::to_string(batch), spec});
    shapes.back().spec.train.batch = batch;
  }
  if (!spec.model.layers.empty()) return shapes;
  for (const int64_t width : {1, 33, 200}) {
    shapes.push_back({"hidden layers of " + std::to_string(width), spec});
    for (int64_t& each : shapes.back().spec.model.hidden) each = width;
  }
  return shapes;
}

CheckedPlan plan_of(const RunSpec& asked, const data::Dataset& data) {
  const RunSpec spec = with_single_kernels(asked);
  CheckedPlan made{make_model(spec.model, data), {}};
  const int64_t rows = spec.train.batch == 0 ? data.train.rows : std::min(spec.train.batch, data.train.rows);
  made.plan = compile(spec, made.model, rows).plan;
  return made;
}

KernelLimits kernel_limits(const OwnKernelVerdict& verdict, Precision precision) {
  const lab::Ceilings ceilings = lab::remembered_ceilings(device_info().name);
  const bool exact = precision == Precision::Fp32, half = precision == Precision::Fp16 || precision == Precision::Bf16;
  const double flops_s = exact ? ceilings.fp32_flops_s : half ? ceilings.fp16_flops_s : ceilings.tf32_flops_s;
  const auto time_us = [](double amount, double per_s) { return per_s > 0 ? 1e6 * amount / per_s : 0; };
  return {time_us(verdict.bytes, ceilings.read_write_bytes_s), time_us(verdict.flops, flops_s), verdict.empty_us};
}

}  // namespace ws::app
