#include "profiling/trace/stall_samples.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ws::prof {

namespace {

struct Reason {
  Stall reason;
  std::string_view counter;  // after kBefore
  StallGroup group;
  const char* name;
  const char* meaning;
};
using enum StallGroup;
constexpr std::array<Reason, kStalls> kReasons{{
    {Stall::Issued, "selected", Issues, "issues", "The warp issues its instruction in this cycle."},
    {Stall::NotSelected, "not_selected", Issues, "ready", "The warp could issue, but the scheduler issues an instruction of another warp."},
    {Stall::GlobalMemory, "long_scoreboard", Memory, "global memory", "The warp waits for a value from global, local or texture memory."},
    {Stall::GlobalQueue, "lg_throttle", Memory, "global memory queue", "The queue for global and local memory is full: too many small accesses follow each other."},
    {Stall::SharedMemory, "short_scoreboard", Memory, "shared memory or special function",
     "The warp waits for a value from shared memory, or for a special function such as exp, sin or a division."},
    {Stall::SharedQueue, "mio_throttle", Memory, "shared memory queue", "The queue for shared memory, special functions and branches is full."},
    {Stall::TextureQueue, "tex_throttle", Memory, "texture queue", "The queue for texture accesses is full."},
    {Stall::ConstantMemory, "imc_miss", Memory, "constant memory", "The warp waits for a constant or a parameter that is not in the cache yet."},
    {Stall::Fence, "membar", Memory, "memory fence", "The warp waits until its earlier writes are visible to other threads."},
    {Stall::LastWrites, "drain", Memory, "last writes", "The warp has ended and waits until its writes are done."},
    {Stall::MathPipe, "math_pipe_throttle", Arithmetic, "busy math unit", "The unit that computes this instruction is busy with other warps."},
    {Stall::TensorCores, "gmma", Arithmetic, "tensor cores", "The warp waits for a product on the tensor cores."},
    {Stall::FixedLatency, "wait", Arithmetic, "result of the instruction before", "The warp waits a fixed number of cycles for the instruction before this one."},
    {Stall::Dispatch, "dispatch_stall", Arithmetic, "dispatch", "The dispatcher holds the instruction back, for example because registers conflict."},
    {Stall::Barrier, "barrier", StallGroup::Barrier, "barrier", "The warp waits at a barrier for other warps of its block."},
    {Stall::Warpgroup, "warpgroup_arrive", StallGroup::Barrier, "warpgroup", "The warp waits for the other warps of its warpgroup."},
    {Stall::Sleep, "sleeping", StallGroup::Barrier, "sleep", "All threads of the warp sleep, as a wait loop may tell them to."},
    {Stall::Branch, "branch_resolving", NextInstruction, "branch", "The warp waits until a branch has computed where it goes."},
    {Stall::Fetch, "no_instruction", NextInstruction, "instruction fetch", "The next instruction is not in the instruction cache yet."},
    {Stall::Other, "misc", NextInstruction, "other", "A reason that the hardware does not name, or that this version does not know."},
}};

constexpr const char* kGroupNames[kStallGroups] = {"waits for memory", "waits for arithmetic", "barrier", "next instruction", "issues"};
constexpr std::string_view kBefore = "pcsamp_warps_issue_stalled_", kRepeated = "_not_issued";

constexpr bool in_order() {
  for (size_t i = 0; i < kStalls; ++i)
    if (kReasons[i].reason != static_cast<Stall>(i)) return false;
  return true;
}
static_assert(in_order());

const Reason& reason_of(Stall reason) { return kReasons[std::min(static_cast<size_t>(reason), kStalls - 1)]; }

uint64_t hash_of(const SampledInstruction& one) {
  return mixed(mixed(one.module, static_cast<uint64_t>(one.function)), one.offset);
}

}  // namespace

const char* stall_name(Stall reason) { return reason_of(reason).name; }
const char* stall_meaning(Stall reason) { return reason_of(reason).meaning; }
StallGroup group_of(Stall reason) { return reason_of(reason).group; }
const char* stall_group_name(StallGroup group) { return kGroupNames[std::min(static_cast<size_t>(group), kStallGroups - 1)]; }

StallGroupCounts by_group(const StallCounts& counts) {
  StallGroupCounts sums{};
  for (const Reason& reason : kReasons) sums[static_cast<size_t>(reason.group)] += counts[static_cast<size_t>(reason.reason)];
  return sums;
}

uint64_t sum_of(const StallCounts& counts) { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }

bool repeats_samples(std::string_view counter) { return counter.ends_with(kRepeated); }

// The driver writes "no_instruction" or "no_instructions".
Stall stall_of_counter(std::string_view counter) {
  if (repeats_samples(counter)) counter.remove_suffix(kRepeated.size());
  if (const size_t at = counter.find(kBefore); at != counter.npos) counter.remove_prefix(at + kBefore.size());
  if (counter == "no_instructions") counter.remove_suffix(1);
  const auto* known = std::ranges::find(kReasons, counter, &Reason::counter);
  return known == kReasons.end() ? Stall::Other : known->reason;
}

void StallSamples::add(const SampledInstruction& more) {
  ++changes_;
  const uint64_t hash = hash_of(more);
  const int64_t known = places_.find(hash, [&](size_t place) {
    const SampledInstruction& one = instructions_[place];
    return one.module == more.module && one.function == more.function && one.offset == more.offset;
  });
  if (known < 0) {
    places_.add(hash, instructions_.size());
    return instructions_.push_back(more);
  }
  SampledInstruction& one = instructions_[static_cast<size_t>(known)];
  for (size_t i = 0; i < kStalls; ++i) one.samples[i] += more.samples[i];
  if (one.line == 0) one.line = more.line, one.file = more.file;
}

void StallSamples::add(SampledCode code) {
  if (std::ranges::any_of(code_, [&](const SampledCode& known) { return known.module == code.module && known.function == code.function; })) return;
  ++changes_;
  code_.push_back(std::move(code));
}

void StallSamples::add(const SampledWindow& window) {
  ++changes_;
  windows_.push_back(window);
}

}  // namespace ws::prof
