// The critical paths of the steps around the view, one of each run of the timeline. They are computed on another thread, once
// the view stands still.
#pragma once
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <memory>
#include <vector>

#include "app/workspace/job.h"
#include "profiling/causes/span_path.h"

namespace ws::app {

class Run;
class TimelineModel;

class CriticalPaths : public QObject {
  Q_OBJECT
 public:
  explicit CriticalPaths(const TimelineModel* model);
  void setShown(bool shown);
  bool shown() const { return shown_; }
  const prof::SpanPath* of(const Run* run) const;  // nullptr: not shown, or not known
  QString whyNot() const;  // why no run has a path; empty if one has
  QString note() const;    // which steps of the view have a path; empty if all of them have

 signals:
  void changed();

 private:
  struct Known {
    QPointer<const Run> run;
    prof::TimeRange view, wanted;  // what is being computed, or was, and for which view
    prof::StepRange which;   // of the path
    std::shared_ptr<const prof::SpanPath> path;  // null: not computed yet
  };
  const Known* known(const Run* run) const;
  prof::TimeRange viewOf(int run) const;  // the part with data, in its own time
  void update();
  void compute(int run);

  const TimelineModel* model_;
  bool shown_ = false;
  std::vector<Known> known_;
  QTimer still_;
  Job job_;  // last member, so that it ends first
};

}  // namespace ws::app
