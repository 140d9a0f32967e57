// Advice when the GPU's memory is too small: the biggest buffers, and a batch that fits.
#pragma once
#include <string>

#include "datasets/dataset.h"
#include "engine/plan/model.h"

namespace ws::cuda {

// `ours`: bytes that the step's allocator holds. They would be available for another batch.
std::string advice_for_step(const Plan& plan, const Model& model, int64_t ours);
std::string advice_for_load(const Model& model, const data::Dataset& data, const RunSpec& spec);
std::string advice_for_evaluation(const RunSpec& spec, const Model& model, int64_t rows);

}  // namespace ws::cuda
