#include "app/core/kernels/kernel_limits.h"

#include "engine/devices/devices.h"
#include "engine/lab/ceilings.h"

namespace ws::app {

KernelLimits kernel_limits(const OwnKernelVerdict& verdict, Precision precision) {
  const lab::Ceilings ceilings = lab::remembered_ceilings(device_info().name);
  const bool exact = precision == Precision::Fp32, half = precision == Precision::Fp16 || precision == Precision::Bf16;
  const double flops_s = exact ? ceilings.fp32_flops_s : half ? ceilings.fp16_flops_s : ceilings.tf32_flops_s;
  const auto time_us = [](double amount, double per_s) { return per_s > 0 ? 1e6 * amount / per_s : 0; };
  return {time_us(verdict.bytes, ceilings.read_write_bytes_s), time_us(verdict.flops, flops_s), verdict.empty_us};
}

}  // namespace ws::app
