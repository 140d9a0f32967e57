// Reports each allocator of a trace separately: allocations, peak, fragmentation and block sizes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/memory_holes.h"
#include "profiling/base/table.h"

namespace ws::prof {

// Who held the memory when the most bytes were live: a row by op, layer, phase or line, the most bytes first.
struct MemoryHolder {
  std::string name;
  OpTag op = kNoOp;  // of its first block
  Meaning meaning = Meaning::Other;  // of that op
  uint64_t bytes = 0, blocks = 0;
  std::string phase = {};  // in which most of its bytes were made
};
std::vector<MemoryHolder> held_at_peak(const Trace& trace, const MemoryHistory& history, GroupBy by);
Table holder_rows(const std::vector<MemoryHolder>& held, uint64_t peak, const std::string& what);  // `what`: heading of the names
// Blocks have no kernel's name: then rows are by layer, or by op where no layers are known.
GroupBy memory_grouping(const Trace& trace, GroupBy by);

// What an allocator holds of the driver's memory when its live blocks are at their peak, and what of it no block uses.
struct MemoryGap {
  uint64_t live = 0, taken = 0;  // taken: its segments; where it does not report them, the driver's blocks
  uint64_t most_taken = 0;       // at any time
  uint64_t beside = 0;           // free in segments that also hold live blocks: fragmentation
  uint64_t empty = 0;            // segments without a live block: its cache, or memory of other libraries
  bool known() const { return taken > 0; }
};
// Not known if the blocks do not lie in such memory, as on the CPU.
MemoryGap memory_gap(const MemoryHistory& own, const MemoryHistory& driver);
MemoryHistory driver_history(const Trace& trace);

// The most bytes in use on the one GPU of a trace, by all programs; 0: not recorded, or of several GPUs.
double most_device_memory(const Trace& trace);

// Who held the memory of that allocator of the program; without a name, of the one that held the most.
struct HeldMemory {
  std::string allocator;
  uint64_t peak = 0;
  TimeNs peak_time = 0;
  MemoryGap gap;
  std::vector<MemoryHolder> rows;
  std::vector<MemoryHolder> phases;  // the same bytes by phase
};
HeldMemory held_memory(const Trace& trace, GroupBy by, std::string_view allocator = {});

struct MemoryAccount {
  std::string allocator;  // "caching", "arena"; "driver": cudaMalloc and similar calls together
  MemoryHistory history;
  MemoryMoment at_peak;  // when the most bytes were live
  MemoryMoment worst;    // when fragmentation was highest, among the moments examined
  MemoryGap gap;         // of the driver: not known
  std::vector<SizeBin> sizes;
  GroupBy held_by = GroupBy::Op;
  std::vector<MemoryHolder> held;  // at the peak; empty if no block has an op
  bool driver() const { return allocator == kDriver; }
  // True for an arena: it reports its block, not what the plan places in it.
  bool planned() const { return history.allocations == 0 && history.peak_reserved > 0; }
  static constexpr const char* kDriver = "driver";
};

// The program's allocators come first, the driver last. Examines at most `moments` moments per allocator.
std::vector<MemoryAccount> memory_accounts(const Trace& trace, GroupBy by = GroupBy::Name, size_t moments = kMemoryMoments);

// Empty if there are no accounts.
std::string memory_text(const Trace& trace, const std::vector<MemoryAccount>& accounts);

}  // namespace ws::prof
