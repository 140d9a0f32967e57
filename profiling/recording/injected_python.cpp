// What profiling/python/hook calls in a recorded Python program. The functions that mark ranges are also there as methods
// that the interpreter calls without ctypes: 0.05 µs instead of 0.14 µs a call. Nothing here throws, and nothing waits.
#include <dlfcn.h>

#include <cstdio>
#include <cstdint>
#include <exception>
#include <string_view>

#include "profiling/base/clock.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/injected.h"

namespace {

using ws::prof::OpTag;
using ws::prof::ProgramRanges;
using ws::prof::recorder;

constexpr uint64_t kPython = 1, kBackward = 2;  // domains of ranges; NVTX has addresses

std::string_view text_of(const char* text) { return text ? text : ""; }

template <class Work>
auto attempt(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception&) {  // no room for one more name: the program goes on without it
    return decltype(work())();
  }
}

// The interpreter's own functions, found where it is loaded: no header of it is needed, whatever its version.
struct Interpreter {
  using Object = void*;
  long (*as_long)(Object) = find<long (*)(Object)>("PyLong_AsLong");
  const char* (*as_text)(Object) = find<const char* (*)(Object)>("PyUnicode_AsUTF8");
  void (*increase)(Object) = find<void (*)(Object)>("Py_IncRef");
  void (*clear)() = find<void (*)()>("PyErr_Clear");
  Object none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
  bool complete() const { return as_long && as_text && increase && clear && none; }

 private:
  template <class Function>
  static Function find(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
};
const Interpreter& python() {
  static const Interpreter interpreter;
  return interpreter;
}

void* nothing() {
  python().increase(python().none);
  return python().none;
}

OpTag tag_of(void* number) {
  const long value = python().as_long(number);
  if (value < 0) python().clear();
  return static_cast<OpTag>(value);
}

void* push(void*, void* place) {
  if (recorder()) ProgramRanges::instance().push(tag_of(place), kPython);
  return nothing();
}

void* push_text(void*, void* text) {
  const char* name = recorder() ? python().as_text(text) : nullptr;
  if (name)
    attempt([name] { return ProgramRanges::instance().push(name, kPython), true; });
  else
    python().clear();
  return nothing();
}

void* pop(void*, void*) {
  if (recorder()) ProgramRanges::instance().pop(kPython);
  return nothing();
}

void* at_line(void*, void* line) {
  if (recorder()) ProgramRanges::instance().at_line(tag_of(line));
  return nothing();
}

void* switch_backward(void*, void* place) {
  if (recorder()) ProgramRanges::instance().switch_to(tag_of(place), kBackward);
  return nothing();
}

// As the interpreter defines it; the layout is part of its stable interface.
struct MethodDefinition {
  const char* name;
  void* (*function)(void*, void*);
  int flags;
  const char* description;
};
constexpr int kNoArguments = 4, kOneArgument = 8;
MethodDefinition g_methods[] = {{"push", push, kOneArgument, nullptr},
                                {"push_text", push_text, kOneArgument, nullptr},
                                {"pop", pop, kNoArguments, nullptr},
                                {"at_line", at_line, kOneArgument, nullptr},
                                {"switch_backward", switch_backward, kOneArgument, nullptr}};

}  // namespace

#define WARPSCOPE_SHOWN extern "C" __attribute__((visibility("default")))

// 1 if this process is recorded from here on.
WARPSCOPE_SHOWN int warpscope_begin() {
  try {
    ws::prof::begin_recording(false);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "warpscope: nothing is recorded: %s\n", failure.what());
  }
  return recorder() != nullptr;
}

// The definition of the method with this number, for PyCFunction_NewEx; nullptr: no such method, or an interpreter that
// does not show its functions.
WARPSCOPE_SHOWN void* warpscope_method(int number) {
  constexpr int kMethods = sizeof g_methods / sizeof *g_methods;
  return number >= 0 && number < kMethods && python().complete() ? &g_methods[number] : nullptr;
}

WARPSCOPE_SHOWN unsigned warpscope_place(const char* name, const char* path, const char* phase) {
  return attempt([=]() -> unsigned {
    if (!recorder()) return 0;
    ws::prof::OpInfo info;
    info.name = text_of(name), info.layer = text_of(path), info.phase = text_of(phase);
    return ProgramRanges::instance().place(std::move(info));
  });
}

WARPSCOPE_SHOWN unsigned warpscope_line(const char* function, const char* where) {
  return attempt([=]() -> unsigned {
    return recorder() ? ProgramRanges::instance().line(text_of(function), text_of(where)) : 0;
  });
}

WARPSCOPE_SHOWN void warpscope_end_backward() { ProgramRanges::instance().end_switched(); }

WARPSCOPE_SHOWN void warpscope_step(int64_t number) {
  attempt([=] { return recorder() ? ProgramRanges::instance().step(number), 1 : 0; });
}

WARPSCOPE_SHOWN void warpscope_scalar(const char* name, double value, int64_t step) {
  attempt([=] { return recorder() ? recorder()->notes().scalar(text_of(name), value, step), 1 : 0; });
}

WARPSCOPE_SHOWN unsigned warpscope_stack(const char* text) {
  return attempt([=]() -> unsigned { return recorder() ? recorder()->notes().stack(text_of(text)) : 0; });
}

WARPSCOPE_SHOWN void warpscope_sample(const char* thread, unsigned stack, int64_t begin, int64_t end) {
  attempt([=] { return recorder() ? recorder()->notes().sample(text_of(thread), stack, begin, end), 1 : 0; });
}

WARPSCOPE_SHOWN void warpscope_fact(const char* key, const char* value) {
  attempt([=] { return recorder() ? recorder()->notes().fact(text_of(key), text_of(value)), 1 : 0; });
}

WARPSCOPE_SHOWN int64_t warpscope_now() { return ws::prof::steady_ns(); }
