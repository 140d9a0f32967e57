#include "profiling/formats/nsys_pools.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

namespace ws::prof {

void NsysPools::add(int64_t time, int64_t pool, const NsysRows& rows, int column) {
  const auto size = [&rows](int at) {
    return rows.null(at) || rows.integer(at) < 0 ? std::nullopt : std::optional(rows.integer(at));
  };
  const Reading reading{time, pool, size(column), size(column + 1)};
  if (reading.reserved || reading.used) readings_.push_back(reading);
}

void NsysPools::read(Database& db, const std::function<bool(int64_t global)>& foreign) {
  std::set<int64_t> destroys;
  if (db.has_table("ENUM_CUDA_MEMPOOL_OPER")) {
    NsysRows kinds(db, "ENUM_CUDA_MEMPOOL_OPER", {"id", "label"});
    while (kinds.next())
      if (kinds.text(1).find("estroy") != std::string::npos) destroys.insert(kinds.integer(0));
  }
  NsysRows rows(
      db, "CUDA_GPU_MEMORY_POOL_EVENTS",
      {"start", "address", "operationType", "localMemoryPoolSize", "localMemoryPoolUtilizedSize", "globalPid"});
  while (rows.next()) {
    if (foreign(rows.integer(5))) continue;
    if (!rows.null(2) && destroys.contains(rows.integer(2)))
      readings_.push_back({rows.integer(0), rows.integer(1), 0, 0});
    else
      add(rows.integer(0), rows.integer(1), rows, 3);
  }
}

void NsysPools::draw(TraceBuilder& builder) {
  std::ranges::stable_sort(readings_, {}, &Reading::time);
  for (const auto& [counter, value] : {std::pair{"pool reserved", &Reading::reserved}, {"pool used", &Reading::used}}) {
    std::unordered_map<int64_t, int64_t> held;
    double sum = 0;
    for (const Reading& reading : readings_) {
      const std::optional<int64_t> now = reading.*value;
      if (!now) continue;
      int64_t& before = held[reading.pool];
      sum += static_cast<double>(*now) - static_cast<double>(before);
      before = *now;
      builder.add_point(counter, "B", {reading.time, sum});
    }
  }
}

}  // namespace ws::prof
