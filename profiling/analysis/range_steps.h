// Steps of a program whose ranges name them: where the host marked each one and where the GPU ran it. It grows while
// the program runs, so that a step can be shown soon after it ended.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "profiling/analysis/step_pattern.h"

namespace ws::prof {

class RangeSteps {
 public:
  using Kernels = std::map<std::string, std::vector<SeenKernel>>;  // by row

  RangeSteps() = default;
  RangeSteps(RangeSteps&&) = default;  // no copies: it points into its maps
  RangeSteps& operator=(RangeSteps&&) = default;

  void range(FoundStep range) { fresh_.push_back(range); }  // its name says that it is a step
  void launch(const std::string& thread, SeenLaunch launch);
  void drop_launches() { launches_ = {}; sorted_ = looked_ = 0; }
  // Gives the kernels to the steps that launched them, and takes those out of `kernels`. The other ones stay, because
  // their launch or their step is not known yet. `now`: the newest time. `over`: nothing more follows.
  void update(Kernels& kernels, TimeNs now, bool over);

  bool any() const { return host_.size() >= 2; }  // of nested ranges, the outer one is the step
  bool launches_known() const { return !threads_.empty(); }
  const std::vector<FoundStep>& host() const { return host_; }
  // Brings `steps` up to date with the steps that are complete, and returns the number of steps that stayed. A step is
  // complete if its kernels are there, or if they did not come for some seconds. If the host runs ahead, its ranges end
  // before their kernels begin and say nothing about GPU time: then the steps are where the GPU ran them. `may_move`:
  // false: the steps stay where the host marked them.
  size_t show(std::vector<FoundStep>& steps, bool may_move);

 private:
  struct Launch {
    uint32_t call = 0;
    uint16_t thread = 0;
    bool seen = false;  // a kernel of it came
    TimeNs start = 0;
  };
  struct Row {
    std::vector<FoundStep> gpu;  // by step; kNone if it ran no kernel there
    size_t kernels = 0, unknown = 0;
    TimeNs launched_until = -kAlways;
    size_t asked = 0;  // waiting kernels at the begin whose launch was looked for before
  };
  static constexpr FoundStep kNone{kAlways, -kAlways};

  void take_ranges(bool over);
  void take_range(FoundStep range);
  void sort_launches();
  Launch* launch_of(uint32_t call);
  void place(Row& row, std::vector<SeenKernel>& kernels, TimeNs until, bool over);
  void look_for_complete(const Kernels& kernels, TimeNs now, bool over);
  void forget_launches();
  const Row* busiest() const;
  FoundStep on_gpu(const Row& row, size_t step, TimeNs before) const;
  bool runs_ahead(const Row* row, bool may_move);

  std::vector<FoundStep> fresh_, host_;  // host_: in order, none overlaps another
  size_t certain_ = 0;                   // host steps whose successor is known
  std::vector<Launch> launches_;         // by call, up to sorted_
  size_t sorted_ = 0, looked_ = 0;       // every launch before looked_ was seen, or is not waited for
  std::map<std::string, uint16_t> threads_;
  const std::pair<const std::string, uint16_t>* newest_ = nullptr;  // of the last launch
  std::vector<bool> ours_;  // by thread: some of its launches were seen. Another rank's thread launches nothing of ours
  std::map<std::string, Row> rows_;
  size_t complete_ = 0, candidate_ = 0;
  bool over_ = false, any_kernel_ = false;
  TimeNs seen_before_ = -kAlways;  // a call ago, kernels launched until then had been seen
  size_t hint_ = 0;                // of launch_of(): kernels come in the order of their launches
  // What show() did last.
  bool ahead_ = false;
  size_t decided_ = 0;  // complete steps when it was last decided who runs ahead
  size_t changed_ = 0;  // steps from here on have changed since
  const Row* row_ = nullptr;
};

}  // namespace ws::prof
