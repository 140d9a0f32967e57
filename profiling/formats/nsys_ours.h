// Reads the step and the op of each span from our own files in Nsight Systems' format, whose standard tables cannot store
// them.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "profiling/run_file/sqlite.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

class OurSpans {
 public:
  struct Known {
    std::pair<int64_t, int64_t> begun;  // at a time, on a stream or thread
    int64_t end = 0;                    // 0: not known
    uint32_t step = 0;
    OpTag op = kNoOp;
  };
  void read(Database& db);
  // Returns the ops of the file, by their tags. Spans without one of them have no op.
  std::vector<OpInfo> read_ops(Database& db);
  // A step and an op as the file's columns have them; 0 if the number is not possible.
  static uint32_t step(int64_t number);
  OpTag op(int64_t number) const { return number > 0 && number < ops_ ? static_cast<OpTag>(number) : kNoOp; }
  bool read_in() const { return read_in_; }  // true if the file is ours: spans without a step belong to no step
  const Known& of(int64_t start, int64_t end, int64_t place) const;

 private:
  std::vector<Known> spans_;
  int64_t ops_ = 0;  // number of ops in the file
  bool read_in_ = false;
};

}  // namespace ws::prof
