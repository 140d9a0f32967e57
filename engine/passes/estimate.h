// Estimates the cost of a spec before anything runs.
#pragma once
#include "engine/plan/model.h"

namespace ws {

struct PlanEstimate {
  int64_t parameters = 0, flops_per_step = 0;
};
PlanEstimate estimate(const RunSpec& spec, LayerShape input, int64_t outputs, int64_t train_rows);

}  // namespace ws
