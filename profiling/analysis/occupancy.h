// Computes how many warps of a kernel fit on a multiprocessor at once, and which resource limits them.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct DeviceLimits {
  int threads_per_sm = 2048, blocks_per_sm = 32, threads_per_block = 1024;
  // Each warp gets a multiple of register_unit.
  int registers_per_sm = 65536, register_unit = 256, registers_per_thread = 255;
  // Shared memory; the system reserves shared_reserved in each block.
  int shared_per_sm = 228 * 1024, shared_unit = 128, shared_reserved = 1024;
  int warp = 32, sub_partitions = 4;
};
// "9.0"; capability_of() returns nullopt if the text is not two numbers.
struct Capability {
  int major = 0, minor = 0;
};
std::optional<Capability> capability_of(std::string_view text);
// Returns the limits of a compute capability, or nullopt if it is unknown: a guess would be shown as a fact.
std::optional<DeviceLimits> limits_of(int major, int minor);
// Uses the name in a run file, which may come from another machine. For unlisted names it uses `compute`, such as
// "9.0".
std::optional<DeviceLimits> limits_of_card(std::string_view name, std::string_view compute = {});
// True if `part` is a word of the name: "A100" is one in "NVIDIA A100-SXM4", but not in "RTX A1000".
bool names_card(std::string_view name, std::string_view part);

enum class OccupancyLimit : uint8_t { None, Warps, Registers, SharedMemory, Blocks, Impossible };
struct Occupancy {
  int blocks = 0, warps = 0;  // per multiprocessor
  double share = 0;           // share of the warps that it can hold
  OccupancyLimit limit = OccupancyLimit::None;
  int by_warps = 0, by_registers = 0, by_shared = 0, by_blocks = 0;  // number of blocks that each resource allows
};
Occupancy occupancy_of(const Detail& kernel, const DeviceLimits& device);
const char* limit_name(OccupancyLimit limit);
std::string share_text(const Occupancy& occupancy);      // "18.8 %", "100 %"
std::string occupancy_text(const Occupancy& occupancy);  // "18.8 %, limit: registers", "100 %"

}  // namespace ws::prof
