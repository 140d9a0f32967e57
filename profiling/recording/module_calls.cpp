#include "profiling/recording/module_calls.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/interpreter.h"

namespace ws::prof {
namespace {

using Object = Interpreter::Object;
using Call = Object (*)(Object function, Object const* arguments, size_t count, Object names);

constexpr int kPhases = 3;
std::mutex g_mutex;  // of the places. Not held while Python is called
std::unordered_map<const void*, std::array<OpTag, kPhases>> g_places;
std::array<std::atomic<int>, kPhases> g_open{};  // phases that are open now
Object g_learn = nullptr;
Call g_call = nullptr;

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
  constexpr size_t kFlag = size_t{1} << (8 * sizeof(size_t) - 1);  // the interpreter's own, not part of the count
  const bool heard = hearing() && (count & ~kFlag) > 0;
  if (heard) enter_module(arguments[0]);
  Object result = g_call(function, arguments, count, names);
  if (heard) leave_module();
  return result;
}

// Where an object of this type keeps the C function that calls it, or nullptr. The begin of a type is the same since 3.8.
Call* call_slot(Object function) {
  constexpr size_t kType = 8, kOffsetInType = 56, kMost = 512;
  const char* type = nullptr;
  std::memcpy(&type, static_cast<const char*>(function) + kType, sizeof type);
  if (type != dlsym(RTLD_DEFAULT, "PyFunction_Type")) return nullptr;
  intptr_t offset = 0;
  std::memcpy(&offset, type + kOffsetInType, sizeof offset);
  if (offset < 16 || offset >= static_cast<intptr_t>(kMost) || offset % 8 != 0) return nullptr;
  return reinterpret_cast<Call*>(static_cast<char*>(function) + offset);
}

}  // namespace

// Two functions have the same C function behind them, unless the layout is another one.
bool hear_modules(Object function, Object learn) {
  Call* const slot = call_slot(function);
  Call* const other = call_slot(learn);
  const Interpreter& python = Interpreter::instance();
  python.increase(learn), g_learn = learn;
  if (!slot || !other || !*slot || *slot != *other || *slot == module_called) return false;
  g_call = *slot;
  python.increase(function);
  *slot = module_called;
  return true;
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
