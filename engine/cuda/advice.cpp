#include "engine/cuda/advice.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "engine/compile.h"

namespace ws::cuda {
namespace {

std::string size_text(int64_t bytes) {
  char text[32];
  const double gib = static_cast<double>(bytes) / (1 << 30);
  if (gib >= 1)
    std::snprintf(text, sizeof text, "%.1f GiB", gib);
  else
    std::snprintf(text, sizeof text, "%.1f MiB", gib * 1024);
  return text;
}

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

bool grows_with_batch(const Plan& plan, const Buffer& buffer) {
  return lives_in_step(buffer) && buffer.rows == plan.batch;
}

}  // namespace

std::string biggest_buffers(const Plan& plan) {
  std::vector<const Buffer*> all;
  for (const Buffer& b : plan.buffers) all.push_back(&b);
  std::ranges::stable_sort(all, std::greater<>{}, &Buffer::bytes);
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, all.size()); ++i)
    text += (i ? ", " : "") + all[i]->name + " " + size_text(all[i]->bytes());
  return text;
}

// The live set is a part that grows with the batch and a part that does not. Powers of two, with a tenth to spare.
int64_t batch_that_fits(const Plan& plan, int64_t room) {
  int64_t growing = 0, fixed = 0;
  for (const Buffer& b : plan.buffers)
    if (lives_in_step(b)) (grows_with_batch(plan, b) ? growing : fixed) += b.bytes();
  const int64_t all = std::max<int64_t>(1, growing + fixed), peak = live_lower_bound(plan);
  const double share = static_cast<double>(peak) / static_cast<double>(all);  // of the buffers alive at once
  const double per_row = share * static_cast<double>(growing) / static_cast<double>(std::max<int64_t>(1, plan.batch));
  const double left = 0.9 * static_cast<double>(room) - share * static_cast<double>(fixed);
  if (left < per_row) return 0;
  int64_t batch = 1;
  while (2 * batch < plan.batch && static_cast<double>(2 * batch) * per_row <= left) batch *= 2;
  return batch;
}

std::string advice_for_step(const Plan& plan, int64_t ours) {
  const int64_t cap = cap_of(plan.spec.exec), room = cap ? cap : free_memory() + ours;
  const int64_t batch = batch_that_fits(plan, room);
  const std::string needed = "a step of " + std::to_string(plan.batch) + " rows needs " +
                             size_text(live_lower_bound(plan)) + " (biggest: " + biggest_buffers(plan) + ") and " +
                             size_text(room) + (cap ? " are allowed" : " are free");
  return needed +
         (batch > 0 ? "; a batch of " + std::to_string(batch) + " fits" : "; no batch fits, choose narrower layers");
}

std::string advice_for_load(const Model& model, const data::Dataset& data, const RunSpec& spec) {
  const int64_t rows = data.train.rows + data.test.rows;
  const int64_t set = rows * (data.features + 1) * 4, weights = model.parameter_count() * 4;
  const bool resident = spec.exec.loader == Loader::Resident;
  const std::string what = "the model needs " + size_text(weights) +
                           (resident ? ", the data set " + size_text(set) : "") + " and " + size_text(free_memory()) +
                           " are free";
  return what + (resident && set > weights ? "; choose the pinned loader" : "; choose narrower layers");
}

std::string advice_for_evaluation(const RunSpec& spec, const Model& model, int64_t rows) {
  RunSpec arena = spec;
  arena.exec.allocator = Allocator::Arena;
  const Plan plan = compile_evaluation(arena, model, rows).plan;
  return "an evaluation of " + std::to_string(rows) + " rows at a time needs " + size_text(plan.arena_bytes) +
         " beside the training (biggest: " + biggest_buffers(plan) + ") and " + size_text(free_memory()) +
         " are free; choose a smaller training batch or narrower layers";
}

}  // namespace ws::cuda
