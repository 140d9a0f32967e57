// Functions that profiling/python/hook calls in a recorded Python program. Functions that mark ranges also exist as
// methods that the interpreter calls without ctypes: 0.05 µs instead of 0.14 µs per call. Nothing here throws or waits.
#include <dlfcn.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/launch_frames.h"
#include "profiling/recording/layouts/interpreter.h"
#include "profiling/recording/layouts/known_layouts.h"
#include "profiling/recording/module_calls.h"
#include "profiling/recording/optimizer_steps.h"
#include "profiling/recording/python_frames.h"
#include "profiling/recording/host_sampler.h"
#include "profiling/recording/torch_memory.h"
#include "profiling/recording/torch_observer.h"

namespace {

using ws::prof::Interpreter;
using ws::prof::kPythonRanges;
using ws::prof::OpTag;
using ws::prof::ProgramPhase;
using ws::prof::ProgramRanges;
using ws::prof::HostSampler;
using ws::prof::active_recorder;
using ws::prof::recorder;

std::mutex g_sampling;
bool g_sampling_over = false, g_only_native = false;
HostSampler* g_sampler = nullptr;  // never destroyed: a forked child does not have its thread

ws::prof::HostNotes* notes_in_capture() {
  ws::prof::ProgramSender* const sender = active_recorder();
  return sender ? &sender->notes() : nullptr;
}

std::string_view text_of(const char* text) { return text ? text : ""; }

template <class Work>
auto attempt(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception&) {  // out of memory for a new name: the program continues without it
    return decltype(work())();
  }
}

const Interpreter& python() { return Interpreter::instance(); }

void* nothing() {
  python().increase(python().none);
  return python().none;
}

OpTag tag_of(void* number) {
  const long value = python().as_long(number);
  if (value < 0) python().clear();
  return static_cast<OpTag>(value);
}

// Begins a range with the nearest line of the program.
void enter_at(void* place) {
  if (active_recorder())
    attempt([place] {
      ProgramRanges::instance().enter(tag_of(place), kPythonRanges, ws::prof::own_line_here());
      return true;
    });
}

void* push_at(void*, void* place) {
  enter_at(place);
  return nothing();
}

void* begin_backward(void*, void* place) {
  ws::prof::begin_phase(ProgramPhase::Backward);
  enter_at(place);
  return nothing();
}

void* end_backward(void*, void*) {
  ws::prof::end_phase(ProgramPhase::Backward);
  if (active_recorder()) ProgramRanges::instance().end_backward();
  if (active_recorder()) ProgramRanges::instance().leave(kPythonRanges);
  return nothing();
}

void* enter_optimizer(void*, void* optimizer) {
  ws::prof::enter_optimizer(optimizer);
  return nothing();
}

void* leave_optimizer(void*, void*) {
  ws::prof::leave_optimizer(false);
  return nothing();
}

void* push_module(void*, void* module) {
  if (active_recorder()) ws::prof::enter_module(module);
  return nothing();
}

void* push_text(void*, void* text) {
  const char* name = active_recorder() ? python().as_text(text) : nullptr;
  if (name)
    attempt([name] {
      ProgramRanges::instance().enter(name, kPythonRanges, ws::prof::own_line_here());
      return true;
    });
  else
    python().clear();
  return nothing();
}

void* pop(void*, void*) {
  if (active_recorder()) ProgramRanges::instance().leave(kPythonRanges);
  return nothing();
}

void* begin_step(void*, void*) {
  ws::prof::begin_program_step();
  return nothing();
}

void* end_step(void*, void*) {
  ws::prof::end_program_step();
  return nothing();
}

// The interpreter's own definition. Its layout is part of the stable ABI.
struct MethodDefinition {
  const char* name;
  void* (*function)(void*, void*);
  int flags;
  const char* description;
};
constexpr int kNoArguments = 4, kOneArgument = 8;
MethodDefinition g_methods[] = {{"push_module", push_module, kOneArgument, nullptr},
                                {"push_at", push_at, kOneArgument, nullptr},
                                {"push_text", push_text, kOneArgument, nullptr},
                                {"pop", pop, kNoArguments, nullptr},
                                {"begin_step", begin_step, kNoArguments, nullptr},
                                {"end_step", end_step, kNoArguments, nullptr},
                                {"begin_backward", begin_backward, kOneArgument, nullptr},
                                {"end_backward", end_backward, kNoArguments, nullptr},
                                {"enter_optimizer", enter_optimizer, kOneArgument, nullptr},
                                {"leave_optimizer", leave_optimizer, kNoArguments, nullptr}};

}  // namespace

namespace ws::prof {

// Asks the loader, not Interpreter: Python may be loaded later.
void sample_native_program() {
  const std::lock_guard one(g_sampling);
  if (g_sampling_over || g_sampler || dlsym(RTLD_DEFAULT, "PyCode_Type")) return;
  g_sampler = new HostSampler({.native = true, .notes = notes_in_capture}), g_only_native = true;
}

// A sampler that reads Python's names may wait for the interpreter's lock: the interpreter ends that one.
void end_native_samples() {
  const std::lock_guard one(g_sampling);
  if (g_only_native) g_sampler->stop();
}

}  // namespace ws::prof

#define WARPSIGHT_SHOWN extern "C" __attribute__((visibility("default")))

// Returns 1 if this process is recorded from now on.
WARPSIGHT_SHOWN int warpsight_begin() {
  ws::prof::begin_recording(false);
  return recorder() != nullptr;
}

// A capture range begins or ends. Does nothing if the whole program is recorded.
WARPSIGHT_SHOWN void warpsight_capture(int on) {
  attempt([on] {
    if (!recorder()) return 0;
    recorder()->capture(on != 0);
    return 1;
  });
}
WARPSIGHT_SHOWN int warpsight_records() { return active_recorder() != nullptr; }

// Returns the definition of a method for PyCFunction_NewEx, or nullptr if there is no such method or the interpreter
// does not export its functions.
WARPSIGHT_SHOWN void* warpsight_method(int number) {
  constexpr int kMethods = sizeof g_methods / sizeof *g_methods;
  return number >= 0 && number < kMethods && python().complete() ? &g_methods[number] : nullptr;
}

WARPSIGHT_SHOWN unsigned warpsight_place(const char* name, const char* path, const char* phase) {
  return attempt([=]() -> unsigned {
    if (!recorder()) return 0;
    ws::prof::OpInfo info;
    info.name = text_of(name), info.layer = text_of(path), info.phase = text_of(phase);
    return ProgramRanges::instance().place(std::move(info));
  });
}

WARPSIGHT_SHOWN int warpsight_torch_search(const char* version) { return recorder() && ws::prof::torch_search(text_of(version)); }
WARPSIGHT_SHOWN int warpsight_torch_observe(int ops) { return recorder() && ws::prof::torch_observe(ops != 0); }
WARPSIGHT_SHOWN int warpsight_torch_follow(const void* const* nodes, const char* version) {
  return recorder() && ws::prof::torch_follow(nodes, text_of(version));
}
WARPSIGHT_SHOWN int warpsight_torch_memory(const char* version) { return recorder() && ws::prof::torch_watch_memory(text_of(version)); }

// One sentence, or "" if the hook may be used. Valid until the thread's next call.
WARPSIGHT_SHOWN const char* warpsight_why_not(const char* hook, const char* version) {
  thread_local std::string text;
  const auto known = ws::prof::hook_named(text_of(hook));
  text = known ? ws::prof::why_not(*known, text_of(version)) : "";
  return text.c_str();
}

// The caller of these holds the interpreter's lock.
WARPSIGHT_SHOWN int warpsight_watch_modules(void* function, void* learn) {
  return attempt([=] { return recorder() && python().complete() && ws::prof::watch_modules(function, learn); });
}
WARPSIGHT_SHOWN void warpsight_forget_module(const void* module) { ws::prof::forget_module(module); }
WARPSIGHT_SHOWN void warpsight_learn_optimizers(void* learn, int ranges) { ws::prof::learn_optimizers(learn, ranges != 0); }
WARPSIGHT_SHOWN int warpsight_watch_optimizer(void* function) {
  return recorder() && python().complete() && ws::prof::watch_optimizer(function);
}
WARPSIGHT_SHOWN void warpsight_forget_leader() { ws::prof::forget_leader(); }
WARPSIGHT_SHOWN void warpsight_after_steps(void* then, int wanted) { ws::prof::after_steps(then, wanted != 0); }
WARPSIGHT_SHOWN int64_t warpsight_steps() { return ws::prof::program_steps(); }

WARPSIGHT_SHOWN void warpsight_scalar(const char* name, double value, int64_t step) {
  attempt([=] {
    if (!recorder()) return 0;
    recorder()->notes().scalar(text_of(name), value, step);
    return 1;
  });
}

WARPSIGHT_SHOWN void warpsight_fact(const char* key, const char* value) {
  attempt([=] {
    if (!recorder()) return 0;
    recorder()->notes().fact(text_of(key), text_of(value));
    return 1;
  });
}

// Three nested calls, innermost first, with three numbers each: frame, code, last instruction. The caller holds the
// interpreter's lock.
WARPSIGHT_SHOWN int warpsight_learn_frames(const int64_t* said, unsigned long thread, int minor_version, const char* others,
                                           int lines) {
  return attempt([=] {
    ws::prof::SaidFrame frames[3];
    for (int i = 0; i < 3; ++i)
      frames[i] = {reinterpret_cast<const char*>(said[3 * i]), reinterpret_cast<const char*>(said[3 * i + 1]),
                   static_cast<long>(said[3 * i + 2])};
    if (!recorder() || !ws::prof::learn_frames(frames, thread, minor_version, std::string(text_of(others)))) return 0;
    if (lines) {
      ProgramRanges::instance().find_lines(ws::prof::own_line_here);
      ProgramRanges::instance().find_native_frames(ws::prof::with_native_frames);
    }
    return 1;
  });
}

// Python functions: `thread_name` is called with the number of a thread, `learned` after code was seen for the first time.
// `native`: with native frames.
WARPSIGHT_SHOWN void warpsight_sampler_start(void* thread_name, void* learned, int native) {
  const std::lock_guard one(g_sampling);
  if (g_sampling_over || g_sampler || !recorder() || !python().has_frames()) return;
  python().increase(thread_name), python().increase(learned);
  const auto name_of = [thread_name](unsigned long thread) {
    const int lock = python().lock();
    void* name = python().call(thread_name, "k", thread);
    const char* text = name ? python().as_text(name) : nullptr;
    std::string copy = text ? text : "thread";
    if (!text) python().clear();
    if (name) python().decrease(name);
    python().unlock(lock);
    return copy;
  };
  const auto report_learned = [learned] {
    const int lock = python().lock();
    if (void* none = python().call(learned, nullptr))
      python().decrease(none);
    else
      python().clear();
    python().unlock(lock);
  };
  g_sampler = new HostSampler({.thread_name = name_of, .learned = report_learned, .native = native != 0, .notes = notes_in_capture});
}

// Call it before the interpreter ends, without the interpreter's lock.
WARPSIGHT_SHOWN void warpsight_sampler_stop() {
  if (ws::prof::in_forked_child()) return;
  ws::prof::stop_reading_names();
  const std::lock_guard one(g_sampling);
  g_sampling_over = true;
  if (g_sampler) g_sampler->stop();
}
