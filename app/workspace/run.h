// One run as the window sees it, live or opened from a file. Lives on the window's thread; panels listen to changed().
#pragma once
#include <QDateTime>
#include <QDeadlineTimer>
#include <QObject>
#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

#include "app/core/runs/traced_training.h"
#include "app/workspace/job.h"
#include "app/workspace/step_split.h"
#include "profiling/analysis/allocator_history.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/pace.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/trace.h"

namespace ws::app {

struct StepPoint {
  double step, wall_s, epoch;
  float loss, accuracy;
};
struct EvalPoint {
  double step, wall_s, epoch;
  double loss, accuracy;
};
// What the meters said at one moment; the calls are per step, over the steps since the point before.
struct MeterPoint {
  double step, wall_s;
  double allocate, free, samples_per_s, used, reserved;
};

// A moment that a person marked, in the run's own time; kept with the run.
struct TimeMark {
  prof::TimeNs time = 0;
  QString note;
  bool operator==(const TimeMark&) const = default;
};

struct LogLine {
  QString text;
  bool problem = false;  // a person must know now
};

enum class RunOrigin { Live, File, Imported };

class Run : public QObject {
  Q_OBJECT
 public:
  explicit Run(QObject* parent = nullptr) : QObject(parent) {}

  QString id, title, path, device, note;
  QStringList tags;
  QStringList command;   // of a program that was recorded, and can be again
  QString record_level;  // how much of its Python was recorded
  RunOrigin origin = RunOrigin::Live;
  QDateTime created;
  RunSpec spec;
  std::optional<CompiledPlan> plan;
  std::vector<StepPoint> steps;
  std::vector<EvalPoint> evals;
  std::vector<MeterPoint> meters;
  std::vector<Change> changes;
  std::optional<Progress> progress;
  std::optional<Summary> summary;
  prof::Trace trace;
  StepSplit split;
  prof::AllocatorHistory allocator_calls;  // to the driver, as its callbacks counted them
  std::vector<TimeMark> time_marks;
  std::vector<LogLine> log;
  QString trace_note;          // what was traced, dropped, and what it cost
  QString counters_note;       // whether hardware counters were sampled; empty: not asked for
  bool counters_refused = false;
  prof::StepTime step_time;    // of the newest steps while it trains; of an ended run the one that is kept with it
  Interval tracing_cost;       // a share of an untraced step; NaN: not measured
  bool lab = false;         // a sweep of the laboratory: curves and timelines, no training
  bool recording = false;   // another program that is being recorded
  int letter = -1;          // number of its letter and colour, for its life; -1: it was never ticked
  int slot = -1;            // the letter while it is ticked; -1: not ticked
  bool named = false;       // by a person; else the title says what changes in mid-run
  bool unfinished = false;  // the program ended before the run did
  bool elsewhere = false;   // another program trains it now
  bool shipped = false;     // came with the program, recorded on a GPU: nothing of it is changed
  bool loaded = true;       // false: only the summary was read, the losses and the trace are still in the file
  std::shared_ptr<prof::RunFileReader> reader;  // of an opened run: gives spans that are not in memory
  size_t history_bytes = 384u << 20;            // what of the trace is kept in memory; the run file has all of it

  // Where its steps stand in time: as the GPU ran them when the host runs ahead, else as the host marked them.
  const prof::Trace& marks() const { return gpu_steps_.empty() ? trace : gpu_steps_.trace(); }
  bool hasGpuSteps() const { return !gpu_steps_.empty(); }
  prof::TimeNs arrived() const { return arrived_until(trace, !live()); }  // until when the trace is whole
  void takeGpuSteps(prof::GpuSteps&& taken) { gpu_steps_ = std::move(taken); }

  bool live() const { return (origin == RunOrigin::Live || recording) && !summary; }
  int64_t stepsMade() const;  // as far as is known
  // The figures that every view shows. NaN: not known.
  double stepUs() const { return step_time.us.value; }
  double samplesPerSecond() const;
  double meanUs() const;     // the mean step of the whole run, or so far
  double trainLoss() const;  // of the last batch
  double testLoss() const, testAccuracy() const;  // of the last test
  double peakBytes() const;
  double driverCalls() const;  // to the driver's allocator, per step
  bool hasChoices() const { return origin != RunOrigin::Imported || !spec.name.empty(); }  // false: another program's
  // Takes the figures that are kept with the run, in its file or at its end.
  void takeAccount(const prof::RunSummary& account);
  int64_t steadySince() const { return steady_since_; }  // the first step with the last choices of execution
  void setSteadySince(int64_t step) { steady_since_ = step; }
  double stepsPerEpoch() const { return steps_per_epoch_; }
  double stepAt(prof::TimeNs time) const;
  prof::TimeNs timeOfStep(double step) const;
  const EvalPoint* bestEval() const;  // highest accuracy, or lowest loss for regression
  bool regression() const { return spec.model.loss == LossKind::MeanSquared; }

  void apply(RunUpdate&& update);  // appends and emits changed()
  // Points of losses in memory. Of older ones only the extremes stay; how often that was done tells who counts on
  // their places.
  static constexpr size_t kMostSteps = 1 << 19;
  int stepsThinned() const { return steps_thinned_; }
  // Reads spans of the range from the run file, a few blocks at a time; true when there was something to read. The
  // range stays in memory until another is fetched. One of more than `most` spans is left as it is: a picture of so
  // many is drawn from their sums.
  bool fetch(prof::TimeNs begin, prof::TimeNs end) { return fetch(begin, end, history_bytes / sizeof(prof::Span) / 2); }
  bool fetch(prof::TimeNs begin, prof::TimeNs end, size_t most);
  void setTimeMarks(std::vector<TimeMark> marked);  // and writes them into the run file, in the background
  void setStepsPerEpoch(double count) { steps_per_epoch_ = count; }
  void announce() { emit changed(); }
  void finish() { emit ended(); }

 signals:
  void changed();
  void ended();

 private:
  void applyProgress(const Progress& now);
  void applyTrace(RunUpdate& update);
  void takeLastTest();
  void rest();
  void applyChanges(const std::vector<Change>& changes);
  void thinSteps();
  prof::RunFileReader* file();  // where the spans are that are not in memory; nullptr: nowhere

  double steps_per_epoch_ = 0;
  int steps_thinned_ = 0;
  prof::GpuSteps gpu_steps_;
  bool host_ahead_ = false;                         // since a change in mid-run
  int64_t steady_since_ = 0;                        // the first step with the last choices of execution
  prof::PaceLog losses_;                            // seen since then
  std::shared_ptr<prof::RunFileReader> written_;    // the file that a run of this session is written into
  bool unreadable_ = false;                         // said once
  prof::TimeNs looked_begin_ = 0, looked_end_ = 0;  // what was fetched last
  QDeadlineTimer split_due_{0};
  Job keeping_marks_;
};

// "graph · arena · epilogue": what tells this run from another at a glance.
QString short_title(const RunSpec& spec);
// "direct ← arena, lr 0.01 ← 0.05"; empty: nothing differs, or too much to be said.
QString changes_between(const RunSpec& before, const RunSpec& spec);
QString title_after(const RunSpec& spec, const RunSpec* before);  // its changes, else its short title
QString spec_subtitle(const RunSpec& spec);
QString run_caption(const Run& run);            // "A direct · MNIST, batch 64, fp32 · NVIDIA H200"
RunSpec spec_now(const Run& run);               // with the changes made in mid-run
QString weights_path(const QString& run_path);  // where the weights lie that a run ended with

}  // namespace ws::app
