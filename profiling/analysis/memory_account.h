// Reports each allocator of a trace separately: allocations, peak, fragmentation and block sizes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "profiling/analysis/memory_holes.h"

namespace ws::prof {

struct MemoryAccount {
  std::string allocator;  // "caching", "arena"; "driver": cudaMalloc and similar calls together
  MemoryHistory history;
  MemoryMoment at_peak;  // when the most bytes were live
  MemoryMoment worst;    // when fragmentation was highest, among the moments examined
  std::vector<SizeBin> sizes;
  bool driver() const { return allocator == kDriver; }
  static constexpr const char* kDriver = "driver";
};

// The program's allocators come first, the driver last. Examines at most `moments` moments per allocator.
std::vector<MemoryAccount> memory_accounts(const Trace& trace, size_t moments = 256);
// Maximum of a counter of the trace, in its unit; 0 if there is no such counter.
double counter_peak(const Trace& trace, const std::string& name);

// Empty if there are no accounts.
std::string memory_text(const Trace& trace, const std::vector<MemoryAccount>& accounts);

}  // namespace ws::prof
