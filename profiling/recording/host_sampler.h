// Samples the stacks of all threads every millisecond, on its own thread, which the interpreter does not know: the Python
// frames, and if asked for the native frames inside the innermost one, and threads without Python. It waits for the
// interpreter's lock only when it sees code for the first time.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/base/small_thread.h"
#include "profiling/recording/host_notes.h"
#include "profiling/recording/native_stacks.h"
#include "profiling/recording/python_frames.h"

namespace ws::prof {

class HostSampler {
 public:
  struct Options {
    // Returns the name of a thread of Python; called without the interpreter's lock, which it takes itself.
    std::function<std::string(unsigned long)> thread_name;  // empty: not known yet
    std::function<void()> learned;  // called when code was seen for the first time; in the same way
    bool native = false;
    std::function<HostNotes*()> notes;  // where samples go; nullptr: not now
    pid_t left_out = 0;                 // a thread that is not sampled
  };
  explicit HostSampler(Options options);
  ~HostSampler() { stop(); }
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;
  void stop();  // in a Python program: call it before the interpreter ends, without holding its lock

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;  // no frame of the program
  struct Open {
    uint32_t stack = kNowhere;
    int64_t begin = 0;
    std::string name;
    bool seen = false;
  };
  void run();
  void sample();
  bool known(const StackOfThread& stack);
  uint32_t number(const StackOfThread& stack, const std::vector<uint64_t>& native);
  std::vector<uint64_t> native_of(const StackOfThread& stack);
  static std::vector<CodeFrame> frames_of(const StackOfThread& stack, const std::vector<uint64_t>& native);
  void sample_natives(int64_t now);
  void keep(Open& open, uint32_t stack, int64_t now);
  void report(const Open& open, int64_t end) const;

  Options options_;
  HostNotes* notes_ = nullptr;  // during a sample
  std::vector<StackOfThread> stacks_;
  std::vector<pid_t> python_tasks_;  // of the last sample
  std::unique_ptr<NativeStacks> native_;  // nullptr: without native frames
  std::vector<NativeStack> answers_;      // that no Python thread has taken
  int64_t last_ = 0;
  int64_t asking_ns_ = 0;  // CPU time that another thread took for the last sample
  std::unordered_map<uint64_t, uint32_t> numbers_;  // by the hash of a stack's frames
  std::unordered_map<unsigned long, Open> open_;
  std::atomic<bool> stopping_{false};
  SmallThread thread_;
};

}  // namespace ws::prof
