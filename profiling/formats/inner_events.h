// Recognises what profilers of the inside of kernels write: Proton (Triton) and the profiler of FlashInfer.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "profiling/formats/trace_builder.h"

namespace ws::prof {

struct InnerPlace {
  std::string row;     // "SM 007 CTA 12 warp 3"
  std::string kernel;  // empty if the file does not say it
};

// Proton names its processes "KERNEL Core7 CTA12" and its threads "warp 3 (line 0)", FlashInfer "SM_007" and
// "blk12_g3".
std::optional<InnerPlace> inner_place(std::string_view process, std::string_view thread);
// True if the process has the name of a multiprocessor, as FlashInfer gives it.
bool is_multiprocessor(std::string_view process);

// Returns a sentence if the file has kernels and some inner spans lie outside of all of them, else "".
std::string inner_problem(const TraceBuilder& builder);

}  // namespace ws::prof
