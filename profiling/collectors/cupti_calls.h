// Which runtime and driver calls are recorded, and what each one means.
#pragma once
#include <cupti.h>

#include <optional>
#include <span>
#include <string>

#include "profiling/collectors/marks.h"

namespace ws::prof {

// Needed to tell which op launched a kernel.
std::span<const CUpti_CallbackId> launch_calls_runtime();
std::span<const CUpti_CallbackId> launch_calls_driver();
// Waits, events, graph handling: worth seeing, not needed for anything.
std::span<const CUpti_CallbackId> further_calls_runtime();
// Counted one by one, as they happen, where every allocation passes: in the driver.
std::span<const CUpti_CallbackId> allocator_calls();
std::span<const CUpti_CallbackId> graph_launch_calls();

std::string call_name(bool driver, CUpti_CallbackId id);  // "cudaLaunchKernel"

// What an allocator call asked for, from its parameters; bytes is 0 for a free.
struct AllocatorRequest {
  AllocatorCall call;
  uint64_t address, bytes;
};
std::optional<AllocatorRequest> allocator_request(CUpti_CallbackId id, const void* parameters);

}  // namespace ws::prof
