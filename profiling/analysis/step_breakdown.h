// Splits the time of a stretch by cause: each ns has exactly one cause, so the parts sum exactly to the wall time.
#pragma once
#include <array>
#include <compare>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include "profiling/analysis/collective_waits.h"
#include "profiling/analysis/inner_parts.h"
#include "profiling/analysis/time_names.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// What a recorded program does according to its phases. If several phases overlap, the first in this list wins.
enum class HostWork : uint8_t { Data, Optimizer, Backward, Forward };
constexpr size_t kHostWorks = 4;
// ns of Launch and of Idle in which the host did one kind of work.
struct HostGap {
  int64_t launch = 0, idle = 0;
};

// The order in which every view shows parts of a step.
inline constexpr Meaning kPartOrder[] = {Meaning::Matrix, Meaning::Pointwise, Meaning::Reduction, Meaning::Loss, Meaning::Optimizer, Meaning::Communication,
                                         Meaning::Copy, Meaning::Allocation, Meaning::Sync, Meaning::Launch, Meaning::Other, Meaning::Idle};
static_assert(std::size(kPartOrder) == kMeanings);
// True for kernels that compute, as far as their kind is known.
constexpr bool computes(Meaning meaning) { return meaning <= Meaning::Optimizer || meaning == Meaning::Reduction; }
// True for all kernels.
constexpr bool is_kernels(Meaning meaning) { return computes(meaning) || meaning == Meaning::Other || meaning == Meaning::Communication; }

// times[Meaning]: of kernels, see is_kernels(). Copy, Allocation and Sync are copies and calls. Launch: the GPU waits for its next work inside a step. Idle: the rest.
struct Breakdown {
  TimeNs begin = 0, end = 0;
  int64_t steps = 0;
  MeaningTimes times{};
  bool only_collectives = false;           // computation was not recorded
  int64_t rank_wait = 0;                   // the part of Communication in which a collective waits for the last rank; 0 with one rank
  int64_t inner_wait = 0;                  // the part of Sync inside of kernels, whose multiprocessors wait for each other
  int64_t busy = 0;                        // ns in which a kernel or a copy ran, without rank_wait; other waits inside of a kernel count
  std::array<HostGap, kHostWorks> gaps{};
  int64_t wall() const { return end - begin; }
  int64_t kernels() const;
  int64_t computes() const { return kernels() - times[static_cast<size_t>(Meaning::Communication)]; }  // kernels without communication
  double busy_share() const { return wall() > 0 ? static_cast<double>(busy) / static_cast<double>(wall()) : 0; }
};

// Identifies the work that a kernel's part belongs to. If several of one meaning overlap, the one that began first
// wins.
struct WorkId {
  Meaning meaning;
  NameId name;
  OpTag op;
  auto operator<=>(const WorkId&) const = default;
};
using WorkTimes = std::map<WorkId, int64_t>;  // ns; values of one meaning sum to its part

// What happens inside of kernels: the lanes of a kernel of many steps, and the wait of a collective until the last rank arrives.
struct InsideKernels {
  InsideKernels(const Trace& trace, TimeRange range, TimeNs clock_error = 0)
      : lanes(trace), waits(trace, range, clock_error, std::numeric_limits<size_t>::max()) {}
  InnerParts lanes;
  CollectiveWaits waits;
};

// A kernel with lanes inside is split by its lanes: its waits count as Sync and as inner_wait. If causes overlap, the first of these
// wins: the kernel of a stream that began first, kernels that compute, communication, copies, gaps inside a launched graph (as Launch), allocation, sync,
// launch. `by_work`: gets the share of each kernel, or of each op on a CPU, in the part of its meaning.
Breakdown breakdown(const Trace& trace, TimeNs begin, TimeNs end, WorkTimes* by_work = nullptr);
// `inside`: of this trace. Pass it if you ask for many stretches.
Breakdown breakdown(const Trace& trace, const InsideKernels& inside, TimeNs begin, TimeNs end,
                    WorkTimes* by_work = nullptr);
// The same for another rank than the one whose steps stand for the run.
Breakdown breakdown_of_rank(const Trace& trace, int rank, const InsideKernels& inside, TimeNs begin, TimeNs end,
                            WorkTimes* by_work = nullptr);
Breakdown breakdown(const Trace& trace);  // from the first step or span to the last

struct BreakdownPart {
  PartId id;
  int64_t ns = 0;
};
// The parts that are not empty; they sum to the wall time. Always in the same order, what is idle at the end.
std::vector<BreakdownPart> parts_of(const Breakdown& breakdown);

// True if such a part of a step on a GPU is time in which the GPU waits, named by what the host does or by the gap.
bool gpu_waits_in(const PartId& part);
inline constexpr const char* kGpuWaits = "the GPU is idle meanwhile";  // behind the names of such parts

}  // namespace ws::prof
