#include "profiling/recording/module_calls.h"

#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/layouts/function_calls.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/layouts/interpreter.h"

namespace ws::prof {
namespace {

using Object = Interpreter::Object;

constexpr int kPhases = 3;
std::mutex g_mutex;  // of the places. Not held while Python is called
std::unordered_map<const void*, std::array<OpTag, kPhases>> g_places;
std::array<std::atomic<int>, kPhases> g_open{};  // phases that are open now
Object g_learn = nullptr;
PythonCall g_call = nullptr;

int phase_now() {
  if (g_open[static_cast<int>(ProgramPhase::Backward)] > 0) return static_cast<int>(ProgramPhase::Backward);
  return static_cast<int>(g_open[static_cast<int>(ProgramPhase::Optimizer)] > 0 ? ProgramPhase::Optimizer : ProgramPhase::Forward);
}

// Asks Python. Naming a module may forget places of others, so the place is kept afterwards.
OpTag learn_place(Object module, int phase) {
  const Interpreter& python = Interpreter::instance();
  Object number = g_learn ? python.call(g_learn, "Oi", module, phase) : nullptr;
  const long place = number ? python.as_long(number) : -1;
  if (place < 0) python.clear();
  if (number) python.decrease(number);
  if (place <= 0) return kNoOp;
  const std::lock_guard lock(g_mutex);
  return g_places[module][static_cast<size_t>(phase)] = static_cast<OpTag>(place);
}

OpTag place_of(Object module) {
  const int phase = phase_now();
  {
    const std::lock_guard lock(g_mutex);
    const auto at = g_places.find(module);
    if (at != g_places.end() && at->second[static_cast<size_t>(phase)] != kNoOp) return at->second[static_cast<size_t>(phase)];
  }
  return learn_place(module, phase);
}

Object module_called(Object function, Object const* arguments, size_t count, Object names) {
  const bool recorded = active_recorder() && positional_arguments(count) > 0;
  if (recorded) enter_module(arguments[0]);
  Object result = g_call(function, arguments, count, names);
  if (recorded) leave_module();
  return result;
}

}  // namespace

bool watch_modules(Object function, Object learn) {
  Interpreter::instance().increase(learn), g_learn = learn;
  return watch_calls(function, learn, module_called, g_call);
}

void forget_module(const void* module) {
  const std::lock_guard lock(g_mutex);
  g_places.erase(module);
}

void enter_module(Object module) {
  OpTag place = kNoOp;
  try {
    place = place_of(module);
  } catch (const std::exception&) {  // out of memory: the program continues without this place
  }
  try {
    ProgramRanges::instance().enter(place, kPythonRanges);
  } catch (const std::exception&) {
  }
}

void leave_module() { ProgramRanges::instance().leave(kPythonRanges); }

void begin_phase(ProgramPhase phase) { ++g_open[static_cast<size_t>(phase)]; }
void end_phase(ProgramPhase phase) { --g_open[static_cast<size_t>(phase)]; }

}  // namespace ws::prof
