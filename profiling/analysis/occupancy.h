// How many warps of a kernel fit on a multiprocessor at once, and what stops more.
#pragma once
#include <optional>
#include <string_view>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct DeviceLimits {
  int threads_per_sm = 2048, blocks_per_sm = 32, threads_per_block = 1024;
  int registers_per_sm = 65536, register_unit = 256, registers_per_thread = 255;  // a warp gets multiples of the unit
  int shared_per_sm = 228 * 1024, shared_unit = 128, shared_reserved = 1024;  // reserved: by the system, in each block
  int warp = 32, sub_partitions = 4;
};
// "9.0"; nothing for what is not two numbers.
struct Capability {
  int major = 0, minor = 0;
};
std::optional<Capability> capability_of(std::string_view text);
// By compute capability; nothing for those that this program does not know: a guess would be told as a fact.
std::optional<DeviceLimits> limits_of(int major, int minor);
// By the name in a run file, which may come from another machine; of names not listed here by `compute`, "9.0".
std::optional<DeviceLimits> limits_of_card(std::string_view name, std::string_view compute = {});

enum class OccupancyLimit : uint8_t { None, Warps, Registers, SharedMemory, Blocks, Impossible };
struct Occupancy {
  int blocks = 0, warps = 0;  // per multiprocessor
  double share = 0;           // of the warps it can hold
  OccupancyLimit limit = OccupancyLimit::None;
  int by_warps = 0, by_registers = 0, by_shared = 0, by_blocks = 0;  // blocks that each resource allows
};
Occupancy occupancy_of(const Detail& kernel, const DeviceLimits& device);
const char* limit_name(OccupancyLimit limit);

}  // namespace ws::prof
