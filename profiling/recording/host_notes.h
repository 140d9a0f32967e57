// What a recorded program says beside its ranges: scalars that it logs, samples of its stacks, facts about itself. Noted on
// any of its threads, taken by the one that writes the run file.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/trace/run_data.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

// Rows with samples of a thread's stacks: each span's name is a stack, the innermost frame first, frames between " < ".
inline constexpr const char* kSamplesTrack = "samples of ";

// What the name of a scalar says it is: "train/loss", "val_acc".
enum class ScalarRole : uint8_t { Loss, Accuracy, TestLoss, TestAccuracy, Other };
ScalarRole scalar_role(std::string_view name);

class HostNotes {
 public:
  struct Scalar {
    int64_t time = 0;  // steady clock
    int64_t step = 0;
    double value = 0;
    std::string name;
  };
  struct Sample {
    int64_t begin = 0, end = 0;  // steady clock
    uint32_t stack = 0;
    std::string row;
  };
  struct Taken {
    std::vector<Scalar> scalars;
    std::vector<Sample> samples;
    std::vector<std::string> stacks;  // those that are new
    std::map<std::string, std::string> facts;
    bool empty() const { return scalars.empty() && samples.empty() && stacks.empty() && facts.empty(); }
  };

  void scalar(std::string_view name, double value, int64_t step);
  uint32_t stack(std::string_view text);  // a number for sample(); the same text has the same
  void sample(std::string_view row, uint32_t stack, int64_t begin, int64_t end);
  void fact(std::string_view key, std::string_view value);
  Taken take();
  uint64_t refused() const;  // notes that had no room since the beginning

 private:
  static constexpr size_t kMostWaiting = 1'000'000, kMostStacks = 100'000;
  mutable std::mutex mutex_;
  Taken waiting_;
  std::unordered_map<std::string, uint32_t> stacks_;
  uint64_t refused_ = 0;
};

// Turns notes into what a run file holds. Scalars of one step are one row of metrics; those that are neither a loss nor an
// accuracy are counters.
class NotesReader {
 public:
  struct Rows {
    std::vector<Metric> metrics;
    std::vector<Evaluation> evaluations;
    TraceBatch batch;
  };
  Rows read(HostNotes::Taken&& notes, int64_t origin, RunSummary& summary);
  Rows last();  // of the step that may have had more scalars

 private:
  void read(const HostNotes::Scalar& scalar, double wall_s, Rows& rows, RunSummary& summary);

  std::vector<std::string> stacks_;
  std::vector<Metric> open_metric_;  // none or one
  std::vector<Evaluation> open_evaluation_;
  BatchBuilder builder_;
};

}  // namespace ws::prof
