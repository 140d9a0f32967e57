// What a launch of an op can at best take on this machine's GPU.
#pragma once
#include "engine/own_kernels/own_kernel_verdict.h"
#include "engine/plan/run_spec.h"

namespace ws::app {

struct KernelLimits {
  double memory_us = 0, arithmetic_us = 0;  // for the bytes and the arithmetic of the op; 0: this GPU was not measured
  double launch_us = 0;                     // of an empty kernel
  bool known() const { return memory_us > 0 && launch_us > 0; }
  double us() const { return known() ? launch_us + (memory_us > arithmetic_us ? memory_us : arithmetic_us) : 0; }  // 0: not known
};
KernelLimits kernel_limits(const OwnKernelVerdict& verdict, Precision precision);

}  // namespace ws::app
