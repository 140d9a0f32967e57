#include "profiling/analysis/occupancy.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "profiling/base/text.h"

namespace ws::prof {

namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Registers belong to one quarter of the multiprocessor, so warps are counted per quarter.
int blocks_by_registers(const Detail& kernel, const DeviceLimits& device, int64_t warps) {
  if (kernel.registers <= 0) return device.blocks_per_sm;
  if (kernel.registers > device.registers_per_thread) return 0;
  const int64_t per_warp = round_up(int64_t{kernel.registers} * device.warp, device.register_unit);
  const int64_t quarter = device.registers_per_sm / device.sub_partitions / per_warp;
  return static_cast<int>(quarter * device.sub_partitions / warps);
}

int blocks_by_shared(const Detail& kernel, const DeviceLimits& device) {
  const int64_t bytes = int64_t{kernel.static_shared} + kernel.dynamic_shared + device.shared_reserved;
  return static_cast<int>(device.shared_per_sm / std::max<int64_t>(round_up(bytes, device.shared_unit), 1));
}

}  // namespace

std::optional<Capability> capability_of(std::string_view text) {
  Capability said;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, said.major);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '.') return std::nullopt;
  if (std::from_chars(read.ptr + 1, end, said.minor).ec != std::errc()) return std::nullopt;
  return said;
}

std::optional<DeviceLimits> limits_of(int major, int minor) {
  if (major < 7 || major == 11 || major > 12) return std::nullopt;
  DeviceLimits device;
  if (major == 7) {
    device.threads_per_sm = minor == 5 ? 1024 : 2048;
    device.blocks_per_sm = minor == 5 ? 16 : 32;
    device.shared_per_sm = minor == 5 ? 64 * 1024 : 96 * 1024;
    device.shared_unit = 256;
    device.shared_reserved = 0;
  } else if (major == 8) {
    device.threads_per_sm = minor == 0 ? 2048 : 1536;
    device.blocks_per_sm = minor == 0 ? 32 : minor == 9 ? 24 : 16;
    device.shared_per_sm = (minor == 0 || minor == 7 ? 164 : 100) * 1024;
  } else if (major == 12) {
    device.threads_per_sm = 1536;
    device.blocks_per_sm = 24;
    device.shared_per_sm = 100 * 1024;
  }
  return device;
}

std::optional<DeviceLimits> limits_of_card(std::string_view name, std::string_view compute) {
  if (const auto said = capability_of(compute)) return limits_of(said->major, said->minor);
  struct Known {
    std::string_view part;
    int major, minor;
  };
  static constexpr Known kKnown[] = {{"V100", 7, 0}, {"T4", 7, 5},    {"A100", 8, 0}, {"A10", 8, 6},
                                     {"L4", 8, 9},   {"L40", 8, 9},   {"L40S", 8, 9}, {"H100", 9, 0},
                                     {"H200", 9, 0}, {"GH200", 9, 0}, {"B200", 10, 0}};
  for (const Known& known : kKnown)
    if (names_card(name, known.part)) return limits_of(known.major, known.minor);
  if (name.find("GeForce RTX 30") != name.npos) return limits_of(8, 6);
  if (name.find("GeForce RTX 40") != name.npos) return limits_of(8, 9);
  return std::nullopt;
}

bool names_card(std::string_view name, std::string_view part) {
  const auto goes_on = [&](size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (size_t at = name.find(part); at != name.npos; at = name.find(part, at + 1))
    if (!(at > 0 && goes_on(at - 1)) && !goes_on(at + part.size())) return true;
  return false;
}

Occupancy occupancy_of(const Detail& kernel, const DeviceLimits& device) {
  Occupancy result;
  const int64_t threads = int64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2];
  if (threads <= 0 || threads > device.threads_per_block) {
    result.limit = OccupancyLimit::Impossible;
    return result;
  }
  const int64_t warps = (threads + device.warp - 1) / device.warp;
  result.by_warps = static_cast<int>(device.threads_per_sm / device.warp / warps);
  result.by_blocks = device.blocks_per_sm;
  result.by_registers = blocks_by_registers(kernel, device, warps);
  result.by_shared = blocks_by_shared(kernel, device);
  result.blocks = std::min({result.by_warps, result.by_blocks, result.by_registers, result.by_shared});
  result.warps = static_cast<int>(result.blocks * warps);
  result.share = static_cast<double>(result.warps) / (device.threads_per_sm / device.warp);
  if (result.blocks == 0)
    result.limit = OccupancyLimit::Impossible;
  else if (result.blocks == result.by_warps)
    result.limit = OccupancyLimit::Warps;
  else if (result.blocks == result.by_registers)
    result.limit = OccupancyLimit::Registers;
  else if (result.blocks == result.by_shared)
    result.limit = OccupancyLimit::SharedMemory;
  else
    result.limit = OccupancyLimit::Blocks;
  return result;
}

const char* limit_name(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::None:
      return "none";
    case OccupancyLimit::Warps:
      return "warps";
    case OccupancyLimit::Registers:
      return "registers";
    case OccupancyLimit::SharedMemory:
      return "shared memory";
    case OccupancyLimit::Blocks:
      return "blocks";
    case OccupancyLimit::Impossible:
      return "cannot run";
  }
  return "";
}

std::string share_text(const Occupancy& occupancy) { return occupancy.share >= 1 ? "100 %" : percent(occupancy.share); }

std::string occupancy_text(const Occupancy& occupancy) {
  if (occupancy.limit == OccupancyLimit::Impossible) return limit_name(occupancy.limit);
  return share_text(occupancy) + (occupancy.share >= 1 ? "" : std::string(", limit: ") + limit_name(occupancy.limit));
}

}  // namespace ws::prof
