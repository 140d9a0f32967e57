#include "profiling/formats/nsys_pools.h"

#include <optional>
#include <set>

namespace ws::prof {

void NsysPools::add(int64_t time, int64_t pool, const NsysRows& rows, int column) {
  const auto size = [&rows](int at) {
    return rows.null(at) || rows.integer(at) < 0 ? std::nullopt : std::optional(rows.integer(at));
  };
  readings_.add({time, pool, size(column), size(column + 1)});
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
      readings_.add({rows.integer(0), rows.integer(1), 0, 0});
    else
      add(rows.integer(0), rows.integer(1), rows, 3);
  }
}

}  // namespace ws::prof
