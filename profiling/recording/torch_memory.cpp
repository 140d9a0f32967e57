#include "profiling/recording/torch_memory.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "profiling/collectors/marks.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/loaded_libraries.h"

namespace ws::prof {
namespace {

// As declared by PyTorch (c10/core/Device.h, c10/core/Allocator.h). Allocators call it for each block, so that a
// profiler of PyTorch could be told. `bytes` is negative for a block that is taken back.
struct Device {
  int8_t type;  // 0: CPU, 1: CUDA
  int8_t index;
};
using Report = void (*)(void* address, int64_t bytes, size_t allocated, size_t reserved, Device device);
Report g_report = nullptr;

const char* owner_of(Device device) {
  static constexpr std::array kGpus = {"PyTorch",       "PyTorch GPU 1", "PyTorch GPU 2", "PyTorch GPU 3",
                                       "PyTorch GPU 4", "PyTorch GPU 5", "PyTorch GPU 6", "PyTorch GPU 7"};
  if (device.type == 0) return "PyTorch CPU";
  return kGpus[static_cast<size_t>(device.index < 0 ? 0 : device.index) % kGpus.size()];
}

// Memory that processes share, as for the batches of loader workers, is reported even where the CPU's other blocks are
// not. It says that nothing is allocated, but all of it reserved.
bool is_shared(void* address, int64_t bytes, size_t allocated, size_t reserved) {
  static std::mutex mutex;
  static std::unordered_set<void*> shared;
  const std::lock_guard lock(mutex);
  if (bytes < 0) return shared.erase(address) > 0;
  return allocated == 0 && reserved == static_cast<size_t>(bytes) && (shared.insert(address), true);
}

void block_reported(void* address, int64_t bytes, size_t allocated, size_t reserved, Device device) {
  if (hearing() && bytes != 0 && !(device.type == 0 && is_shared(address, bytes, allocated, reserved))) {
    const auto size = static_cast<uint64_t>(bytes < 0 ? -bytes : bytes);
    Marks::instance().memory({bytes < 0 ? MemoryAction::Free : MemoryAction::Allocate,
                              reinterpret_cast<uintptr_t>(address), size, kNoOp, owner_of(device)});
  }
  g_report(address, bytes, allocated, reserved, device);
}

}  // namespace

bool torch_watch_memory() {
  if (g_report) return true;
  // The sizes were signed until PyTorch 2.2.
  for (const char* symbol : {"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
                             "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"}) {
    void* const found = loaded_function("libc10.so", symbol);
    if (!found) continue;
    g_report = reinterpret_cast<Report>(found);
    return redirect_calls(symbol, reinterpret_cast<const void*>(block_reported)) > 0;
  }
  return false;
}

}  // namespace ws::prof
