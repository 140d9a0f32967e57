// Functions that profiling/annotate/kernel_ranges.cuh and our Python package call in a recorded program, to show what
// kernels do inside.
#include <bit>
#include <exception>
#include <utility>

#include "profiling/collectors/ring_board.h"
#include "profiling/cupti/ring_copier.h"
#include "profiling/recording/injected.h"

namespace {

constexpr unsigned kMostNames = 4096;

bool possible(const warpsight::Ring& ring) {
  return ring.version == warpsight::kRingVersion && ring.memory && ring.names && ring.name_count > 0 &&
         ring.name_count <= kMostNames && std::has_single_bit(ring.segments) && ring.stamps > 0 &&
         ring.stamps <= 1u << 20;
}

}  // namespace

// Returns 1 if the ring will be read until it is removed.
extern "C" __attribute__((visibility("default"))) int warpsight_ring_add(const warpsight::Ring* ring) {
  if (!ring || !ws::prof::recorder() || !possible(*ring)) return 0;
  try {
    ws::prof::StampRing made;
    made.segments = ring->segments, made.stamps = ring->stamps, made.by_warp = ring->by_warp != 0;
    for (unsigned i = 0; i < ring->name_count; ++i) made.names.emplace_back(ring->names[i] ? ring->names[i] : "");
    return ws::prof::RingCopier::instance().add(std::move(made), ring->memory);
  } catch (const std::exception&) {  // out of memory: the program continues without its ranges
    return 0;
  }
}

// Reads the last stamps. Call it when no kernel writes into the ring any more, and before its memory is freed.
extern "C" __attribute__((visibility("default"))) void warpsight_ring_remove(void* memory) {
  if (!ws::prof::recorder()) return;
  try {
    ws::prof::RingCopier::instance().remove(memory);
  } catch (const std::exception&) {  // out of memory: the last stamps are lost
  }
}
