// The data of the timeline: the ticked runs, the alignment of their times, the lanes and the marks.
#pragma once
#include <QObject>
#include <QPointer>
#include <memory>
#include <optional>

#include "app/timeline/critical_paths.h"
#include "app/timeline/lane_layout.h"
#include "app/timeline/time_scale.h"
#include "app/workspace/run.h"
#include "app/workspace/time_cursor.h"
#include "profiling/analysis/memory_curves.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {

enum class Align { Wall, RunStart, Step };

struct Mark {
  prof::TimeNs time = 0;  // in view time
  QString note;
  int run = 0;  // the run that stores it
};

class TimelineModel : public QObject {
  Q_OBJECT
 public:
  explicit TimelineModel(TimeCursor* cursor, QObject* parent = nullptr);

  TimeCursor* cursor() const { return cursor_; }
  CriticalPaths* paths() { return &paths_; }
  const CriticalPaths* paths() const { return &paths_; }
  TimeRange range() const { return {cursor_->begin(), cursor_->end()}; }
  void setRuns(const std::vector<Run*>& runs);
  void setShown(const Run* run);  // the run that the window shows: its lanes come first
  size_t runCount() const { return runs_.size(); }
  Run* run(int index) const { return runs_[static_cast<size_t>(index)]; }
  int indexOf(const Run* run) const;

  // run time = view time + offset. The first run's offset is 0, except while a live run is aligned by step.
  prof::TimeNs offset(int run) const { return offsets_[static_cast<size_t>(run)]; }
  TimeRange runRange(int run, TimeRange view) const { return {view.begin + offset(run), view.end + offset(run)}; }
  TimeRange extent() const;  // covers all runs, in view time
  TimeRange stepsExtent() const;  // from the first step to the last; where a run marks none, all of it

  Align align() const { return align_; }
  int64_t alignedStep() const { return aligned_step_; }
  int64_t alignedStepOf(int run) const;  // the nearest step that it has
  void setAlign(Align align);
  void alignAtStep(int64_t step);

  const prof::CounterTrack& counter(CounterRef ref) const;
  prof::MemoryLines memoryLines(int run) const { return curves_[static_cast<size_t>(run)].lines(); }
  const prof::Trace& traceOf(const Lane& lane) const;  // the trace with its tracks
  const std::vector<Lane>& lanes() const { return lanes_; }
  const Lane* laneOf(int run, size_t track) const;  // null if no lane shows the spans of that track
  const LaneSettings& settings() const { return settings_; }
  int contentHeight() const { return content_height_; }
  QString emptyText() const;  // shown when there are no lanes
  void setViewport(int height, bool small);
  void setFilter(const QString& filter);
  void toggleFolded(const QString& key);
  void togglePinned(const QString& key);
  void setHidden(const QString& key, bool hidden);
  std::vector<std::pair<QString, QString>> hidden() const;  // keys and names of the hidden lanes
  void showAll();
  void setQuietRows(bool shown);
  void moveLane(const QString& key, int by);  // inside its group
  QByteArray saveLanes() const;               // folded, hidden, pinned, order, and quiet_rows
  void restoreLanes(const QByteArray& state);

  const std::vector<Mark>& marks() const { return marks_; }  // marks of all runs, sorted
  void addMark(Mark mark);
  void setNote(size_t mark, const QString& note);
  void removeMark(size_t mark);

  // Moves the shared range to the newest steps of the live run whose records are complete.
  // Does nothing if Follow is off.
  void follow();
  int leader() const;           // the run that the window shows, otherwise the live one or the first; −1: none

 signals:
  void lanesChanged();  // the lanes or their positions changed
  void dataChanged();   // new data in the lanes
  void marksChanged();
  void alignChanged();

 private:
  std::vector<Lane> built() const;
  std::vector<Lane> builtWith(const LaneSettings& settings) const;
  void place(std::vector<Lane> lanes);
  void rebuild();
  void onRunChanged();
  std::optional<prof::TimeNs> leaderOffset() const;
  void keepInPlace(int leading, std::optional<prof::TimeNs> before);  // `before`: offset of the leader
  void lookOnce();
  std::optional<int64_t> commonStep() const;  // the newest step that all runs have; none if there is none
  int tracedLeader() const;            // −1: not known yet
  TimeRange firstLook(int run) const;  // the first range to show, if the user chose none: a few steps
  void readMarks();
  void writeMarks();
  void updateOffsets();
  prof::TimeNs offsetFor(const Run& run) const;
  void moveTo(TimeRange range);

  TimeCursor* cursor_;
  std::vector<QPointer<Run>> runs_;
  QPointer<const Run> shown_;
  std::vector<prof::TimeNs> offsets_;
  std::vector<prof::MemoryCurves> curves_;  // one per run
  std::vector<Lane> lanes_;
  QString shape_;  // describes the lanes as last built
  LaneSettings settings_;
  std::vector<Mark> marks_;
  Align align_ = Align::Step;
  int64_t aligned_step_ = 0;
  int viewport_ = 0, content_height_ = 0;
  bool looked_ = false;    // a range was chosen, by the user or by firstLook()
  TimeRange first_look_;   // the range that firstLook() chose
  size_t looked_at_ = 0;   // how many runs had a trace then: files are read one after another
  bool own_width_ = true;  // we choose the width of the followed range
  bool followed_ = false;  // a run trained at the last change: its end must still be shown
  CriticalPaths paths_{this};  // last member: it uses the members above
};

}  // namespace ws::app
