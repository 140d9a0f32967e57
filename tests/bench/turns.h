// One training in turns: what its steps take in every second turn, beside the turns before and after it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "engine/train/trainer.h"
#include "profiling/base/statistics.h"

namespace ws::bench {

inline constexpr double kTurn = 0.2, kSettle = 0.06;  // seconds; a turn begins to count when the one before has settled

struct Turn {
  bool watched;
  double from, until;          // seconds of the steady clock that count
  double first = 0, last = 0;  // the ends of the first and the last step in it
  int64_t steps = 0;
  void add(double at) { ++steps == 1 ? first = last = at : last = at; }
  bool counts() const { return steps >= 10; }  // no: the training was tested or prepared
  double us_each() const { return (last - first) * 1e6 / static_cast<double>(steps - 1); }
};

// Finds the turn of each step. Steps arrive in the order of time, some after their turn is over.
class Turns {
 public:
  void begin(double at) { all_.push_back({all_.size() % 2 == 1, at + kSettle, at + kTurn}); }
  bool watched() const { return !all_.empty() && all_.back().watched; }
  void add(const std::vector<StepResult>& steps, double now);
  const std::vector<Turn>& all() const { return all_; }
  // The share of what arrived at these moments (seconds of the steady clock, count) that came into turns that are not
  // watched and so disturbed what they count.
  double late_share(const std::vector<std::pair<double, double>>& arrived) const;

 private:
  std::vector<Turn> all_;
  size_t at_ = 0;
  double origin_ =
      std::numeric_limits<double>::infinity();  // of the steps' times, on the steady clock; late by a report at most
};

struct Cost {
  Interval file_us, watched_us;
  Interval log_ratio;        // without the tenth of the turns at each end, where the machine did something else
  Interval whole_log_ratio;  // with them
};

// Each turn is compared with the one before and the one after it, so that a drift is in both ways and falls out, and
// one slow turn counts alike whether it is watched or not.
Cost cost_of(const std::vector<Turn>& turns);

// The mean without `share` of the samples at each end. The samples are in their order in time, and neighbours may be
// correlated: the interval comes from blocks.
Interval trimmed_mean_of_blocks(std::vector<double> samples, double share);

void write_turns(const std::vector<Turn>& turns, const std::filesystem::path& path);  // as CSV

}  // namespace ws::bench
