// What a recorded program reports beside its ranges: logged scalars, stack samples and facts about itself. Any of its
// threads can add notes; the thread that writes the run file takes them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "profiling/trace/code_places.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

// What a scalar measures, judged by its name: "train/loss", "val_acc".
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
    uint32_t name = 0;
    std::string row;
  };
  struct Capture {  // a capture range begins or ends
    int64_t time = 0;  // steady clock
    int64_t on = 0;
  };
  struct Taken {
    std::vector<Scalar> scalars;
    std::vector<Sample> samples;
    std::vector<std::variant<std::string, std::shared_ptr<const CodeStack>>> names;  // only the new ones
    std::map<std::string, std::string> facts;
    std::vector<Capture> captures;
    uint64_t refused = 0;  // notes refused for lack of memory
    bool empty() const { return scalars.empty() && samples.empty() && names.empty() && facts.empty() && captures.empty() && refused == 0; }
  };

  void scalar(std::string_view name, double value, int64_t step);
  // Return a number for sample(). Equal names and equal stacks have equal numbers.
  uint32_t name(std::string_view text);
  uint32_t stack(CodeStack stack);
  void sample(std::string_view row, uint32_t name, int64_t begin, int64_t end);
  void fact(std::string_view key, std::string_view value);
  void capture(bool on);
  Taken take();

 private:
  static constexpr size_t kMostWaiting = 1'000'000, kMostNames = 100'000;
  uint32_t number(std::string key, std::variant<std::string, std::shared_ptr<const CodeStack>> name);
  mutable std::mutex mutex_;
  Taken waiting_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

// Converts notes to the content of a run file. Scalars of one step form one row of metrics. Scalars that are neither a
// loss nor an accuracy become counters. So do a second accuracy and further losses, which the loss chart shows.
class NotesReader {
 public:
  struct Rows {
    std::vector<Metric> metrics;
    std::vector<Evaluation> evaluations;
    TraceBatch batch;
  };
  Rows read(HostNotes::Taken&& notes, int64_t origin, RunSummary& summary);
  Rows last();  // returns the last step, which was kept open for more scalars

 private:
  void read(const HostNotes::Scalar& scalar, double wall_s, Rows& rows, RunSummary& summary);

  struct Role {
    std::string first;   // scalars of this role with other names are counters
    bool named = false;  // a counter shows the first one's name
  };
  bool is_first_of(ScalarRole role, const HostNotes::Scalar& scalar, TimeNs time);

  std::map<ScalarRole, Role> roles_;
  std::vector<BatchBuilder::Name*> sample_names_;  // by number
  std::vector<Metric> open_metric_;  // zero or one
  std::vector<Evaluation> open_evaluation_;
  BatchBuilder builder_;
};

}  // namespace ws::prof
