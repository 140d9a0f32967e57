// The sizes of several memory pools, which a trace reports one pool at a time. Draws the sum over all pools as counters.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/formats/trace_builder.h"

namespace ws::prof {

class PoolReadings {
 public:
  struct Reading {
    int64_t time, pool;
    std::optional<int64_t> reserved, used;
  };
  void add(const Reading& reading);  // one without sizes is ignored
  void draw(TraceBuilder& builder, const std::string& title);  // "pool": counters "pool reserved" and "pool used"

 private:
  std::vector<Reading> readings_;
};

}  // namespace ws::prof
