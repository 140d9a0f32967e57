// What a file of ours in Nsight Systems' format tells beyond its tables: which step everything was of.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "profiling/run_file/sqlite.h"

namespace ws::prof {

class OurSteps {
 public:
  void read(Database& db);
  bool read_in() const { return read_in_; }  // the file is ours: what has no step there belongs to none
  // Of what began then on a stream or thread; 0: of none.
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
