// What is drawn as curves: losses and tests of each step and epoch. All of them are in the run file; what goes along live may
// be fewer, and then the lowest and the highest stay.
#pragma once
#include <string>
#include <vector>

#include "app/core/remote/job_folder.h"
#include "engine/train/trainer.h"

namespace ws::app {

struct Curves {
  std::vector<StepResult> steps;
  std::vector<EpochResult> epochs;
};

// At most about so many steps and epochs: the first, the last, and the extremes in between.
void thin(Curves& curves, size_t most);

// The newest ones as they are, and a file that stands for those before them, so that a run of a day stays small.
class CurveJournal {
 public:
  explicit CurveJournal(const JobFolder& job);
  void add(Curves curves);

 private:
  static void keep(Curves& to, const Curves& from);
  void forget();
  JobFolder job_;
  PieceJournal pieces_;
  Curves recent_, before_;       // in the newest piece, and thinned in those before it
  uint64_t stands_for_ = 0;      // until where the history file tells
};

inline constexpr const char* kHistory = "history";
// Until where a history tells, and its frames. Throws Failure.
std::pair<uint64_t, std::string> read_history(const std::string& bytes);

}  // namespace ws::app
