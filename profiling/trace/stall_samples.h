// Samples of the instructions that warps were at, with the reason why each warp waited.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/look_up.h"

namespace ws::prof {

enum class NameId : uint32_t;

// Run files store these numbers: add new reasons at the end.
enum class Stall : uint8_t {
  Issued,
  NotSelected,
  GlobalMemory,
  GlobalQueue,
  SharedMemory,
  SharedQueue,
  TextureQueue,
  ConstantMemory,
  Fence,
  LastWrites,
  MathPipe,
  TensorCores,
  FixedLatency,
  Dispatch,
  Barrier,
  Warpgroup,
  Sleep,
  Branch,
  Fetch,
  Other
};
inline constexpr size_t kStalls = 20;
using StallCounts = std::array<uint64_t, kStalls>;

// What the window draws in one colour, in this order.
enum class StallGroup : uint8_t { Memory, Arithmetic, Barrier, NextInstruction, Issues };
inline constexpr size_t kStallGroups = 5;
using StallGroupCounts = std::array<uint64_t, kStallGroups>;

// Keys of RunSummary::extra: what was sampled, or why not; and present if it was refused.
inline constexpr const char *kXrayKey = "xray", *kXrayRefusedKey = "xray_refused";

const char* stall_name(Stall reason);     // "global memory"
const char* stall_meaning(Stall reason);  // one sentence
StallGroup group_of(Stall reason);
const char* stall_group_name(StallGroup group);  // "waits for memory"
StallGroupCounts by_group(const StallCounts& counts);
uint64_t sum_of(const StallCounts& counts);

// The name of the hardware's counter: "smsp__pcsamp_warps_issue_stalled_long_scoreboard". A counter that ends with
// "_not_issued" repeats the samples of the same reason in cycles in which no warp of the scheduler issued.
Stall stall_of_counter(std::string_view counter);
bool repeats_samples(std::string_view counter);

// The numbers of the names are the trace's, or the batch's.
struct SampledInstruction {
  uint64_t module = 0;  // checksum of the cubin
  uint32_t offset = 0;  // in the function, in bytes
  int32_t line = 0;     // 0: not known
  NameId function{}, file{};
  StallCounts samples{};
};

// The machine code of a function that has samples. A disassembler turns it into instructions.
struct SampledCode {
  uint64_t module = 0;
  NameId function{};
  int32_t compute = 0;  // compute capability that it was made for: 90
  std::string bytes;    // from offset 0 on
  // Lines around its instructions, a text line each: an offset, the line, and the calls that it is inlined from up to the kernel, each as
  // "path:line" and the function that is inlined there, with tabs between all. Each holds until the next one. Empty: no line info.
  std::string calls;
};

// A stretch that was sampled, in ns of the trace.
struct SampledWindow {
  int64_t begin = 0, end = 0;
  uint32_t first_step = 0, end_step = 0;  // step + 1; 0: not known
  uint32_t period = 0;                    // log2 of the cycles between two samples of a scheduler
  uint32_t reserved = 0;
  uint64_t samples = 0;
  uint64_t dropped = 0;  // lost by the hardware
  uint64_t hidden = 0;   // of kernels of the driver and of libraries that it does not name
};

class StallSamples {
 public:
  // Samples of one instruction are added up. An instruction without samples is kept for its line.
  void add(const SampledInstruction& more);
  void add(SampledCode code);  // the first code of a function is kept
  void add(const SampledWindow& window);
  bool empty() const { return instructions_.empty() && windows_.empty(); }
  const std::vector<SampledInstruction>& instructions() const { return instructions_; }
  const std::vector<SampledCode>& code() const { return code_; }
  const std::vector<SampledWindow>& windows() const { return windows_; }
  uint64_t changes() const { return changes_; }  // grows with each addition

 private:
  std::vector<SampledInstruction> instructions_;
  std::vector<SampledCode> code_;
  std::vector<SampledWindow> windows_;
  LookUp places_;
  uint64_t changes_ = 0;
};

}  // namespace ws::prof
