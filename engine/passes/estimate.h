// What a choice will cost, told before anything runs.
#pragma once
#include "engine/plan/model.h"

namespace ws {

struct PlanEstimate {
  int64_t parameters = 0, flops_per_step = 0, step_bytes = 0, parameter_bytes = 0, data_bytes = 0;
};
PlanEstimate estimate(const RunSpec& spec, int64_t inputs, int64_t outputs, int64_t train_rows);

}  // namespace ws
