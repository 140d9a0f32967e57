#include "profiling/recording/layouts/function_calls.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "profiling/recording/layouts/known_layouts.h"

namespace ws::prof {
namespace {

using Object = Interpreter::Object;

// Where an object of this type keeps the C function that calls it, or nullptr. The begin of a type is the same since 3.8.
PythonCall* call_slot(Object function) {
  constexpr size_t kOffsetInType = 56, kMost = 512;
  const char* const type = type_of(function);
  if (!type || type != dlsym(RTLD_DEFAULT, "PyFunction_Type")) return nullptr;
  intptr_t offset = 0;
  std::memcpy(&offset, type + kOffsetInType, sizeof offset);
  if (offset < 16 || offset >= static_cast<intptr_t>(kMost) || offset % 8 != 0) return nullptr;
  return reinterpret_cast<PythonCall*>(static_cast<char*>(function) + offset);
}

}  // namespace

const char* type_of(Object object) {
  constexpr size_t kType = 8;
  const char* type = nullptr;
  std::memcpy(&type, static_cast<const char*>(object) + kType, sizeof type);
  return type;
}

// Two functions have the same C function behind them, unless the layout is another one. Since 3.12 the interpreter has a
// function that changes it, and forgets the places where it calls this function in a shorter way.
bool watch_calls(Object function, Object other, PythonCall ours, PythonCall& before) {
  if (!why_not(Hook::PythonCalls, Interpreter::instance().version_text()).empty()) return false;
  PythonCall* const slot = call_slot(function);
  PythonCall* const usual = call_slot(other);
  if (!slot || !usual || !*slot || !*usual) return false;
  if (*slot == ours) return true;
  if (*slot != *usual) return false;
  before = *slot;
  Interpreter::instance().increase(function);
  if (const auto change = reinterpret_cast<void (*)(Object, PythonCall)>(dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall")))
    change(function, ours);
  else
    *slot = ours;
  return *slot == ours;
}

}  // namespace ws::prof
