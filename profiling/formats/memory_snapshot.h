// Imports PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot): the blocks of its caching allocator, with the
// source line that allocated each.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/run_data.h"

namespace ws::prof {

RunData import_memory_snapshot(const std::string& path);  // throws Failure
RunData parse_memory_snapshot(std::string_view bytes, const std::string& name);

}  // namespace ws::prof
