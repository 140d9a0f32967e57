// The data of the curves: losses and tests of each step and epoch. The run file has all of them. The live data may be
// thinned, and then keeps the lowest and highest values.
#pragma once
#include <string>
#include <vector>

#include "app/core/remote/job_folder.h"
#include "engine/train/trainer.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

struct Curves {
  std::vector<StepResult> steps;
  std::vector<EpochResult> epochs;
};

StepResult step_of(const prof::Metric& metric);
EpochResult test_of(const prof::Evaluation& evaluation);
// Keeps at most about `most` steps and epochs: the first, the last, and the extremes in between.
void thin(Curves& curves, size_t most);

// Keeps the newest curves in full and replaces the older ones with a small history file, so
// that a run of a day stays small.
class CurveJournal {
 public:
  explicit CurveJournal(const JobFolder& job);
  void add(Curves curves);

 private:
  static void keep(Curves& to, const Curves& from);
  void forget();
  JobFolder job_;
  PieceJournal pieces_;
  Curves recent_, before_;       // in the newest piece; in the pieces before it, thinned
  uint64_t stands_for_ = 0;      // the history file covers everything before this offset
};

inline constexpr const char* kHistory = "history";
// Returns the offset where a history ends, and its frames. Throws Failure.
std::pair<uint64_t, std::string> read_history(const std::string& bytes);

}  // namespace ws::app
