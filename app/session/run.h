// One run as the window sees it, live or opened from a file. Lives on the window's thread; panels listen to changed().
#pragma once
#include <QDateTime>
#include <QObject>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "app/session/recorder.h"
#include "profiling/trace.h"

namespace ws::app {

struct StepPoint { double step, wall_s, epoch; float loss, accuracy; };
struct EvalPoint { double step, wall_s, epoch; double loss, accuracy; };
struct SplitPart { prof::Meaning meaning; QString name; double us = 0; };  // of one step; parts sum to the wall time
struct StepSplit { std::vector<SplitPart> parts; double wall_us = 0; int64_t steps = 0; };

enum class RunOrigin { Live, File, Imported };

class Run : public QObject {
  Q_OBJECT
 public:
  explicit Run(QObject* parent = nullptr) : QObject(parent) {}

  QString id, title, path, device;
  RunOrigin origin = RunOrigin::Live;
  QDateTime created;
  RunSpec spec;
  std::optional<CompiledPlan> plan;
  std::vector<StepPoint> steps;
  std::vector<EvalPoint> evals;
  std::vector<Change> changes;
  std::optional<Progress> progress;
  std::optional<Summary> summary;
  prof::Trace trace;
  StepSplit split;
  QString trace_note;          // what was traced, dropped, and what it cost
  double overhead_share = 0;   // of tracing; 0.038 is 3.8 %
  int slot = -1;               // 0 … 7: letter and colour while ticked; -1: not ticked
  bool live() const { return origin == RunOrigin::Live && !summary; }

  void apply(RunUpdate&& update);  // appends and emits changed()

 signals:
  void changed();
  void ended();
};

}  // namespace ws::app
