#include "profiling/recording/torch_memory.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "profiling/collectors/marks.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/layouts/known_layouts.h"
#include "profiling/recording/layouts/torch_layout.h"
#include "profiling/recording/loaded_libraries.h"

namespace ws::prof {
namespace {

TorchReport g_report = nullptr;

const char* owner_of(TorchDevice device) {
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
  if (allocated != 0 || reserved != static_cast<size_t>(bytes)) return false;
  shared.insert(address);
  return true;
}

void block_reported(void* address, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device) {
  if (active_recorder() && bytes != 0 && !(device.type == 0 && is_shared(address, bytes, allocated, reserved))) {
    const auto size = static_cast<uint64_t>(bytes < 0 ? -bytes : bytes);
    Marks::instance().memory({bytes < 0 ? MemoryAction::Free : MemoryAction::Allocate,
                              reinterpret_cast<uintptr_t>(address), size, kNoOp, owner_of(device)});
  }
  g_report(address, bytes, allocated, reserved, device);
}

}  // namespace

bool torch_watch_memory(std::string_view version) {
  if (g_report) return true;
  if (!why_not(Hook::TorchMemory, version).empty()) return false;
  for (const char* symbol : kTorchReports) {
    void* const found = loaded_function(kTorchMemoryLibrary, symbol);
    if (!found) continue;
    g_report = reinterpret_cast<TorchReport>(found);
    return redirect_calls(symbol, reinterpret_cast<const void*>(block_reported)) > 0;
  }
  return false;
}

}  // namespace ws::prof
