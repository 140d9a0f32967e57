// The plans on which a person's kernel is written, compiled and checked.
#pragma once
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/own_kernels/own_kernel_verdict.h"
#include "engine/plan/model.h"
#include "engine/plan/plan.h"
#include "engine/plan/run_spec.h"

namespace ws::app {

// The plan of a step with built-in kernels. Does not load the data; throws Failure if their shape is not known.
Plan plan_for_kernels(const RunSpec& spec);

// One plan on which a kernel is checked.
struct CheckedShape {
  std::string name;  // "batch 37"
  RunSpec spec;
};
// The shapes of the run first, then edges and odd ones around it.
std::vector<CheckedShape> checked_shapes(const RunSpec& spec);

struct CheckedPlan {
  Model model;
  Plan plan;
};
CheckedPlan plan_of(const RunSpec& spec, const data::Dataset& data);

// What a launch of an op can at best take on this machine's GPU.
struct KernelLimits {
  double memory_us = 0, arithmetic_us = 0;  // for the bytes and the arithmetic of the op; 0: this GPU was not measured
  double launch_us = 0;                     // of an empty kernel
  bool known() const { return memory_us > 0 && launch_us > 0; }
  double us() const { return known() ? launch_us + (memory_us > arithmetic_us ? memory_us : arithmetic_us) : 0; }  // 0: not known
};
KernelLimits kernel_limits(const OwnKernelVerdict& verdict, Precision precision);

}  // namespace ws::app
