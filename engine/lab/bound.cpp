// Computes the least time that this machine's measured ceilings allow.
#include <algorithm>

#include "engine/lab/lab.h"
#include "engine/workloads/expression_source.h"

namespace ws::lab {
namespace {

double over(double work, double rate) { return rate > 0 ? work / rate : 0; }

double flops_rate(Way way, const Ceilings& c) {
  if (way == Way::GpuTf32) return c.tf32_flops_s;
  return way == Way::GpuFp16 ? c.fp16_flops_s : c.fp32_flops_s;
}

// Counts only sines and cosines. They cost much more than the other operations, and omitting those keeps the bound
// valid.
double sine_seconds(const Expression& e, int64_t size, const Ceilings& c) {
  const std::vector<bool> small = short_steps(e);
  double of_any = 0, of_small = 0;
  for (size_t i = 0; i < small.size(); ++i) {
    const Fn fn = e.steps()[i].fn;
    if (fn == Fn::Sin || fn == Fn::Cos) (small[i] ? of_small : of_any) += 1;
  }
  const auto n = static_cast<double>(size);
  return over(of_any * n, c.sine_per_s) + over(of_small * n, c.short_sine_per_s);
}

}  // namespace

Bound bound_of(const LabSpec& spec, Way way, int64_t size, const Ceilings& c) {
  Bound bound;
  if (!info(way).gpu || way == Way::GpuCold || info(way).pitfall) return bound;
  const double inputs = way == Way::GpuFp16 ? 0.5 : 1;  // fp16: half the bytes
  bound.bytes_s = over(inputs * static_cast<double>(bytes_of(spec, size)), c.read_write_bytes_s);
  if (spec.operation == Operation::MatMul)
    bound.arithmetic_s = over(static_cast<double>(flops_of(spec, size)), flops_rate(way, c));
  if (spec.operation == Operation::Sine)
    bound.arithmetic_s = sine_seconds(Expression::nested_sine(spec.depth), size, c);
  if (spec.operation == Operation::Expression)
    bound.arithmetic_s = sine_seconds(Expression::parse(spec.expression), size, c);
  return bound;
}

}  // namespace ws::lab
