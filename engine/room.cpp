#include "engine/room.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "engine/compile.h"
#include "engine/executor.h"

namespace ws {
namespace {

int64_t free_host_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  for (int64_t kib = 0; info >> key >> kib; std::getline(info, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return std::numeric_limits<int64_t>::max();
}

std::string gib(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

// Weights and the optimizer's state, in fp32.
int64_t state_bytes(const RunSpec& spec, const Model& model) {
  return model.parameter_count() * 4 * (1 + moments_of(spec.train.optimizer));
}

// The plan's buffers as an arena: no allocator needs less. Shadows are there for the whole run.
int64_t step_bytes(const Plan& compiled) {
  const Plan plan = place_memory(compiled, Allocator::Arena);
  int64_t bytes = plan.arena_bytes;
  for (const Buffer& b : plan.buffers)
    if (b.role == Role::Shadow) bytes += b.bytes();
  return bytes;
}

int64_t training_bytes(const RunSpec& spec, const Model& model, const data::Dataset& data) {
  const int64_t rows = data.train.rows, batch = spec.train.batch == 0 ? rows : std::min(spec.train.batch, rows);
  return step_bytes(fuse(build_plan(spec, model, batch), spec.exec.fusion));
}

// The CPU keeps the plans of its evaluations: of whole blocks of rows, and of the rest.
int64_t evaluation_bytes(const RunSpec& spec, const Model& model, const data::Dataset& data) {
  const int64_t rows = data.test.rows, rest = rows % kCpuEvaluationRows;
  int64_t bytes = 0;
  for (const int64_t part : {rows >= kCpuEvaluationRows ? kCpuEvaluationRows : 0, rest})
    if (part > 0) bytes += step_bytes(fuse(build_evaluation_plan(spec, model, part), spec.exec.fusion));
  return bytes;
}

int64_t set_bytes(const data::Dataset& data) { return (data.train.rows + data.test.rows) * (data.features + 1) * 4; }

}  // namespace

Room room_for(const RunSpec& spec) { return {free_host_bytes(), wants_cuda(spec) ? device_info().memory_bytes : 0}; }

// Beside what the executor holds, one copy of the state: the first values, or those on their way into a checkpoint.
int64_t host_bytes_needed(const RunSpec& spec, const Model& model, const data::Dataset& data) {
  const int64_t state = state_bytes(spec, model);
  if (wants_cuda(spec)) return state;
  int64_t gradient = 0;  // the CPU makes those that are used up at once one after another
  if (spec.exec.fusion != Fusion::Off)
    for (const Parameter& p : model.parameters) gradient = std::max(gradient, 4 * p.elements());
  return 2 * state + gradient + training_bytes(spec, model, data) + evaluation_bytes(spec, model, data);
}

int64_t device_bytes_needed(const RunSpec& spec, const Model& model, const data::Dataset& data) {
  const int64_t set = spec.exec.loader == Loader::Resident ? set_bytes(data) : 0;
  return state_bytes(spec, model) + training_bytes(spec, model, data) + set;
}

std::optional<std::string> why_no_room(const RunSpec& spec, const Model& model, const data::Dataset& data, Room room) {
  if (room.device_bytes > 0) {
    const int64_t need = device_bytes_needed(spec, model, data);
    const bool resident = spec.exec.loader == Loader::Resident;
    if (need > room.device_bytes)
      return std::string(resident ? "The model and its data need " : "The model needs ") + gib(need) +
             " on the GPU, which has " + gib(room.device_bytes) + "; " +
             (resident && set_bytes(data) > need / 2 ? "choose the pinned loader, which keeps the data on the host."
                                                     : "make the layers narrower or the batch smaller.");
  }
  const int64_t need = host_bytes_needed(spec, model, data);
  if (need <= room.host_bytes) return {};
  return "The run needs " + gib(need) + " of memory and " + gib(room.host_bytes) +
         " are free; make the layers narrower or the batch smaller.";
}

}  // namespace ws
