// Shows where time went: in the steps of a run, and in a range of the timeline.
#pragma once
#include "app/timeline/stored_search.h"
#include "app/workspace/focus.h"

namespace ws::app {

// Sums of a range that is partly out of memory, read from the run file.
struct SummedRange {
  RunRange range;
  StoredSums sums;
  QString problem;  // why the sums are unknown
};
// `letters`: the maximum length of a name.
QString range_details(const std::vector<RunRange>& ranges, int letters, const std::vector<SummedRange>& from_file = {});

// Where the time of a run's newest steps went, how busy the GPU was, the launch delay, and the cost of tracing.
QString step_details(const Run& run);

// The sums of the selected ranges. If spans are out of memory, it reads the run files one after the other.
class RangeDetails : public QObject {
  Q_OBJECT
 public:
  explicit RangeDetails(Focus* focus) : focus_(focus) {}
  QString html(int letters);  // empty if no range is selected

 signals:
  void changed();  // a file was read

 private:
  void sumFromFiles();

  Focus* focus_;
  StoredSearch search_;
  std::vector<SummedRange> summed_;
};

}  // namespace ws::app
