#include "profiling/recording/nccl_hooks.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "profiling/collectors/nccl_calls.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/layouts/known_layouts.h"
#include "profiling/recording/layouts/nccl_layout.h"
#include "profiling/recording/loaded_libraries.h"
#include "profiling/recording/nccl_timer.h"
#include "profiling/recording/profiler_calls.h"
#include "profiling/recording/record_keys.h"

namespace ws::prof {
namespace {

constexpr int kSuccess = 0;
constexpr size_t kMostInGroup = 16;  // communicators; more of them are not timed

NcclTimer& timer() {
  static auto* timer = new NcclTimer;  // never destroyed: the program calls until the process ends
  return *timer;
}

// Calls between ncclGroupStart() and ncclGroupEnd() begin when the group ends: one kernel for each communicator.
struct Group {
  struct Member {
    void *communicator, *stream;
  };
  int depth;
  size_t members;
  std::array<Member, kMostInGroup> member;
};
thread_local Group t_group;

bool is_recorded() { return timer().active() && active_recorder(); }

// The default stream belongs to the context that is current, which in a group need not be the communicator's.
bool is_default_stream(const void* stream) { return reinterpret_cast<uintptr_t>(stream) <= CudaEvents::kLastDefaultStream; }

void join_group(void* communicator, void* stream) {
  Group& group = t_group;
  for (size_t i = 0; i < group.members; ++i)
    if (group.member[i].communicator == communicator) return;
  if (group.members < kMostInGroup) group.member[group.members] = {communicator, stream};
  ++group.members;
}

std::atomic<bool> g_unseen{false}, g_captured{false}, g_untimed{false};

void note_once(std::atomic<bool>& noted, const char* key, const char* sentence) {
  if (noted.exchange(true, std::memory_order_relaxed)) return;
  if (ProgramSender* sender = recorder()) sender->notes().fact(key, sentence);
}

void note_captures() {
  if (timer().saw_captures())
    note_once(g_captured, kCollectivesInGraphs,
              "Collectives in CUDA graphs are not seen at level collectives; record with --trace kernels to see them.");
}

// Calls that return before they are launched give another result than success. `first`: the work of the first member.
template <class Real>
int end_group(Real real, NcclWork* first = nullptr) {
  Group& group = t_group;
  const size_t members = std::exchange(group.members, 0);
  std::array<NcclTimer::Call, kMostInGroup> calls{};
  const bool timed = members > 0 && members <= kMostInGroup;
  bool all = timed || members == 0;
  for (size_t i = 0; timed && i < members; ++i) {
    const bool on_known_gpu = members == 1 || !is_default_stream(group.member[i].stream);
    if (on_known_gpu) calls[i] = timer().begin_call(group.member[i].stream);
    all = all && on_known_gpu;
  }
  if (!all)
    note_once(g_untimed, kCollectivesUntimed,
              "Some groups of NCCL calls were not timed: of several communicators in one group, level collectives times up to 16, "
              "and none on a default stream; record with --trace graph to see them.");
  const int result = real();
  NcclCalls::Works works = NcclCalls::instance().release();
  if (first) *first = works[0];
  for (size_t i = 0; timed && i < members; ++i)
    result == kSuccess ? timer().end_call(calls[i], works[i]) : timer().forget_call(calls[i]);
  return result;
}

// What a call does, as its ranges said of an earlier one that differs in the number of elements only. A program calls once
// in a millisecond or so, and then all that a call touches has left the caches: our own code took 5 µs per call when it saw
// the ranges and put the text together each time, and takes 2 (on an H100's host).
struct Kind {
  const void* communicator;
  size_t function;
  int type, peer;
  uint64_t communicators;  // value of g_communicators
  uint64_t element_bytes;
  uint32_t text;
};
constexpr size_t kKinds = 8;
struct Kinds {
  std::array<Kind, kKinds> known;
  size_t next;
};
thread_local Kinds t_kinds;
std::atomic<uint64_t> g_communicators{1};  // changes when one is made or ends: another one may have its address

struct Called {
  size_t function;
  void *communicator, *stream;
  size_t elements;
  int type;
  int peer;  // of a message, else 0
};

const Kind* known_kind(const Called& called) {
  const uint64_t communicators = g_communicators.load(std::memory_order_acquire);
  for (const Kind& kind : t_kinds.known)
    if (kind.communicator == called.communicator && kind.function == called.function && kind.type == called.type && kind.peer == called.peer &&
        kind.communicators == communicators)
      return &kind;
  return nullptr;
}

void learn(const Called& called, uint64_t communicators, const NcclWork& work) {
  if (!work.any() || called.elements == 0 || work.bytes % called.elements != 0) return;
  Kinds& kinds = t_kinds;
  kinds.known[kinds.next++ % kKinds] = {.communicator = called.communicator, .function = called.function, .type = called.type,
                                        .peer = called.peer, .communicators = communicators,
                                        .element_bytes = work.bytes / called.elements, .text = work.text};
}

template <class Real>
int call_known(const Called& called, const Kind& kind, Real real) {
  const NcclWork work{kind.element_bytes * called.elements, kind.text};
  const NcclTimer::Call timed = timer().begin_call(called.stream);
  NcclCalls::ignore_ranges(true);
  const int result = real();
  NcclCalls::ignore_ranges(false);
  if (!timed.gpu) note_captures();
  result == kSuccess ? timer().end_call(timed, work) : timer().forget_call(timed);
  return result;
}

template <class Real>
int call(const Called& called, Real real) {
  if (!is_recorded()) return real();
  if (t_group.depth > 0) {
    join_group(called.communicator, called.stream);
    return real();
  }
  if (const Kind* kind = known_kind(called)) return call_known(called, *kind, real);
  const uint64_t communicators = g_communicators.load(std::memory_order_acquire);
  NcclCalls::hold();
  t_group.members = 0;
  join_group(called.communicator, called.stream);
  NcclWork work;
  const int result = end_group(real, &work);
  if (result == kSuccess) learn(called, communicators, work);
  return result;
}

struct Redirected {
  const char* name;
  const void* wrapper;
};
constexpr size_t kFirstTimed = 2, kFunctions = kFirstTimed + std::tuple_size_v<decltype(kNcclFunctions)>;
std::array<std::atomic<void*>, kFunctions> g_real;

template <class Function>
auto real(size_t function) {
  return reinterpret_cast<Function>(g_real[function].load(std::memory_order_acquire));
}

template <class... Arguments>
constexpr size_t place_of_elements() {
  size_t place = 0;
  for (const bool is_count : {std::is_same_v<Arguments, size_t>...}) {
    if (is_count) break;
    ++place;
  }
  return place;
}

constexpr size_t kSend = 8, kReceive = 9;

// Each of these has the number of elements, then their type, and at the end the communicator and the stream. Messages have the
// peer after the type.
template <size_t kFunction, class... Arguments>
int timed(Arguments... arguments) {
  const auto all = std::make_tuple(arguments...);
  constexpr size_t kCount = sizeof...(Arguments), kElements = place_of_elements<Arguments...>();
  Called called{kFunction, std::get<kCount - 2>(all), std::get<kCount - 1>(all), std::get<kElements>(all),
                      std::get<kElements + 1>(all), 0};
  if constexpr (kFunction == kSend || kFunction == kReceive) called.peer = std::get<kElements + 2>(all);
  return call(called, [=] { return real<int (*)(Arguments...)>(kFunction)(arguments...); });
}

constexpr size_t kGroupStart = 0, kGroupEnd = 1;

int group_start() {
  const auto start = real<int (*)()>(kGroupStart);
  if (!is_recorded()) return start();
  Group& group = t_group;
  if (group.depth++ == 0) NcclCalls::hold(), group.members = 0;
  const int result = start();
  if (result != kSuccess && --group.depth == 0) NcclCalls::instance().release();
  return result;
}

int group_end() {
  const auto end = real<int (*)()>(kGroupEnd);
  Group& group = t_group;
  if (group.depth == 0 || --group.depth > 0) return end();
  return end_group(end);
}

template <size_t kFunction, class... Arguments>
Redirected redirected(NcclFunction<Arguments...> function) {
  return {function.name, reinterpret_cast<const void*>(timed<kFunction, Arguments...>)};
}

template <size_t... kPlace>
std::array<Redirected, kFunctions> all_functions(std::index_sequence<kPlace...>) {
  return {{{"ncclGroupStart", reinterpret_cast<const void*>(group_start)},
           {"ncclGroupEnd", reinterpret_cast<const void*>(group_end)},
           redirected<kPlace + kFirstTimed>(std::get<kPlace>(kNcclFunctions))...}};
}

const std::array<Redirected, kFunctions>& functions() {
  static const auto all = all_functions(std::make_index_sequence<kFunctions - kFirstTimed>());
  return all;
}

// Empty if the loaded NCCL may be redirected, or if none is loaded yet.
const std::string& why_not_nccl() {
  static const std::string off = why_not(Hook::Nccl, "2.0");  // switched off, whatever is loaded
  if (!off.empty() || !loaded_function(kNcclLibrary, "ncclGroupStart")) return off;
  static const std::string loaded = [] {
    int number = 0;
    const auto get = reinterpret_cast<int (*)(int*)>(loaded_function(kNcclLibrary, "ncclGetVersion"));
    return why_not(Hook::Nccl, get && get(&number) == kSuccess ? nccl_version_text(number) : "");
  }();
  return loaded;
}

void* (*const g_find)(void* library, const char* name) = dlsym;

const void* wrapper_of(const char* name, void* found) {
  for (size_t i = 0; found && i < kFunctions && why_not_nccl().empty(); ++i) {
    if (std::strcmp(name, functions()[i].name) != 0 || found != loaded_function(kNcclLibrary, name)) continue;
    g_real[i].store(found, std::memory_order_release);
    return functions()[i].wrapper;
  }
  return found;
}

// Instead of dlsym() in each library that calls it, not for the whole process. A look-up by RTLD_NEXT or RTLD_DEFAULT depends
// on who calls: it is passed on by a jump, so that the loader sees the program's own call. So are all names but NCCL's.
[[gnu::noinline]] void* find_for_program(void* library, const char* name) {
  if (library == RTLD_NEXT || library == RTLD_DEFAULT || !name || std::strncmp(name, "nccl", 4) != 0) return g_find(library, name);
  return const_cast<void*>(wrapper_of(name, g_find(library, name)));
}

// Returns true if there were libraries to search.
bool hook_nccl() {
  static std::mutex hooking;
  static uint64_t seen = 0;
  const std::lock_guard one(hooking);
  const uint64_t loaded = libraries_loaded_so_far();
  if (std::exchange(seen, loaded) == loaded) return false;
  if (const std::string& why = why_not_nccl(); !why.empty()) {
    note_once(g_unseen, kCollectivesUnseen, why.c_str());
    return false;
  }
  redirect_calls("dlsym", reinterpret_cast<const void*>(find_for_program));
  std::array<Redirect, kFunctions> calls;
  std::array<RedirectedPointer, kFunctions> pointers;
  size_t count = 0;
  for (size_t i = 0; i < kFunctions; ++i) {
    void* const function = loaded_function(kNcclLibrary, functions()[i].name);
    if (!function) continue;  // an older NCCL
    g_real[i].store(function, std::memory_order_release);
    pointers[count] = {function, functions()[i].wrapper};
    calls[count++] = {functions()[i].name, functions()[i].wrapper};
  }
  redirect_calls({calls.data(), count}, kNcclLibrary);
  redirect_pointers({pointers.data(), count});  // of a program that has looked them up itself
  return count > 0;
}

}  // namespace

void watch_nccl() { hook_nccl(); }

GpuSource nccl_source() {
  return {[]() -> GpuTracer* { return &timer(); }, nullptr};
}

// A communicator is made before its first call. If a recording begins later, the first call is missed.
void nccl_range_begins(std::string_view function, bool moves) {
  if (!timer().active() || !recorder()) return;
  const bool makes_one = function.starts_with("ncclComm");
  if (makes_one) g_communicators.fetch_add(1, std::memory_order_acq_rel);
  if (makes_one && ProgramRanges::instance().paused()) watch_profiler_calls(false);  // libraries that were loaded since
  const bool unseen = moves && !NcclCalls::held();
  if ((unseen || makes_one) && hook_nccl()) return;
  note_captures();
  if (unseen)
    note_once(g_unseen, kCollectivesUnseen,
              "Some calls of NCCL were not timed: the program takes NCCL's functions in a way that level collectives does not "
              "see; record with --trace graph to see them.");
}

}  // namespace ws::prof
