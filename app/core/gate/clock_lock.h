// Locks the clocks of this machine's GPUs for the gate where that is allowed. They are reset at the end, however the gate ends.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

namespace ws::app {

// How clocks are locked. The functions return NVML's number of an error; 0: done.
struct GpuClocks {
  std::function<unsigned()> gpus;
  std::function<unsigned(unsigned gpu)> clock_mhz;  // the application clock; 0: not known
  std::function<int(unsigned gpu, unsigned mhz)> lock;
  std::function<int(unsigned gpu)> reset;
};
GpuClocks nvml_clocks();

class ClockLock {
 public:
  explicit ClockLock(const GpuClocks& clocks = nvml_clocks());
  ~ClockLock();
  ClockLock(const ClockLock&) = delete;
  ClockLock& operator=(const ClockLock&) = delete;
  const std::string& text() const { return text_; }  // "locked at 1980 MHz", "not locked: no GPU"

 private:
  void start_guard(const GpuClocks& clocks);
  void report(char state) const;

  std::string text_;
  int to_guard_ = -1;  // a pipe: the guard waits for its end
  pid_t guard_ = 0;
};

}  // namespace ws::app
