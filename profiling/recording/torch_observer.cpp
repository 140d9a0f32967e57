#include "profiling/recording/torch_observer.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/layouts/known_layouts.h"
#include "profiling/recording/layouts/torch_layout.h"
#include "profiling/recording/loaded_libraries.h"

namespace ws::prof {
namespace {

constexpr uint64_t kOps = 3;  // domain of these ranges

struct Torch {
  uint64_t (*add)(TorchCallback) = nullptr;
  void (*remove)(uint64_t) = nullptr;
  const char* (*name)(const char* function) = nullptr;
  uint64_t (*sequence)() = nullptr;
  bool complete() const { return add && remove && name && sequence; }
};
Torch g_torch;
std::atomic<size_t> g_sequence_at{0};  // offset of the sequence number in a function object; 0: not known yet
uint64_t g_handle = 0;

bool load() {
  const auto find = [](auto& function, const char* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(loaded_function(kTorchLibrary, symbol));
  };
  find(g_torch.add, kTorchAdd);
  find(g_torch.remove, kTorchRemove);
  find(g_torch.name, kTorchName);
  find(g_torch.sequence, kTorchSequence);
  return g_torch.complete();
}

TorchSequenceSearch g_search;

int64_t sequence_of(const char* function) {
  int64_t number = -1;
  std::memcpy(&number, function + g_sequence_at.load(std::memory_order_relaxed), sizeof number);
  return number;
}

std::unique_ptr<TorchContext> searches(const char* function) {
  if (g_sequence_at == 0 && std::strcmp(g_torch.name(function), "aten::mul") == 0) g_search.see(function, g_torch.sequence());
  return nullptr;
}

// These functions must not throw: PyTorch would abort the program's op.
std::unique_ptr<TorchContext> op_begins(const char* function) noexcept {
  try {
    if (!active_recorder()) return nullptr;
    ProgramRanges::instance().push_op(g_torch.name(function), sequence_of(function), kOps);
  } catch (const std::exception&) {  // out of memory for a new name
  }
  return nullptr;
}

void op_ends(const char*, void*) noexcept {
  if (active_recorder()) ProgramRanges::instance().pop(kOps);
}

void backward_begins(int64_t number) noexcept {
  try {
    if (active_recorder() && number >= 0) ProgramRanges::instance().backward_reaches(number);
  } catch (const std::exception&) {
  }
}

std::unique_ptr<TorchContext> backward_observed(const char* function) noexcept {
  backward_begins(sequence_of(function));
  return nullptr;
}

TorchEvaluate g_evaluate = nullptr;
size_t g_node_sequence_at = 0;

void evaluates(void* engine, void* task, const char* node, void* inputs, const void* queue) {
  int64_t number = -1;
  std::memcpy(&number, node + g_node_sequence_at, sizeof number);
  backward_begins(number);
  g_evaluate(engine, task, node, inputs, queue);
}

TorchCallback callback(decltype(TorchCallback::begins) begins, decltype(TorchCallback::ends) ends) {
  TorchCallback made{begins, ends};
  made.scopes.fill(true);
  return made;
}

}  // namespace

bool torch_search(std::string_view version) {
  if (g_handle != 0 || !why_not(Hook::TorchOps, version).empty() || !load()) return false;
  g_handle = g_torch.add(callback(searches, nullptr));
  return true;
}

bool torch_observe(bool ops) {
  if (g_handle != 0) g_torch.remove(std::exchange(g_handle, 0));
  if (g_sequence_at == 0) g_sequence_at = g_search.place();
  if (g_sequence_at == 0) return false;
  ProgramRanges::instance().follow_sequence(g_torch.sequence);
  TorchCallback made = ops ? callback(op_begins, op_ends) : callback(backward_observed, nullptr);
  for (size_t scope = 0; scope < made.scopes.size(); ++scope) made.scopes[scope] = ops || scope == kTorchBackwardScope;
  g_handle = g_torch.add(made);
  return true;
}

bool torch_follow(const void* const* nodes, std::string_view version) {
  if (g_evaluate || !why_not(Hook::TorchBackward, version).empty() || !load()) return g_evaluate != nullptr;
  const size_t place = torch_node_sequence_place(nodes, g_torch.sequence());
  void* const found = place ? loaded_function(kTorchLibrary, kTorchEvaluate) : nullptr;
  if (!found) return false;
  g_node_sequence_at = place, g_evaluate = reinterpret_cast<TorchEvaluate>(found);
  ProgramRanges::instance().follow_sequence(g_torch.sequence);
  if (redirect_calls(kTorchEvaluate, reinterpret_cast<const void*>(evaluates)) > 0) return true;
  g_evaluate = nullptr;
  return false;
}

}  // namespace ws::prof
