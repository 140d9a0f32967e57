// Reads the step of each span from our own files in Nsight Systems' format, whose standard tables cannot store it.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "profiling/run_file/sqlite.h"

namespace ws::prof {

class OurSteps {
 public:
  void read(Database& db);
  bool read_in() const { return read_in_; }  // true if the file is ours: spans without a step belong to no step
  // Step of what began at `start` on a stream or thread; 0: no step.
  uint32_t of(int64_t start, int64_t place) const;

 private:
  struct Known {
    std::pair<int64_t, int64_t> begun;
    uint32_t step;
  };
  std::vector<Known> steps_;
  bool read_in_ = false;
};

}  // namespace ws::prof
