// Reads the stamps in copies of a ring (profiling/annotate/kernel_ranges.cuh). The content comes from the program, so
// nothing in it is trusted.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "profiling/annotate/kernel_ranges.cuh"
#include "profiling/annotate/stamps.h"
#include "profiling/collectors/ring_board.h"

namespace ws::prof {

// Consecutive stamps of one block or warp. Each names the innermost range that is open from then on.
struct RingPart {
  uint32_t multiprocessor = 0, warp = 0;
  std::vector<DeviceStamp> stamps;
};

class RingStamps {
 public:
  struct Losses {
    uint64_t overwritten = 0;  // segments: up to segment_stamps() of one block or warp
    uint64_t unmatched = 0;    // a begin without an end, or the reverse
    uint64_t invalid = 0;      // a name or a place that does not exist
  };

  // `first`: tag of the first name.
  RingStamps(const StampRing& ring, OpTag first);
  // Returns what is new in this copy. A range that is still open is returned with a later copy.
  std::vector<RingPart> read(const RingCopy& copy);
  const Losses& losses() const { return losses_; }
  uint64_t open_ranges() const;
  uint32_t segment_stamps() const { return stamps_; }

 private:
  using Writer = std::tuple<uint32_t, uint32_t, uint32_t>;  // block, warp, multiprocessor
  struct Moment {
    uint64_t ns = 0, cycles = 0;
  };
  struct Seen {  // what was read of a segment
    uint32_t ticket = 0, stamps = 0;
    Moment last;
  };
  struct Open {
    std::vector<uint32_t> names;  // the innermost one is last
    DeviceStamp last;
  };

  void count_overwritten(uint32_t first, uint32_t count);
  RingPart read_segment(uint32_t number, std::span<const std::byte> bytes);
  std::vector<uint64_t> times(const std::vector<Moment>& moments);
  void apply(uint32_t what, Open& open);

  uint32_t segments_, stamps_, names_;
  OpTag first_;
  uint32_t next_ = 0;  // the first segment that was never read
  std::vector<Seen> seen_;
  std::map<Writer, Open> open_;
  double ns_per_cycle_ = 0;
  uint64_t measured_over_ = 0;  // ns
  Losses losses_;
};

}  // namespace ws::prof
