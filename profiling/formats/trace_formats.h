// Traces of other tools. All functions throw Failure; `name` begins the message.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/run_data.h"

namespace ws::prof {

// Chrome and Perfetto JSON with the keys that PyTorch's profiler writes; compressed if the path ends in .gz.
void export_chrome(const RunData& run, const std::string& path);
RunData import_chrome(const std::string& path);
RunData parse_chrome(std::string_view text);

RunData import_nsys(const std::string& path);  // SQLite tables of Nsight Systems

// Perfetto traces (protobuf) as FlashInfer's profiler writes them: slices on named tracks.
RunData import_perfetto(const std::string& path);
RunData parse_perfetto(std::string_view bytes, const std::string& name);

// PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot): the blocks of its caching allocator, with the source line
// that allocated each.
RunData import_memory_snapshot(const std::string& path);
RunData parse_memory_snapshot(std::string_view bytes, const std::string& name);

}  // namespace ws::prof
