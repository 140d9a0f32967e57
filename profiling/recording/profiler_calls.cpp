#include "profiling/recording/profiler_calls.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/recording/injected.h"
#include "profiling/recording/loaded_libraries.h"

namespace ws::prof {
namespace {

constexpr std::array<const char*, 2> kProfilerCalls{"cuProfilerStart", "cuProfilerStop"};
std::array<std::atomic<int (*)()>, 2> g_profiler{};

void capture(bool on) {
  if (ProgramSender* const sender = recorder()) sender->capture(on);
}

int starts() {
  const int result = g_profiler[0].load(std::memory_order_acquire)();
  capture(true);
  return result;
}

int stops() {
  capture(false);
  return g_profiler[1].load(std::memory_order_acquire)();
}

// What the driver answers to who asks for a function need not be the exported one.
const void* asked_for(const char* name) {
  using Ask = int (*)(const char* name, void** function, int version, uint64_t flags, int* found);
  constexpr int kVersion = 12000;
  void* function = nullptr;
  const auto ask = reinterpret_cast<Ask>(loaded_function("libcuda.so", "cuGetProcAddress_v2"));
  return ask && ask(name, &function, kVersion, 0, nullptr) == 0 ? function : nullptr;
}

}  // namespace

void watch_profiler_calls(bool driver_starts) {
  constexpr std::array<int (*)(), 2> kWrappers{starts, stops};
  for (size_t i = 0; i < kProfilerCalls.size(); ++i) {
    void* const real = loaded_function("libcuda.so", kProfilerCalls[i]);
    if (!real) continue;
    g_profiler[i].store(reinterpret_cast<int (*)()>(real), std::memory_order_release);
    const auto* const wrapper = reinterpret_cast<const void*>(kWrappers[i]);
    redirect_calls(kProfilerCalls[i], wrapper);
    const void* const asked = driver_starts ? nullptr : asked_for(kProfilerCalls[i]);
    redirect_pointers(std::array{RedirectedPointer{real, wrapper}, RedirectedPointer{asked ? asked : real, wrapper}});
  }
}

}  // namespace ws::prof
