// Ranges that a recorded program marks itself (NVTX, Python). A name together with the ranges around it is an op of the
// trace, so that launches are joined to the innermost range.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiling/annotate/annotate.h"
#include "profiling/annotate/code_stack.h"
#include "profiling/collectors/marks.h"

namespace ws::prof {

// The parts of a range's text. PyTorch appends numbers to the names of its ops: "aten::addmm, seq = 12, op_id = 7".
struct RangeText {
  std::string_view name;
  int64_t sequence = -1;  // autograd's number: equal for an op and its backward function
};
RangeText range_text(std::string_view text);
bool is_backward_function(std::string_view name);  // "AddmmBackward0"

class ProgramRanges {
 public:
  static ProgramRanges& instance();  // lives until the process ends

  // Outside of capture ranges nothing is recorded, and each call returns at once. Ranges that are open when a pause begins
  // end there: on the calling thread now, on others when they mark their next one. A step begins when the pause ends.
  void pause(bool on, int64_t now);
  bool paused() const { return (pauses_.load(std::memory_order_relaxed) & 1) != 0; }

  // On the marking thread. pop() ends the newest range of its domain. 0.1 µs each.
  void push(std::string_view text, uint64_t domain = 0);
  void push(OpTag place, uint64_t domain = 0);
  void pop(uint64_t domain = 0);
  // A range that may end on another thread. It is drawn, but launches are not joined to it.
  uint64_t start(std::string_view text);
  void end(uint64_t id);

  // Range of a module. Ops that autograd numbers inside it, see follow_sequence(), belong to the module.
  void enter(OpTag place, uint64_t domain, OpTag line = kNoOp);
  void enter(std::string_view name, uint64_t domain, OpTag line);
  void leave(uint64_t domain);
  // `here` returns the current line of the program's own code on this thread. Called at each range that is not inside
  // an op, and at each launch outside of ops.
  void find_lines(OpTag (*here)()) { here_ = here; }
  void follow_sequence(uint64_t (*next)()) { next_sequence_ = next; }
  // `find` returns an op with the native frames of the calling thread. Called at each launch.
  void find_native_frames(OpTag (*find)(OpTag)) { native_ = find; }
  OpTag with_native_frames(OpTag op) const {
    const auto find = native_.load(std::memory_order_relaxed);
    return find ? find(op) : op;
  }
  // An op of a framework; `sequence` of autograd, or -1. `name` need not outlive the call. Calls backward_reaches() for
  // a backward function.
  void push_op(const char* name, int64_t sequence, uint64_t domain);
  // The backward pass has reached what was made with this sequence number. Begins the backward range of its module and
  // ends the range of the previous module.
  void backward_reaches(int64_t sequence);
  void end_backward();  // for all threads: each notices when it reaches its next module

  // The op of a launch on this thread now, on its current line where lines are found.
  OpTag op_at_launch(MarkedThread& thread);

  // The line of the program that a stack stands for; its function is the name.
  OpTag line(CodeStack stack);
  // A place in code that torch.compile generated from these ops. The stack may be empty.
  OpTag generated(std::string_view ops, CodeStack stack);
  // Ends the step with this number and begins the next. No step is open before the first call. -1: ends none.
  void step(int64_t number);
  void forget_steps();  // a recording begins: the open step began in an earlier one
  // Number of the open step + 1, as the program counts; 0: none is open. From any thread.
  uint32_t open_step() const { return open_step_.load(std::memory_order_relaxed); }
  // This thread works for a rank from now on; -1: for none. Each GPU is the rank with its number.
  void work_for(int rank);
  bool gpus_are_ranks() const { return gpus_are_ranks_.load(std::memory_order_relaxed); }

  // Returns the tag of a named place in the program: a module with its path as layer, an op, or a line. Equal places
  // share one tag. With very many places, numbers in paths are dropped, later the paths.
  OpTag place(OpInfo info);
  // Returns the op of a range called `text` inside the op `around`.
  OpTag inside(std::string_view text, OpTag around);

 private:
  ProgramRanges() = default;
  struct Started {
    int64_t time;
    OpTag op;
    int depth;
  };
  void end_open(MarkedThread& thread);
  MarkedThread* active_thread();  // this thread; nullptr outside of capture ranges
  OpTag child(std::string_view name, OpTag around, OpTag line);
  OpTag on_line(MarkedThread& thread, OpTag place);
  OpTag backward_of(std::string_view name, OpTag forward);
  OpTag make_backward_of(std::string_view name, OpTag forward);
  void number_until(RangesOfThread& own, uint64_t next);
  void keep_forward(int64_t sequence, OpTag op);
  OpTag backward_place(OpTag forward);
  OpTag evaluated(OpTag range, OpTag forward);
  OpTag forward_op(int64_t sequence) const;
  OpTag add(OpInfo info, bool leaf);
  OpTag at_place(std::string_view name, CodeStack stack);
  std::string with_few_numbers(std::string_view name);
  std::string path_below(OpTag around) const;

  mutable std::mutex mutex_;
  std::vector<bool> leaf_;  // by tag: ranges inside get this op's path, not a longer one
  std::unordered_set<OpTag> generated_;
  size_t stack_bytes_ = 0;
  std::unordered_map<std::string, std::unordered_set<std::string>> numbered_;  // names by their form without numbers
  // The newest by sequence number. A forward op is stored with its number, because it may have been replaced.
  static constexpr size_t kNumbers = size_t{1} << 16;
  std::vector<std::atomic<uint64_t>> forward_ = std::vector<std::atomic<uint64_t>>(kNumbers);
  std::vector<std::atomic<OpTag>> module_of_ = std::vector<std::atomic<OpTag>>(kNumbers);
  std::unordered_map<OpTag, OpTag> backward_places_;
  std::unordered_map<uint32_t, OpTag> evaluated_;
  std::atomic<uint64_t (*)()> next_sequence_{nullptr};
  std::atomic<OpTag (*)()> here_{nullptr};
  std::atomic<OpTag (*)(OpTag)> native_{nullptr};
  std::unordered_map<uint64_t, Started> started_;
  uint64_t last_id_ = 0;
  std::atomic<int64_t> backward_ended_{0}, step_began_{0}, paused_at_{0};
  std::atomic<uint32_t> pauses_{0};  // odd: paused
  std::atomic<uint32_t> open_step_{0};
  std::atomic<bool> gpus_are_ranks_{false};
};

}  // namespace ws::prof
