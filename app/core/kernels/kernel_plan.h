// The plans on which a person's kernel is written, compiled and checked.
#pragma once
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/plan/model.h"
#include "engine/plan/plan.h"

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

}  // namespace ws::app
