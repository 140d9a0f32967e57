// Marks that a program sets around its own work, so that a trace can be joined to it. Without a listener a mark costs
// one relaxed load.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ws::prof {

// Each meaning has the same colour everywhere.
enum class Meaning : uint8_t {
  Matrix,
  Pointwise,
  Loss,
  Optimizer,
  Copy,
  Allocation,
  Sync,
  Launch,
  Idle,
  Other,
  Communication,  // between GPUs
  Reduction,      // sums, norms, pooling; a new meaning comes last, because files store the numbers
};
constexpr size_t kMeanings = static_cast<size_t>(Meaning::Reduction) + 1;

struct CodeStack;

// The op of a span in a trace. The engine registers the ops of its plan. Tags are unique in the process.
struct OpInfo {
  std::string name;    // "dW1"
  std::string detail;  // "gemm dW1 = xᵀ·dz1"
  std::string layer;   // "fc1" or empty
  std::string phase;   // "backward"
  Meaning meaning = Meaning::Other;
  int64_t flops = 0;  // per execution
  int64_t bytes = 0;
  std::shared_ptr<const CodeStack> stack = nullptr;  // of a recorded program; nullptr: not known
};
using OpTag = uint16_t;  // 0 means: no op
constexpr OpTag kNoOp = 0;

enum class MemoryAction : uint8_t { Allocate, Free, Reserve, Release };
struct MemoryNote {
  MemoryAction action;
  uint64_t address;
  uint64_t bytes;
  OpTag op;
  const char* owner;  // "arena", "caching", ...; a string literal
};

// Receives the marks on the thread that sets them. The collectors implement it.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void step_begin(int64_t step) = 0;
  virtual void step_end() = 0;
  virtual void phase_begin(const char* name) = 0;
  virtual void phase_end() = 0;
  virtual void op_begin(OpTag op) = 0;
  virtual void op_end() = 0;
  virtual void memory(const MemoryNote& note) = 0;
  // This thread works for a step that another thread marks; -1: for none.
  virtual void step_joined(int64_t step) = 0;
  // This thread works for a rank of the training from now on; -1: for none.
  virtual void works_for(int rank) = 0;
  // A launch of a CUDA graph that runs `count` steps, beginning with `first`. Its ops are found by graph node.
  virtual void steps_launched(int64_t first, int64_t count) = 0;
  // All threads that share steps wait, and this step is next. Returns how many steps from it on may run before they wait
  // again: what is traced changes only while they wait.
  virtual int64_t steps_traced_alike(int64_t step) = 0;
};

// Registers ops and returns the tag of the first; the rest follow in order.
// Equal lists share their tags, and equal stacks their memory.
OpTag register_ops(std::vector<OpInfo> ops);
OpInfo op_info(OpTag op);
size_t registered_ops();

void set_listener(Listener* listener);  // nullptr: no listener
extern std::atomic<Listener*> g_listener;
inline Listener* listener() { return g_listener.load(std::memory_order_acquire); }

// True if this thread marks steps and phases. If threads share a step, only one of them does; the rest marks ops only, and
// say which step they work for.
inline bool& marks_steps() {
  thread_local bool marks = true;
  return marks;
}

// Rank of the training that this thread works for at the moment; -1: none. Several ranks may share a process.
inline int& rank_of_thread() {
  thread_local int rank = -1;
  return rank;
}

// Marks the work of this thread as work of a rank.
class RankScope {
 public:
  explicit RankScope(int rank) { enter(rank); }
  ~RankScope() { enter(-1); }
  RankScope(const RankScope&) = delete;
  RankScope& operator=(const RankScope&) = delete;

 private:
  static void enter(int rank) {
    rank_of_thread() = rank;
    if (Listener* here = listener()) here->works_for(rank);
  }
};

class OpScope {
 public:
  explicit OpScope(OpTag op) : listener_(listener()) {
    if (listener_) listener_->op_begin(op);
  }
  ~OpScope() {
    if (listener_) listener_->op_end();
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  Listener* listener_;
};

class StepScope {
 public:
  explicit StepScope(int64_t step) : listener_(listener()), marks_(marks_steps()) {
    if (listener_) marks_ ? listener_->step_begin(step) : listener_->step_joined(step);
  }
  ~StepScope() {
    if (listener_) marks_ ? listener_->step_end() : listener_->step_joined(-1);
  }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  Listener* listener_;
  bool marks_;
};

class PhaseScope {
 public:
  explicit PhaseScope(const char* name) : listener_(marks_steps() ? listener() : nullptr) {
    if (listener_) listener_->phase_begin(name);
  }
  ~PhaseScope() {
    if (listener_) listener_->phase_end();
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Listener* listener_;
};

inline void note_memory(const MemoryNote& note) {
  if (auto* l = listener()) l->memory(note);
}

}  // namespace ws::prof
