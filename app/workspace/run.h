// One run as the window sees it, live or opened from a file. It lives on the window's
// thread; panels listen to changed().
#pragma once
#include <QDateTime>
#include <QDeadlineTimer>
#include <QObject>
#include <QString>
#include <QStringList>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "app/core/runs/run_name.h"
#include "app/core/runs/traced_training.h"
#include "app/workspace/job.h"
#include "app/workspace/selection.h"
#include "app/workspace/step_split.h"
#include "profiling/analysis/allocator_history.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/pace.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/trace.h"

namespace ws::prof {
enum class StepsOf;
}

namespace ws::app {

struct StepPoint {
  double step, wall_s, epoch;
  float loss, accuracy;
};
struct EvalPoint {
  double step, wall_s, epoch;
  double loss, accuracy;
};
// Meter values at one moment. The calls are per step, over the steps since the point before.
struct MeterPoint {
  double step, wall_s;
  double allocate, free, samples_per_s, used, reserved;
};

// A moment that the user marked, in the run's own time. It is stored with the run.
struct TimeMark {
  prof::TimeNs time = 0;
  QString note;
  bool operator==(const TimeMark&) const = default;
};

// A loss of a program that has several.
struct LossCurve {
  QString name;
  bool test = false;
  const prof::CounterTrack* points = nullptr;  // nullptr: it is the loss in `steps`, or in `evals`
};

struct LogLine {
  QString text;
  bool problem = false;  // the user must know it now
};

enum class RunOrigin { Live, File, Imported };

class Run : public QObject {
  Q_OBJECT
 public:
  explicit Run(QObject* parent = nullptr) : QObject(parent) {}

  const RunId handle = next_run_id();  // of this object; `id` is kept in the file, which may be copied
  QString id, title, path, device, note;
  QStringList tags;
  QStringList command;   // command of a recorded program, which can be recorded again
  QString record_level;  // how much of its Python was recorded
  QString record_folder;  // where it was started: its source files are below
  std::map<std::string, std::string> sources;  // of its code that is in no file, by path: cells of a notebook
  RunOrigin origin = RunOrigin::Live;
  QDateTime created;
  RunSpec spec;  // its current choices: takeChange() puts the changes made during the run into them
  std::optional<CompiledPlan> plan;
  std::vector<StepPoint> steps;
  std::vector<EvalPoint> evals;
  std::vector<MeterPoint> meters;
  std::vector<Change> changes;
  std::optional<Progress> progress;
  std::optional<Summary> summary;
  prof::Trace trace;
  StepSplit split;
  prof::AllocatorHistory allocator_calls;  // calls to the driver, counted by its callbacks
  std::vector<TimeMark> time_marks;
  std::vector<LogLine> log;
  QString trace_note;          // what was traced and dropped, and the cost of tracing
  QString counters_note;       // whether hardware counters were sampled; empty if not requested
  bool counters_refused = false;
  QString xray_note;           // what was sampled of instructions, or why not; empty if not requested
  prof::StepTime step_time;    // from the newest steps while it trains; once ended, the stored value
  Interval tracing_cost;       // share of an untraced step; NaN if not measured
  bool lab = false;         // a laboratory sweep: curves and timelines, no training
  bool recording = false;   // another program that is being recorded
  int letter = -1;          // number of its letter and colour, for its lifetime; -1: never shown
  int slot = -1;            // its letter while the selection has it; -1: not shown
  bool named = false;       // by the user; otherwise the title follows changes during the run
  bool unfinished = false;  // the program ended before the run did
  bool elsewhere = false;   // another program trains it now
  bool shipped = false;     // came with the program, recorded on a GPU: it is never changed
  bool loaded = true;       // false: only the summary was read; losses and trace are still in the file
  std::shared_ptr<prof::RunFileReader> reader;  // for a run opened from a file: reads spans that are not in memory
  size_t history_bytes = 192u << 20;            // how much of the trace stays in memory; the run file has all of it

  // Where its steps are in time: as the GPU ran them if the host ran ahead, otherwise as the host marked them.
  const prof::Trace& marks() const { return gpu_steps_.empty() ? trace : gpu_steps_.trace(); }
  bool hasGpuSteps() const { return !gpu_steps_.empty(); }
  prof::TimeNs arrived() const { return arrived_until(trace, !live()); }  // the trace is complete until then
  void takeGpuSteps(prof::GpuSteps&& taken) { gpu_steps_ = std::move(taken); }

  bool live() const { return (origin == RunOrigin::Live || recording) && !summary; }
  int64_t stepsMade() const;  // as far as known
  // The figures that every view shows. NaN if unknown.
  double stepUs() const { return step_time.us.value; }
  double samplesPerSecond() const;
  double meanUs() const;     // mean step of the whole run so far
  double trainLoss() const;  // from the last batch
  std::span<const StepPoint> countedSteps() const;  // while it trains: up to where its figures were last made
  prof::StepsOf stepsOf() const;
  bool machineBusy() const;  // something else used the machine while it was measured
  bool hasLoss() const;      // false: another program that logged none
  std::vector<LossCurve> lossCurves() const;  // of a program with several losses; empty if there is one of a kind
  double testLoss() const, testAccuracy() const;  // from the last test
  double peakBytes() const;
  double driverCalls() const;  // calls to the driver's allocator, per step
  bool hasChoices() const { return origin != RunOrigin::Imported || !spec.name.empty(); }  // false for another program
  // Takes the figures that are stored with the run, from its file or at its end.
  void takeAccount(const prof::RunSummary& account);
  int64_t steadySince() const { return steady_since_; }  // the first step after the last change of execution
  void setSteadySince(int64_t step) { steady_since_ = step; }
  double stepsPerEpoch() const { return steps_per_epoch_; }
  double stepAt(prof::TimeNs time) const;
  prof::TimeNs timeOfStep(double step) const;
  const EvalPoint* bestEval() const;  // highest accuracy, or lowest loss for regression
  bool regression() const { return spec.model.loss == LossKind::MeanSquared; }

  void apply(RunUpdate&& update);  // appends and emits changed()
  void takeChange(const Change& change);
  // Maximum number of loss points in memory. Of older ones only the extremes stay. stepsThinned() counts how often
  // that happened, for users of their indices.
  static constexpr size_t kMostSteps = 1 << 19;
  int stepsThinned() const { return steps_thinned_; }
  // Reads spans of the range from the run file, a few blocks at a time. Returns true if there was something
  // to read. The range stays in memory until another one is fetched. A range with more than `most` spans is
  // not read: it is drawn from sums.
  bool fetch(prof::TimeNs begin, prof::TimeNs end) { return fetch(begin, end, history_bytes / sizeof(prof::Span) / 2); }
  bool fetch(prof::TimeNs begin, prof::TimeNs end, size_t most);
  // True if the user folded this block of layers ("block 2"), in any view and session. `at_first`: until the user chose.
  bool folded(const std::string& block, bool at_first = false);
  std::map<std::string, std::string> blocks() const;  // of its plan, see blocks_of()
  std::map<std::string, std::string> foldedBlocks();  // those that the user folded
  void setFolded(const std::string& block, bool folded);  // kept with the settings of the program
  void setTimeMarks(std::vector<TimeMark> marked);  // also writes them into the run file, in the background
  void setStepsPerEpoch(double count) { steps_per_epoch_ = count; }
  void announce() { emit changed(); }
  void finish() { emit ended(); }

 signals:
  void changed();
  void ended();
  void foldsChanged();

 private:
  void applyProgress(const Progress& now);
  void applyTrace(RunUpdate& update);
  void takeLastTest();
  void rest();
  void applyChanges(const std::vector<Change>& changes);
  void thinSteps();
  prof::RunFileReader* file();  // the file with spans that are not in memory; nullptr if there is none

  std::map<std::string, bool>& folds();

  std::optional<std::map<std::string, bool>> folds_;  // read from the settings when first asked for
  double steps_per_epoch_ = 0;
  int steps_thinned_ = 0;
  Progress metered_;  // progress at the last point of `meters`
  prof::GpuSteps gpu_steps_;
  bool host_ahead_ = false;                         // since a change during the run
  int64_t steady_since_ = 0;                        // the first step after the last change of execution
  prof::PaceLog losses_;                            // losses since then
  std::shared_ptr<prof::RunFileReader> written_;    // the run file of a live run
  bool unreadable_ = false;                         // reported once
  prof::TimeNs looked_begin_ = 0, looked_end_ = 0;  // the range fetched last
  QDeadlineTimer split_due_{0};
  size_t counted_steps_ = 0;  // see countedSteps(); 0: all
  Job keeping_marks_;
};

// "graph · arena · epilogue": distinguishes this run from others at a glance.
QString short_title(const RunSpec& spec);
// "arena → direct, lr 0.05 → 0.01 + 3 more"; empty if nothing differs. `most`: the number of changes by name.
QString changes_between(const RunSpec& before, const RunSpec& spec, size_t most = 2);
inline constexpr size_t kAllChanges = std::numeric_limits<size_t>::max();
// Its title; beside runs of the same title with what differs: "mnist · peer".
// `shown`: as RunLibrary::ticked() gives them. nullptr: none is shown.
Run* current_of(const std::vector<Run*>& shown);
QString title_among(const Run& run, const std::vector<const Run*>& runs);
QString spec_subtitle(const RunSpec& spec);
QString run_caption(const Run& run);            // "A direct · MNIST, batch 64, fp32 · NVIDIA H200"
QString weights_path(const QString& run_path);  // file with the final weights of a run

}  // namespace ws::app
