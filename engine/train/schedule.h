// The learning rate of a step and the row order of an epoch. Both are pure functions of the spec, so a resumed run gets
// the same values.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/plan/run_spec.h"

namespace ws {

double learning_rate(const TrainSpec& spec, int64_t step, int64_t steps_per_epoch);
std::vector<uint32_t> epoch_order(const TrainSpec& spec, int64_t rows, int64_t epoch);

}  // namespace ws
