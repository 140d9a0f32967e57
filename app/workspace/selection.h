// Which runs the window shows, and the role of each: one current run, a baseline, and further compared runs. Every page
// reads it. A class without a widget, so that its table of actions is a plain test.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace ws::app {

enum class RunId : uint32_t { None };
RunId next_run_id();  // one for each run that this program opens

class Selection {
 public:
  static constexpr size_t kMost = 8;  // as many as there are colours

  // In the order of their roles: the current run, the baseline, the other compared runs.
  const std::vector<RunId>& runs() const { return runs_; }
  // In the order of `warpsight diff`, of reports and of all pages: the baseline, the current run, the other compared runs.
  std::vector<RunId> baselineFirst() const { return baseline_first(runs_); }
  static std::vector<RunId> baseline_first(std::vector<RunId> runs);  // and back
  RunId current() const { return at(0); }   // None: no run is shown
  RunId baseline() const { return at(1); }  // None: the current run stands alone
  bool has(RunId run) const;

  // A training or recording. `comparable`: with the run that is current now, which becomes the baseline. Otherwise the
  // new run stands alone.
  void started(RunId run, bool comparable);
  void startedInSeries(RunId run);  // after the first of several trainings: no compared run leaves
  void ended(RunId run, bool any_step);  // a run without a step leaves, and what was shown before it comes back

  void select(RunId run);  // makes it current. A compared run changes places with the current one.
  void compareWith(RunId baseline);
  void compare(RunId baseline, RunId current);  // exactly these two
  bool add(RunId run);  // with the first role that is free; false if there is none
  void drop(RunId run);  // the next run takes its role
  void setBaseline(RunId run);
  void swap();                                // current run and baseline
  void open(const std::vector<RunId>& runs);  // only these

  void removed(RunId run, RunId newest);  // deleted, or its file is gone; `newest` is current if no compared run is left
  void restored(RunId removed, RunId now);  // the undone deletion opened the file as another run
  void replaced(RunId live, RunId file);    // a finished recording or a copy that arrived is opened as another run

  std::function<void()> changed;  // called once for an action that changes something

 private:
  struct Removal {
    RunId run;
    std::vector<RunId> before, after;
  };
  RunId at(size_t role) const { return role < runs_.size() ? runs_[role] : RunId::None; }
  void show(std::vector<RunId> runs);
  std::vector<RunId> without(RunId run) const;

  std::vector<RunId> runs_;
  RunId newest_start_ = RunId::None;
  std::vector<RunId> before_start_;  // what was shown before the newest run started
  std::vector<Removal> removals_;
};

}  // namespace ws::app
