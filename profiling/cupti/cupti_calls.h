// Lists which runtime and driver calls are recorded, and what each one means.
#pragma once
#include <cupti.h>

#include <optional>
#include <span>
#include <string>

#include "profiling/collectors/marks.h"

namespace ws::prof {

// Driver calls that put work on the GPU. Every launch, copy and memset passes through them, for every interface.
std::span<const CUpti_CallbackId> launch_calls();
// Drawn as spans at level Full. Runtime calls have the names that programs use; driver calls are drawn only outside of
// runtime calls.
std::span<const CUpti_CallbackId> runtime_calls();
std::span<const CUpti_CallbackId> driver_waits();
// Allocator calls are counted one by one in the driver, where every allocation passes.
std::span<const CUpti_CallbackId> allocator_calls();
bool allocator_call(CUpti_CallbackId id);
std::span<const CUpti_CallbackId> graph_launch_calls();

std::string call_name(bool driver, uint32_t id);  // "cudaLaunchKernel"

// The request of an allocator call, from its parameters; bytes is 0 for a free.
struct AllocatorRequest {
  AllocatorCall call;
  uint64_t address, bytes;
};
std::optional<AllocatorRequest> allocator_request(CUpti_CallbackId id, const void* parameters);
// Returns the pool that a stream-ordered allocation names, or nullptr for the current pool of the device.
CUmemoryPool pool_of(CUpti_CallbackId id, const void* parameters);

}  // namespace ws::prof
