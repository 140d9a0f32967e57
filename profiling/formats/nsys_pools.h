// Converts the memory pool data of an Nsight Systems export to counters.
#pragma once
#include <cstdint>
#include <functional>

#include "profiling/formats/nsys_rows.h"
#include "profiling/formats/pool_readings.h"

namespace ws::prof {

class NsysPools {
 public:
  // Adds the sizes of a pool from two columns, if they were recorded.
  void add(int64_t time, int64_t pool, const NsysRows& rows, int column);
  // Reads pools that are created, destroyed or trimmed. Skips foreign processes.
  void read(Database& db, const std::function<bool(int64_t global)>& foreign);
  void draw(TraceBuilder& builder) { readings_.draw(builder, "pool"); }

 private:
  PoolReadings readings_;
};

}  // namespace ws::prof
