// Converts the memory pool data of an Nsight Systems export to counters.
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
  // Adds the sizes of a pool from two columns, if they were recorded.
  void add(int64_t time, int64_t pool, const NsysRows& rows, int column);
  // Reads pools that are created, destroyed or trimmed. Skips foreign processes.
  void read(Database& db, const std::function<bool(int64_t global)>& foreign);
  // Each event describes one pool. Draws the sum over all pools.
  void draw(TraceBuilder& builder);

 private:
  struct Reading {
    int64_t time, pool;
    std::optional<int64_t> reserved, used;
  };
  std::vector<Reading> readings_;
};

}  // namespace ws::prof
