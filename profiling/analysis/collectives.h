// Finds the collectives in a trace, and which calls of different ranks belong together. A collective is one call that
// all ranks of a communicator take part in, for example an all-reduce.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

// Calls use(spans) with the spans of one block, which may be in a file.
using UseSpans = std::function<void(std::span<const Span>)>;
using ReadBlock = std::function<void(size_t track, size_t block, const UseSpans& use)>;
ReadBlock blocks_in_memory(const Trace& trace);  // an evicted block has no spans

// The part of one rank in a collective.
struct CollectiveCall {
  TimeNs begin = 0, end = 0;
  uint32_t kind = 0;  // index into Collectives::kinds
  uint32_t step = 0;  // step + 1; 0: unknown
};

// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)" is "AllReduce_Sum_f32_RING_LL".
std::string name_of_collective(const std::string& kernel);
// Without the algorithm: "AllReduce_Sum_f32_RING_LL", of older versions "AllReduce_RING_LL_Sum_float", is "AllReduce f32".
// Other names stay.
std::string short_collective_name(const std::string& full);

struct CollectiveKind {
  std::string name;
  uint64_t bytes = 0;        // 0: not known
  std::string communicator;  // as its program names it, otherwise the order of its stream; of a send also both ranks
  bool unknown_peer = false;  // a send or a receive that no rank's call belongs to, as its other side is not known
  auto operator<=>(const CollectiveKind&) const = default;
};

// True if one rank sends and another one receives: a step of a pipeline waits for such calls by its nature.
bool is_point_to_point(const CollectiveKind& kind);

struct Collectives {
  std::vector<CollectiveKind> kinds;
  std::vector<int> ranks;                          // sorted
  std::vector<std::vector<CollectiveCall>> calls;  // by index into `ranks`; sorted by begin

  // Adds the calls of a trace. `rank`: rank of the tracks that have none, listed even without calls. -1: such tracks
  // are ignored.
  void add(const Trace& trace, const ReadBlock& read, int rank = -1);
};

// Calls of different ranks that are one collective.
struct MatchedCalls {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  size_t ranks = 0;
  std::vector<uint32_t> kinds;    // one a match
  std::vector<uint32_t> indices;  // `ranks` values a match: index into the calls of that rank, or kNone

  size_t size() const { return kinds.size(); }
  uint32_t index(size_t match, size_t rank) const { return indices[match * ranks + rank]; }
};

// For ranks with a common clock: calls of one kind belong together if they overlap, because no rank leaves a collective
// before the last one arrives. Works even if some calls were not recorded. `error`: of the clocks.
MatchedCalls match_by_time(const Collectives& found, TimeNs error);

// For ranks without a common clock: matches the i-th call of a kind on each rank. If ranks have different numbers of
// calls, matches the i-th call within each step, or without steps the calls from the begin or the end, what fits
// the times better.
MatchedCalls match_by_order(const Collectives& found);

}  // namespace ws::prof
