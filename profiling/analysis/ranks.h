// Compares the ranks of a run: who comes late to a collective, what the other ranks lose by it, and how much of the transfer
// no computation hides. A collective is one call that all ranks take part in, for example an all-reduce.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/collectives.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/bus_rate.h"
#include "profiling/base/table.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// A rank in the median step, if that is traced: see sample_of_ranks(). Else means over the compared steps, without the first one, which
// warms up, unless there are only a few.
struct RankRow {
  int rank = 0;
  std::string host;      // empty: all ranks are on one host
  bool recorded = true;  // false: the run has no trace of this rank
  // In µs:
  double step = 0;
  double wait = 0;      // for the last rank, while this rank computes nothing
  double exposed = 0;   // transfer that no computation of this rank hides; NaN: not known
  double computes = std::numeric_limits<double>::quiet_NaN();  // kernels without communication run; NaN: not known
  double late = 0;      // after the first rank, at the collective of the step where it is latest
  double transfer = 0;  // from the last arrival to the end
  double caused = 0;    // what a rank waits for this one, while this one is the last
  uint64_t collectives = 0;
};

// Collectives with the same name, size and number of ranks, in the step that the ranks show. Means over all ranks, in µs; the wait
// is of the ranks that wait, without the last one.
struct CollectiveRow {
  std::string name;    // "AllReduce · 2 ranks" where not all ranks take part
  uint64_t bytes = 0;  // 0: not known
  double count = 0, wait = 0, transfer = 0, exposed = 0;
  double bus_gb_s = 0;  // of a mean call, whose transfer lasts until the last rank has it; 0: not known
  double peak_gb_s = 0;  // what these GPUs reach with such messages when nothing else runs; 0: not known
  int ranks = 0;         // that take part; 0: all
  bool messages = false;  // from rank to rank
};

// Steps in which the other ranks wait for a rank.
struct Straggler {
  int rank = -1;       // -1: no rank is late by more than the error of the clocks
  double late_us = 0;  // median over these steps, against the median of the other ranks at the same collective
  int64_t late_steps = 0;
  int every = 0;       // it is late in every n-th step; 0: without a pattern
  double cost_us = 0;  // a step of all ranks, mean
  double share = 0;    // of the step time
  bool of_median = false;  // the cost is what another rank waits for it in the median step, not a mean
  double computes = 0;     // the reason: its GPU computes so many times as long as other ranks; 0: not known, or hardly longer
};

struct RankReport {
  std::vector<RankRow> ranks;       // sorted by rank
  std::vector<int64_t> steps;       // numbers of the steps that all recorded ranks have
  std::vector<TimeNs> step_begins;  // when the first rank begins it
  std::vector<float> lateness;      // µs after the first rank: ranks.size() rows of steps.size(); NaN: not known
  std::vector<CollectiveRow> collectives;
  Straggler straggler;                 // what costs most
  std::vector<Straggler> more_late;    // what costs less
  double step_us = 0;                  // mean, without pauses
  double median_step_us = 0;           // of the rows; 0: their step is the mean one
  size_t pauses = 0;                   // left out of the mean, as in a StepSample
  double wait_us = 0, exposed_us = 0;  // means of a step and rank
  double longest_wait_us = 0, longest_exposed_us = 0;  // the greatest of a rank
  bool computation = true;             // false: only collectives were recorded, so that what hides a transfer is not known
  double clock_error_us = 0;           // a lateness below it says nothing
  std::vector<BusRate> peak;           // of so many GPUs of this machine, by message size; empty: not known
  std::vector<std::string> notes;      // what could not be compared, and why

  bool any() const { return ranks.size() > 1; }
  float late(size_t rank, size_t step) const { return lateness[rank * steps.size() + step]; }
};

// What ranks wait for each other beside what the stragglers cost, because now one and then another comes last. nullopt: less than
// a tenth of a step, or messages between two ranks and groups of some ranks, which wait for more than lateness.
struct UsualWait {
  double us = 0;     // a step of a rank
  bool of_median = false;  // the median step; false: a mean one
  double share = 0;  // of the step time
  int rank = -1;     // comes last most often
  int64_t last_steps = 0;
};
std::optional<UsualWait> usual_wait(const RankReport& report);

// Empty if the trace has fewer than two ranks.
RankReport rank_report(const Trace& trace, double clock_error_us = 0, const StepSample& sample = {});
// The same for a trace whose spans are read block by block. For a run file, see StoredSpans::ranks().
RankReport rank_report(const Trace& trace, const ReadBlock& read, double clock_error_us, const StepSample& sample = {});
// Also takes what add_summary() takes, and the error of the clocks.
RankReport rank_report(const RunData& run);

// Keys of RunSummary::extra.
inline constexpr const char* kRankKey = "rank";             // of a file that holds one rank
inline constexpr const char* kHeldRanksKey = "held_ranks";  // of a joined file: a JSON list of the ranks that it holds
inline constexpr const char* kWorldKey = "world_size";      // number of ranks of the program
inline constexpr const char* kRestartKey = "restart";       // how often the launcher had started all ranks anew; none: never
inline constexpr const char* kHostKey = "host";             // name of the machine
inline constexpr const char* kHostsKey = "rank_hosts";      // of a run of many ranks: a JSON list, by rank
inline constexpr const char* kRankNotesKey = "rank_notes";  // what was missing when the ranks were joined
inline constexpr const char* kClockErrorKey = "clock_error_us";
inline constexpr const char* kBusRatesKey = "bus_rates";  // of the machine, measured alone: a JSON list
double clock_error_of(const RunSummary& summary);         // µs; 0: not known
inline TimeNs clock_error_ns(const RunSummary& summary) { return static_cast<TimeNs>(clock_error_of(summary) * 1e3); }
void add_summary(RankReport& report, const RunSummary& summary);  // hosts, notes, peak
// The median step of a run with several ranks, for rank_report(): then all times are of this step. Empty if it is not traced.
StepSample sample_of_ranks(const RunData& run);
// Does nothing if the ranks are on several hosts: the links between hosts are others.
void add_peak(RankReport& report, std::span<const BusRate> measured);

std::string clocks_text(const RankReport& report);  // "clocks ± 4.0 µs", "all on one clock"; empty: not known
std::string step_shown_text(const RankReport& report);  // "times of the median step, 11.96 ms"
// "rank 5 makes all ranks lose 0.30 ms per step (12 %): it comes about 3.0 ms late in every 10th step". If it is late in every step:
// "rank 0 waits 3.56 ms of the median step (30 %) for rank 1, which computes 2.1× as long". Empty without a straggler.
std::string straggler_text(const RankReport& report);
// The same without how much and how often: "rank 0 waits for rank 1, which computes 2.1× as long".
std::string straggler_reason(const RankReport& report);
std::string usual_wait_text(const UsualWait& wait, size_t steps);
// What the stragglers cost and what ranks wait without a pattern, the greatest cost first. Empty if nothing is worth saying.
std::string costliest_text(const RankReport& report);
std::vector<std::string> more_cost_texts(const RankReport& report);  // sentences: all but the first
Table rank_table(const RankReport& report);
Table collective_table(const RankReport& report);
std::string to_text(const RankReport& report);  // for `stats --by rank`
std::string to_json(const RankReport& report);

}  // namespace ws::prof
