// Imports Perfetto traces (protobuf) as FlashInfer's profiler writes them: slices on named tracks.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/run_data.h"

namespace ws::prof {

RunData import_perfetto(const std::string& path);
// `name` begins the message of a failure. Throws Failure.
RunData parse_perfetto(std::string_view bytes, const std::string& name);

}  // namespace ws::prof
