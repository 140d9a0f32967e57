// Copies the rings of stamps that a program's kernels fill (profiling/annotate/kernel_ranges.cuh) while they run.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "profiling/collectors/ring_board.h"

namespace ws::prof {

// Calls of this thread that are ours, not the program's.
class OwnCalls {
 public:
  OwnCalls() { ++depth(); }
  ~OwnCalls() { --depth(); }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;
  static bool now() { return depth() > 0; }

 private:
  static int& depth() {
    thread_local int open = 0;
    return open;
  }
};

// Streams whose work is ours, not the program's. Any thread may ask.
class OwnStreams {
 public:
  static bool contain(uint32_t context, uint32_t stream);
  static void add(void* stream);  // a stream of the current device
};

CUcontext current_context();  // of this thread; nullptr if there is none

class RingCopier {
 public:
  static RingCopier& instance();

  // Returns false if this GPU does not allow it. Call it on a thread of the program that may wait for the driver.
  bool add(StampRing ring, void* memory);
  void remove(void* memory);  // after the last stamps were read
  // Passes what is new to the RingBoard. With `all`, also what was reserved long ago and may have got more stamps.
  void copy(bool all);

 private:
  struct Live;
  static bool copy(Live& ring, bool all);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Live>> rings_;
  uint64_t made_ = 0;
};

}  // namespace ws::prof
