// Computes the least time that this machine's measured ceilings allow.
#include "engine/lab/lab.h"

namespace ws::lab {
namespace {

double over(double work, double rate) { return rate > 0 ? work / rate : 0; }

double flops_rate(Way way, const Ceilings& c) {
  if (way == Way::GpuTf32) return c.tf32_flops_s;
  return way == Way::GpuFp16 ? c.fp16_flops_s : c.fp32_flops_s;
}

// From the second level on, the argument of a sine is at most 1.
double sine_seconds(int depth, int64_t size, const Ceilings& c) {
  const auto n = static_cast<double>(size);
  return over(n, c.sine_per_s) + over((depth - 1) * n, c.short_sine_per_s);
}

}  // namespace

Bound bound_of(const LabSpec& spec, Way way, int64_t size, const Ceilings& c) {
  Bound bound;
  if (!info(way).gpu || way == Way::GpuCold || info(way).pitfall) return bound;
  const double inputs = way == Way::GpuFp16 ? 0.5 : 1;  // fp16: half the bytes
  bound.bytes_s = over(inputs * static_cast<double>(bytes_of(spec, size)), c.read_write_bytes_s);
  if (spec.operation == Operation::MatMul)
    bound.arithmetic_s = over(static_cast<double>(flops_of(spec, size)), flops_rate(way, c));
  if (spec.operation == Operation::Sine) bound.arithmetic_s = sine_seconds(spec.depth, size, c);
  return bound;
}

}  // namespace ws::lab
