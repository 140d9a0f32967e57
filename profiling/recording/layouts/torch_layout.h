// What PyTorch's C++ libraries declare and do not promise: structs, mangled names, and where an object keeps its sequence number.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace ws::prof {

// ATen/record_function.h, identical from 1.13 to 2.11.
struct TorchContext {
  virtual ~TorchContext() = default;
};
struct TorchCallback {
  std::unique_ptr<TorchContext> (*begins)(const char* function);
  void (*ends)(const char* function, void* context);
  double probability = 1;
  std::array<bool, 10> scopes{};
  bool needs_inputs = false, needs_outputs = false, needs_ids = false;
};
static_assert(sizeof(TorchCallback) == 40);
inline constexpr size_t kTorchBackwardScope = 1;
inline constexpr const char* kTorchLibrary = "libtorch_cpu.so";
inline constexpr const char* kTorchAdd = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE";
inline constexpr const char* kTorchRemove = "_ZN2at14removeCallbackEm";
inline constexpr const char* kTorchName = "_ZNK2at14RecordFunction4nameEv";
inline constexpr const char* kTorchSequence = "_ZN2at15sequence_number4peekEv";

// torch/csrc/autograd/engine.h: the engine evaluates one backward function. All arguments are addresses.
using TorchEvaluate = void (*)(void* engine, void* task, const char* node, void* inputs, const void* queue);
inline constexpr const char* kTorchEvaluate =
    "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferE"
    "RKS2_INS0_10ReadyQueueEE";

// c10/core/Device.h, c10/core/Allocator.h. Allocators call it for each block, so that a profiler of PyTorch could be notified.
// `bytes` is negative for a block that is taken back.
struct TorchDevice {
  int8_t type;  // 0: CPU, 1: CUDA
  int8_t index;
};
using TorchReport = void (*)(void* address, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device);
inline constexpr const char* kTorchMemoryLibrary = "libc10.so";
// The sizes were signed until PyTorch 2.2.
inline constexpr std::array kTorchReports{"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
                                          "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"};

// Finds where an observed function object keeps its sequence number: it sees two ops that carry the next number, and the
// offset where both match is the right one.
class TorchSequenceSearch {
 public:
  void see(const char* function, uint64_t now) {
    for (size_t i = 0; i < kWords; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, function + kFirst + 8 * i, sizeof word);
      agree_[i] = (seen_ == 0 || agree_[i]) && word == now;
    }
    moved_ |= seen_ > 0 && now != last_;
    last_ = now, ++seen_;
  }
  // 0: not found.
  size_t place() const {
    size_t found = 0;
    for (size_t i = 0; i < kWords; ++i)
      if (agree_[i]) found = found == 0 ? kFirst + 8 * i : SIZE_MAX;
    return moved_ && seen_ >= 2 && found != SIZE_MAX ? found : 0;
  }

 private:
  static constexpr size_t kFirst = 112, kWords = 14;  // words searched in an object of more than 300 bytes
  std::array<bool, kWords> agree_{};
  uint64_t last_ = 0;
  int seen_ = 0;
  bool moved_ = false;
};

// The offset at which the nodes carry the last three sequence numbers before `next`. 0: not found.
inline size_t torch_node_sequence_place(const void* const* nodes, uint64_t next) {
  constexpr size_t kBytes = 96, kNodes = 3;
  for (size_t offset = 8; offset < kBytes; offset += 8) {
    bool all = true;
    for (size_t i = 0; i < kNodes && all; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(nodes[i]) + offset, sizeof word);
      all = word + kNodes - i == next;
    }
    if (all) return offset;
  }
  return 0;
}

}  // namespace ws::prof
