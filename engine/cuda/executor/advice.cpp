#include "engine/cuda/executor/advice.h"

#include <cuda_runtime_api.h>

#include "engine/passes/compile.h"
#include "engine/passes/lifetimes.h"
#include "engine/passes/memory_need.h"
#include "profiling/base/text.h"

namespace ws::cuda {
namespace {

int64_t free_memory() {
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return static_cast<int64_t>(free);
}

int64_t cap_of(const ExecSpec& exec) {
  return exec.allocator == Allocator::Caching && exec.cache_cap_mib > 0
             ? static_cast<int64_t>(exec.cache_cap_mib * (1 << 20))
             : 0;
}

}  // namespace

std::string advice_for_step(const Plan& plan, const Model& model, int64_t ours) {
  const int64_t cap = cap_of(plan.spec.exec), space = cap ? cap : free_memory() + ours;
  return "a step of " + std::to_string(plan.batch) + " rows needs " + bytes_text(live_lower_bound(plan)) +
         " (biggest: " + biggest_buffers(plan) + ") and " + bytes_text(space) +
         (cap ? " are allowed; " : " are free; ") + batch_advice(largest_batch(plan.spec, model, plan.batch, space));
}

std::string advice_for_load(const Model& model, const data::Dataset& data, const RunSpec& spec) {
  const int64_t rows = data.train.rows + data.test.rows;
  const int64_t set = rows * (data.features + 1) * 4, weights = model.parameter_count() * 4;
  const bool resident = spec.exec.loader == Loader::Resident;
  const std::string what = "the model needs " + bytes_text(weights) +
                           (resident ? ", the data set " + bytes_text(set) : "") + " and " + bytes_text(free_memory()) +
                           " are free";
  return what + (resident && set > weights ? "; choose the pinned loader" : "; choose narrower layers");
}

std::string advice_for_evaluation(const RunSpec& spec, const Model& model, int64_t rows) {
  RunSpec arena = spec;
  arena.exec.allocator = Allocator::Arena;
  const Plan plan = compile_evaluation(arena, model, rows).plan;
  return "an evaluation of " + std::to_string(rows) + " rows at a time needs " + bytes_text(plan.arena_bytes) +
         " beside the training (biggest: " + biggest_buffers(plan) + ") and " + bytes_text(free_memory()) +
         " are free; choose a smaller training batch or narrower layers";
}

}  // namespace ws::cuda
