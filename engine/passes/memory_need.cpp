#include "engine/passes/memory_need.h"

#include <algorithm>

#include "engine/passes/lifetimes.h"
#include "engine/passes/passes.h"
#include "engine/plan/model.h"
#include "profiling/base/text.h"

namespace ws {
namespace {

// Weights and optimizer state in fp32.
int64_t state_bytes(const RunSpec& spec, const Model& model) {
  int64_t values = 0;
  for (const Parameter& p : model.parameters) values += p.elements();
  return values * 4 * (1 + moments_of(spec.train.optimizer));
}

// The plan's buffers in an arena: no allocator needs less. Shadows exist during the whole run.
int64_t step_bytes(const Plan& compiled) {
  const Plan plan = place_memory(compiled, Allocator::Arena);
  int64_t bytes = plan.arena_bytes;
  for (const Buffer& b : plan.buffers)
    if (b.role == Role::Shadow) bytes += b.bytes();
  return bytes;
}

int64_t batch_of(const RunSpec& spec, const DataSize& data) {
  const int64_t rows = data.train_rows;
  return spec.train.batch == 0 ? rows : std::min(spec.train.batch, rows);
}

Plan step_plan(const RunSpec& spec, const Model& model, int64_t batch) {
  return fuse(insert_all_reduce(build_plan(spec, model, batch)), spec.exec.fusion);
}

int64_t training_bytes(const RunSpec& spec, const Model& model, const DataSize& data) {
  return step_bytes(step_plan(spec, model, batch_of(spec, data)));
}

// The CPU keeps the plans of its evaluations: one for full blocks of rows, one for the remaining rows.
int64_t evaluation_bytes(const RunSpec& spec, const Model& model, const DataSize& data) {
  const int64_t most = cpu_evaluation_rows(model), rows = data.test_rows, rest = rows % most;
  int64_t bytes = 0;
  for (const int64_t part : {rows >= most ? most : 0, rest})
    if (part > 0) bytes += step_bytes(fuse(build_evaluation_plan(spec, model, part), spec.exec.fusion));
  return bytes;
}

int64_t set_bytes(const DataSize& data) { return (data.train_rows + data.test_rows) * (data.features + 1) * 4; }

template <class Takes>
std::string biggest_of(const Plan& plan, Takes takes) {
  std::vector<const Buffer*> all;
  for (const Buffer& b : plan.buffers)
    if (takes(b)) all.push_back(&b);
  std::ranges::stable_sort(all, std::greater<>{}, &Buffer::bytes);
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, all.size()); ++i)
    text += (i ? ", " : "") + all[i]->name + " " + bytes_text(all[i]->bytes());
  return text;
}

struct LayerBytes {
  std::string name;
  int64_t bytes = 0;
};

// What a layer or a block writes in a step. Work without a layer has the name of its phase.
std::vector<LayerBytes> bytes_by_layer(const Plan& plan) {
  std::vector<LayerBytes> all;
  std::vector<bool> counted(plan.buffers.size());
  for (const Op& op : plan.ops) {
    const auto layer = static_cast<size_t>(op.layer);
    const std::string name = op.layer < 0 ? std::string(to_string(op.phase))
                             : plan.layer_parts[layer].empty() ? plan.layer_names[layer] : plan.layer_parts[layer];
    auto found = std::ranges::find(all, name, &LayerBytes::name);
    if (found == all.end()) found = all.insert(all.end(), {name, 0});
    for (const BufferId id : op.out) {
      if (counted[index(id)] || !lives_in_step(plan.buffer(id))) continue;
      counted[index(id)] = true;
      found->bytes += plan.buffer(id).bytes();
    }
  }
  std::ranges::stable_sort(all, std::greater<>{}, &LayerBytes::bytes);
  return all;
}

// "block 1 2.1 GiB, block 2 2.1 GiB, conv1 512 MiB, all 4 others 600 MiB".
std::string biggest_layers(const Plan& plan) {
  constexpr size_t kNamed = 4;
  const std::vector<LayerBytes> all = bytes_by_layer(plan);
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, all.size()); ++i) text += (i ? ", " : "") + all[i].name + " " + bytes_text(all[i].bytes);
  int64_t rest = 0;
  for (size_t i = kNamed; i < all.size(); ++i) rest += all[i].bytes;
  return text + (rest > 0 ? ", all " + std::to_string(all.size() - kNamed) + " others " + bytes_text(rest) : "");
}

// Advice when a step needs more memory than is free.
// Begins the sentence with what is missing.
Refusal too_large(std::string text, const RunSpec& spec, const Model& model, const DataSize& data, int64_t free_bytes, int64_t needed) {
  const int64_t batch = batch_of(spec, data);
  const Plan plan = step_plan(spec, model, batch);
  const int64_t step = live_lower_bound(plan);
  if (step < needed / 8)  // a smaller batch would hardly help
    return {"model.hidden", text + "the biggest: " + biggest_of(plan, [](const Buffer&) { return true; }) + "; make the layers narrower."};
  const int64_t fits = largest_batch(spec, model, batch, free_bytes - (needed - step));
  text += "a step of " + std::to_string(batch) + " rows takes " + bytes_text(step) + " of it (" +
          (spec.model.layers.empty() ? "biggest: " + biggest_buffers(plan) : "by layer: " + biggest_layers(plan)) + "); " + batch_advice(fits) + ".";
  return {fits > 0 ? "train.batch" : "model.hidden", std::move(text)};
}

// Upper bound of the memory of a step, for any loader. A caching pool also needs space for segments: multiples of 2 MiB
// that large blocks do not share.
int64_t bytes_in_step(const Plan& plan) {
  constexpr int64_t kSegment = 2 << 20;
  const bool pool = plan.spec.exec.allocator == Allocator::Caching;
  int64_t bytes = live_lower_bound(plan) + (pool ? kSegment : 0);
  for (const Buffer& b : plan.buffers) {
    if (b.role == Role::Batch) bytes += b.bytes();
    if (pool && lives_in_step(b) && b.bytes() > kSegment / 2) bytes += kSegment;
  }
  return bytes;
}

// Pools round up and keep memory that does not fit the next request. An arena takes exactly the planned size.
double share_for_steps(Allocator allocator) {
  return allocator == Allocator::Arena || allocator == Allocator::Direct ? 0.9 : 0.8;
}

}  // namespace

int64_t cpu_evaluation_rows(const Model& model) {
  constexpr int64_t kMostRows = 8192, kMostElements = 4 << 20;
  int64_t largest = 1;
  for (const NetworkLayer& l : model.layers)
    if (l.out.is_picture() || l.out.is_text()) largest = std::max(largest, l.out.elements());
  return std::clamp<int64_t>(kMostElements / largest, 1, kMostRows);
}

std::string biggest_buffers(const Plan& plan) { return biggest_of(plan, lives_in_step); }

int64_t largest_batch(const RunSpec& spec, const Model& model, int64_t below, int64_t free_bytes) {
  constexpr int64_t kRound = 64;
  const double most = share_for_steps(spec.exec.allocator) * static_cast<double>(free_bytes);
  int64_t fits = 0, too_large = below;
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    (static_cast<double>(bytes_in_step(step_plan(spec, model, middle))) <= most ? fits : too_large) = middle;
  }
  return fits < kRound ? fits : fits / kRound * kRound;
}

std::string batch_advice(int64_t batch) {
  return batch > 0 ? "a batch of " + std::to_string(batch) + " fits" : "no batch fits, make the layers narrower";
}

// Counts one copy of the state beside the executor's: the initial values, or values on their way to a checkpoint.
int64_t host_bytes_needed(const RunSpec& spec, const Model& model, const DataSize& data, bool on_gpu) {
  const int64_t state = state_bytes(spec, model);
  if (on_gpu) return state;
  int64_t gradient = 0;  // the CPU makes and uses these gradients one after another
  if (spec.exec.fusion != Fusion::Off)
    for (const Parameter& p : model.parameters) gradient = std::max(gradient, 4 * p.elements());
  const int64_t ranks = std::max<int64_t>(1, spec.exec.gpus);  // each rank holds the whole model
  return state + ranks * (state + gradient + training_bytes(spec, model, data) + evaluation_bytes(spec, model, data));
}

int64_t device_bytes_needed(const RunSpec& spec, const Model& model, const DataSize& data) {
  const int64_t set = spec.exec.loader == Loader::Resident ? set_bytes(data) : 0;
  return state_bytes(spec, model) + training_bytes(spec, model, data) + set;
}

Refusal out_of_memory(const RunSpec& spec, const Model& model, const DataSize& data, FreeMemory free) {
  const int64_t need = host_bytes_needed(spec, model, data, free.on_gpu());
  const std::string start =
      "The run needs " + bytes_text(need) + " of memory and " + bytes_text(free.host_bytes) + " are free; ";
  if (free.on_gpu()) return {"model.hidden", start + "make the layers narrower."};  // the batch is on the GPU
  return too_large(start, spec, model, data, free.host_bytes, need);
}

std::optional<Refusal> why_it_does_not_fit(const RunSpec& spec, const Model& model, const DataSize& data, FreeMemory free) {
  if (free.on_gpu()) {
    const int64_t need = device_bytes_needed(spec, model, data);
    const bool resident = spec.exec.loader == Loader::Resident;
    const std::string start = std::string(resident ? "The model and its data need " : "The model needs ") + bytes_text(need) +
                              " on the GPU, which has " + bytes_text(free.device_bytes) + "; ";
    if (need > free.device_bytes && resident && set_bytes(data) > need / 2)
      return Refusal{"exec.loader", start + "choose the pinned loader, which keeps the data on the host."};
    if (need > free.device_bytes) return too_large(start, spec, model, data, free.device_bytes, need);
  }
  if (host_bytes_needed(spec, model, data, free.on_gpu()) <= free.host_bytes) return {};
  return out_of_memory(spec, model, data, free);
}

}  // namespace ws
