#include "profiling/recording/torch_observer.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/loaded_libraries.h"

namespace ws::prof {
namespace {

constexpr uint64_t kOps = 3;  // domain of these ranges

// As declared by PyTorch (ATen/record_function.h), identical from 1.13 to 2.11.
struct Context {
  virtual ~Context() = default;
};
struct Callback {
  std::unique_ptr<Context> (*begins)(const char* function);
  void (*ends)(const char* function, void* context);
  double probability = 1;
  std::array<bool, 10> scopes{};
  bool needs_inputs = false, needs_outputs = false, needs_ids = false;
};
static_assert(sizeof(Callback) == 40);
constexpr size_t kBackwardScope = 1, kFollowedNodes = 3;

struct Torch {
  uint64_t (*add)(Callback) = nullptr;
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
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(loaded_function("libtorch_cpu.so", symbol));
  };
  find(g_torch.add, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
  find(g_torch.remove, "_ZN2at14removeCallbackEm");
  find(g_torch.name, "_ZNK2at14RecordFunction4nameEv");
  find(g_torch.sequence, "_ZN2at15sequence_number4peekEv");
  return g_torch.complete();
}

// The offset of the sequence number depends on the PyTorch build. We observe two ops that carry the next number. The
// offset where both match is the right one.
class Search {
 public:
  void see(const char* function) {
    if (std::strcmp(g_torch.name(function), "aten::mul") != 0) return;
    const uint64_t now = g_torch.sequence();
    for (size_t i = 0; i < kWords; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, function + kFirst + 8 * i, sizeof word);
      agree_[i] = (seen_ == 0 || agree_[i]) && word == now;
    }
    moved_ |= seen_ > 0 && now != last_;
    last_ = now, ++seen_;
  }
  size_t place() const {
    size_t found = 0;
    for (size_t i = 0; i < kWords; ++i)
      if (agree_[i]) found = found == 0 ? kFirst + 8 * i : SIZE_MAX;
    return moved_ && seen_ >= 2 && found != SIZE_MAX ? found : 0;
  }

 private:
  static constexpr size_t kFirst = 112, kWords = 14;  // words searched in an object of more than 300 bytes
  std::array<bool, kWords> agree_{};
  uint64_t last_ = 0;
  int seen_ = 0;
  bool moved_ = false;
};
Search g_search;

int64_t sequence_of(const char* function) {
  int64_t number = -1;
  std::memcpy(&number, function + g_sequence_at.load(std::memory_order_relaxed), sizeof number);
  return number;
}

std::unique_ptr<Context> searches(const char* function) {
  if (g_sequence_at == 0) g_search.see(function);
  return nullptr;
}

// These functions must not throw: PyTorch would abort the program's op.
std::unique_ptr<Context> op_begins(const char* function) noexcept {
  try {
    if (!hearing()) return nullptr;
    ProgramRanges::instance().push_op(g_torch.name(function), sequence_of(function), kOps);
  } catch (const std::exception&) {  // out of memory for a new name
  }
  return nullptr;
}

void op_ends(const char*, void*) noexcept {
  if (hearing()) ProgramRanges::instance().pop(kOps);
}

void backward_begins(int64_t number) noexcept {
  try {
    if (hearing() && number >= 0) ProgramRanges::instance().backward_reaches(number);
  } catch (const std::exception&) {
  }
}

std::unique_ptr<Context> backward_observed(const char* function) noexcept {
  backward_begins(sequence_of(function));
  return nullptr;
}

// Autograd's engine evaluates one backward function. All arguments are addresses.
using Evaluate = void (*)(void* engine, void* task, const char* node, void* inputs, const void* queue);
Evaluate g_evaluate = nullptr;
size_t g_node_sequence_at = 0;

void evaluates(void* engine, void* task, const char* node, void* inputs, const void* queue) {
  int64_t number = -1;
  std::memcpy(&number, node + g_node_sequence_at, sizeof number);
  backward_begins(number);
  g_evaluate(engine, task, node, inputs, queue);
}

// The offset at which the nodes carry the last three sequence numbers.
size_t node_sequence_place(const void* const* nodes) {
  constexpr size_t kBytes = 96;
  const uint64_t next = g_torch.sequence();
  for (size_t offset = 8; offset < kBytes; offset += 8) {
    bool all = true;
    for (size_t i = 0; i < kFollowedNodes && all; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(nodes[i]) + offset, sizeof word);
      all = word + kFollowedNodes - i == next;
    }
    if (all) return offset;
  }
  return 0;
}

Callback callback(decltype(Callback::begins) begins, decltype(Callback::ends) ends) {
  Callback made{begins, ends};
  made.scopes.fill(true);
  return made;
}

}  // namespace

bool torch_search() {
  if (g_handle != 0 || !load()) return false;
  g_handle = g_torch.add(callback(searches, nullptr));
  return true;
}

bool torch_observe(bool ops) {
  if (g_handle != 0) g_torch.remove(std::exchange(g_handle, 0));
  if (g_sequence_at == 0) g_sequence_at = g_search.place();
  if (g_sequence_at == 0) return false;
  ProgramRanges::instance().follow_sequence(g_torch.sequence);
  Callback made = ops ? callback(op_begins, op_ends) : callback(backward_observed, nullptr);
  for (size_t scope = 0; scope < made.scopes.size(); ++scope) made.scopes[scope] = ops || scope == kBackwardScope;
  g_handle = g_torch.add(made);
  return true;
}

bool torch_follow(const void* const* nodes) {
  constexpr const char* kSymbol =
      "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferE"
      "RKS2_INS0_10ReadyQueueEE";
  if (g_evaluate || !load()) return g_evaluate != nullptr;
  const size_t place = node_sequence_place(nodes);
  void* const found = place ? loaded_function("libtorch_cpu.so", kSymbol) : nullptr;
  if (!found) return false;
  g_node_sequence_at = place, g_evaluate = reinterpret_cast<Evaluate>(found);
  ProgramRanges::instance().follow_sequence(g_torch.sequence);
  if (redirect_calls(kSymbol, reinterpret_cast<const void*>(evaluates)) > 0) return true;
  g_evaluate = nullptr;
  return false;
}

}  // namespace ws::prof
