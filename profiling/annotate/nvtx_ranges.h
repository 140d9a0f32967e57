// Passes the marks on as NVTX ranges, for tools such as Nsight Systems. Does nothing without the NVTX header or a
// listening tool.
#pragma once
#include <cstdint>

#include "profiling/annotate/annotate.h"

namespace ws::prof::nvtx {

bool listened_to();  // true if a tool was injected for NVTX
void push_step(int64_t step);
void push_phase(const char* name);
void push_op(OpTag op);
void work_for(int rank);  // of this thread; a mark in our domain
void pop();

// The domain of marks that say the rank of a thread, in their payload. It means that each GPU is the rank with its number.
inline constexpr const char* kRankDomain = "warpsight ranks";

// While it lives, marks become NVTX ranges for a listening tool, even if nothing is traced. An active collector
// replaces it as listener and creates the ranges itself.
class Names {
 public:
  Names();
  ~Names();
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
};

}  // namespace ws::prof::nvtx
