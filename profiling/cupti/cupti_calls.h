// Which runtime and driver calls are recorded, and what each one means.
#pragma once
#include <cupti.h>

#include <optional>
#include <span>
#include <string>

#include "profiling/collectors/marks.h"

namespace ws::prof {

// What puts work on the GPU, in the driver: every launch, copy and memset passes here, whichever interface asked for
// it.
std::span<const CUpti_CallbackId> launch_calls();
// Drawn as spans at the fullest level: the runtime's by the names that programs use, the driver's where no runtime call
// is around them.
std::span<const CUpti_CallbackId> runtime_calls();
std::span<const CUpti_CallbackId> driver_waits();
// Counted one by one, as they happen, where every allocation passes: in the driver.
std::span<const CUpti_CallbackId> allocator_calls();
bool allocator_call(CUpti_CallbackId id);
std::span<const CUpti_CallbackId> graph_launch_calls();

std::string call_name(bool driver, uint32_t id);  // "cudaLaunchKernel"

// What an allocator call asked for, from its parameters; bytes is 0 for a free.
struct AllocatorRequest {
  AllocatorCall call;
  uint64_t address, bytes;
};
std::optional<AllocatorRequest> allocator_request(CUpti_CallbackId id, const void* parameters);
// The pool that a stream-ordered allocation names; nullptr: it takes the current one of its device.
CUmemoryPool pool_of(CUpti_CallbackId id, const void* parameters);

}  // namespace ws::prof
