// Where the time goes: each ns of a stretch has one cause, so the parts sum to the wall time exactly.
#pragma once
#include <array>
#include <compare>
#include <map>
#include <vector>

#include "profiling/analysis/inner_parts.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// What a recorded program says that it does, by its phases; several at a time: the first of these.
enum class HostWork : uint8_t { Data, Optimizer, Backward, Forward };
constexpr size_t kHostWorks = 4;

// times[Meaning]: Matrix, Pointwise, Loss, Optimizer, Other and Communication are kernels; Copy, Allocation and Sync are copies and
// calls; Launch is the GPU waiting for its next work inside a step; Idle is the rest.
struct Breakdown {
  TimeNs begin = 0, end = 0;
  int64_t steps = 0;
  MeaningTimes times{};
  int64_t busy = 0;                        // ns in which a kernel or a copy ran, what waits inside of a kernel as well
  std::array<int64_t, kHostWorks> gaps{};  // ns of Launch and Idle in which the host did this
  int64_t wall() const { return end - begin; }
  int64_t kernels() const;
  double busy_share() const { return wall() > 0 ? static_cast<double>(busy) / static_cast<double>(wall()) : 0; }
};

// Whose work the kernels' parts are; several of one meaning at a time: of the one that began first.
struct WorkId {
  Meaning meaning;
  NameId name;
  OpTag op;
  auto operator<=>(const WorkId&) const = default;
};
using WorkTimes = std::map<WorkId, int64_t>;  // ns; those of a meaning sum to its part

// A kernel that draws lanes of its inside is split by them: its waits count as sync.
// Where causes overlap the first of these wins: kernels that compute, communication, copies, a launched graph's own
// gaps (as Launch), allocation, sync, launch. `by_work`: adds to it what each kernel, or on a CPU each op, has of its
// meaning's part.
Breakdown breakdown(const Trace& trace, TimeNs begin, TimeNs end, WorkTimes* by_work = nullptr);
// `inner`: of this trace, where many stretches are asked for.
Breakdown breakdown(const Trace& trace, const InnerParts& inner, TimeNs begin, TimeNs end,
                    WorkTimes* by_work = nullptr);
Breakdown breakdown(const Trace& trace);  // from the first step, or span, to the last

// One stretch per mark of the host: from its start to the start of the next; parts.steps says for how many steps it
// stands, those of one graph say. The first `most` of them, 0: all. Means of steps come from sample_steps.
struct StepTimes {
  int64_t step;
  Breakdown parts;
};
std::vector<StepTimes> step_times(const Trace& trace, TimeNs begin, TimeNs end, size_t most = 0);

const char* meaning_name(Meaning meaning);  // as a part of a step: "matrix product", "launch gaps"

}  // namespace ws::prof
