// What an Nsight Systems export tells of memory pools, as counters.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "profiling/formats/trace_builder.h"
#include "profiling/formats/nsys_rows.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

class NsysPools {
 public:
  // Sizes of a pool in two columns, where they were recorded.
  void add(int64_t time, int64_t pool, const NsysRows& rows, int column);
  // Pools that come, go, or are trimmed; but for those of processes that are foreign.
  void read(Database& db, const std::function<bool(int64_t global)>& foreign);
  // Each event tells of one pool: what all of them hold together is drawn.
  void draw(TraceBuilder& builder);

 private:
  struct Reading {
    int64_t time, pool;
    std::optional<int64_t> reserved, used;
  };
  std::vector<Reading> readings_;
};

}  // namespace ws::prof
