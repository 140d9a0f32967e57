// Computes the figures of the compared runs, one run per turn of the event loop, so that no turn is long.
#pragma once
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <map>
#include <memory>
#include <vector>

#include "app/core/comparison/comparison.h"
#include "app/workspace/report_reader.h"
#include "profiling/analysis/memory_curves.h"

namespace ws::app {

// The data of the Compare page: all runs, the baseline first and then the candidate, and their comparison.
struct ComparedRuns {
  std::vector<QPointer<Run>> runs;
  std::vector<std::shared_ptr<const ComparedRun>> figures;  // one per run
  QPointer<Run> baseline, candidate;
  Comparison comparison;
  bool pinned = false;  // the baseline judges every new run
  bool pair() const { return baseline && candidate; }
  std::vector<Measures> measures() const;
};

class CompareSamples : public QObject {
  Q_OBJECT
 public:
  explicit CompareSamples(QObject* parent = nullptr);
  void look(const std::vector<Run*>& runs);       // takes new data of these runs and forgets all others
  bool ready() const { return stale_.empty(); }   // the newest steps of every run have been taken
  std::shared_ptr<const ComparedRun> of(const Run* run) const;  // null if nothing was taken yet
  std::shared_ptr<const prof::MemoryCurves> memory(const Run* run) const;

 signals:
  void taken();  // all runs are done

 private:
  struct Cached {
    enum class Left { All, Memory, Nothing };
    Left left = Left::All;  // still to compute
    size_t spans = 0, steps = 0;
    std::unique_ptr<RankReader> ranks;
    bool ended = false;
    std::shared_ptr<const ComparedRun> run = std::make_shared<ComparedRun>();
    std::shared_ptr<prof::MemoryCurves> memory = std::make_shared<prof::MemoryCurves>();
  };
  void takeNext();
  void readRanks(Run* run);

  std::map<const Run*, Cached> samples_;
  std::vector<QPointer<Run>> stale_;
  QTimer next_;
};

}  // namespace ws::app
