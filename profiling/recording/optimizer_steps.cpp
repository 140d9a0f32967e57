#include "profiling/recording/optimizer_steps.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/layouts/function_calls.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/module_calls.h"
#include "profiling/recording/python_frames.h"

namespace ws::prof {
namespace {

using Object = Interpreter::Object;

struct Learned {
  Object function = nullptr;
  bool ranges = false;
  std::mutex mutex;  // of the places. Not held while Python is called
  std::unordered_map<const char*, OpTag> places;  // by class
} g_learned;
struct Wanted {
  std::atomic<Object> then{nullptr};
  std::atomic<bool> now{false};
} g_after;
std::atomic<Object> g_leader{nullptr};
std::atomic<bool> g_begun{false}, g_said{false};
std::atomic<int64_t> g_steps{0};
PythonCall g_step_call = nullptr;

// Calls of step() that are open on this thread, the innermost last. Calls of an open optimizer are not recorded again.
struct Open {
  std::array<Object, 8> optimizers;
  size_t depth;
  bool has(Object optimizer) const {
    for (size_t i = 0; i < depth && i < optimizers.size(); ++i)
      if (optimizers[i] == optimizer) return true;
    return false;
  }
};
thread_local Open t_open;

// Asks Python, which watches the life of the leader and keeps the classes.
OpTag learn(Object optimizer) {
  const Interpreter& python = Interpreter::instance();
  const Object number = g_learned.function ? python.call(g_learned.function, "O", optimizer) : nullptr;
  const long place = number ? python.as_long(number) : -1;
  if (place < 0) python.clear();
  if (number) python.decrease(number);
  const std::lock_guard lock(g_learned.mutex);
  return g_learned.places[type_of(optimizer)] = static_cast<OpTag>(place < 0 ? kNoOp : place);
}

OpTag optimizer_place(Object optimizer) {
  {
    const std::lock_guard lock(g_learned.mutex);
    const auto at = g_learned.places.find(type_of(optimizer));
    if (at != g_learned.places.end()) return at->second;
  }
  return learn(optimizer);
}

void end_step() {
  const int64_t number = g_steps.fetch_add(1, std::memory_order_relaxed);
  g_begun.store(true, std::memory_order_relaxed);
  if (active_recorder()) ProgramRanges::instance().step(number);
}

void report_after_step() {
  const Object then = g_after.then.load(std::memory_order_relaxed);
  if (!then || !g_after.now.load(std::memory_order_relaxed)) return;
  const Interpreter& python = Interpreter::instance();
  if (const Object none = python.call(then, nullptr))
    python.decrease(none);
  else
    python.clear();
}

Object step_called(Object function, Object const* arguments, size_t count, Object names) {
  const bool recorded = positional_arguments(count) > 0;
  if (recorded) enter_optimizer(arguments[0]);
  const Object result = g_step_call(function, arguments, count, names);
  if (recorded) leave_optimizer(!result);
  return result;
}

}  // namespace

void learn_optimizers(void* learn, bool ranges) {
  Interpreter::instance().increase(learn);
  g_learned.function = learn, g_learned.ranges = ranges;
}

void forget_leader() { g_leader.store(nullptr, std::memory_order_relaxed); }

bool watch_optimizer(void* function) { return watch_calls(function, g_learned.function, step_called, g_step_call); }

void enter_optimizer(void* optimizer) {
  Open& open = t_open;
  const bool again = open.has(optimizer);
  if (const size_t at = open.depth++; at < open.optimizers.size()) open.optimizers[at] = again ? nullptr : optimizer;
  if (again) return;
  if (g_learned.ranges) begin_phase(ProgramPhase::Optimizer);
  try {
    Object nobody = nullptr;
    const bool leads = !g_leader.load(std::memory_order_relaxed) && g_leader.compare_exchange_strong(nobody, optimizer);
    if (leads) learn(optimizer);
    if (g_learned.ranges && active_recorder()) ProgramRanges::instance().enter(optimizer_place(optimizer), kPythonRanges, own_line_here());
  } catch (const std::exception&) {  // out of memory: the program continues without this range
  }
}

void leave_optimizer(bool failed) {
  Open& open = t_open;
  if (open.depth == 0 || --open.depth >= open.optimizers.size()) return;
  const Object optimizer = open.optimizers[open.depth];
  if (!optimizer) return;
  if (g_learned.ranges) {
    end_phase(ProgramPhase::Optimizer);
    if (active_recorder()) ProgramRanges::instance().leave(kPythonRanges);
  }
  if (optimizer != g_leader.load(std::memory_order_relaxed) || g_said.load(std::memory_order_relaxed)) return;
  end_step();
  if (!failed) report_after_step();
}

void begin_program_step() {
  if (!g_begun.exchange(true, std::memory_order_relaxed) && active_recorder()) ProgramRanges::instance().step(-1);
}

void end_program_step() {
  g_said.store(true, std::memory_order_relaxed);
  end_step();
}

int64_t program_steps() { return g_steps.load(std::memory_order_relaxed); }

void after_steps(void* then, bool wanted) {
  if (g_after.then.exchange(then, std::memory_order_relaxed) != then) Interpreter::instance().increase(then);
  g_after.now.store(wanted, std::memory_order_relaxed);
}

}  // namespace ws::prof
