// Each allocator of a trace for itself: what it handed out and held at most, how broken up that was, which sizes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "profiling/analysis/memory_holes.h"

namespace ws::prof {

struct MemoryAccount {
  std::string allocator;  // "caching", "arena"; "driver": cudaMalloc and its like, together
  MemoryHistory history;
  MemoryMoment at_peak;  // when most was live
  MemoryMoment worst;    // when what was free was most broken up, of the moments that were looked at
  std::vector<SizeBin> sizes;
  bool driver() const { return allocator == kDriver; }
  static constexpr const char* kDriver = "driver";
};

// Those of the program first, the driver last. The worst of at most so many moments each.
std::vector<MemoryAccount> memory_accounts(const Trace& trace, size_t moments = 256);
// Most of a counter of the trace, in its unit; 0 without.
double counter_peak(const Trace& trace, const std::string& name);

std::string memory_text(const Trace& trace, const std::vector<MemoryAccount>& accounts);  // empty without

}  // namespace ws::prof
