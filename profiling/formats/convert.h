// Reads and writes every format. The file name selects the format.
//   .wsrun                     run file
//   .json, .json.gz            Chrome/Perfetto trace with the keys of PyTorch's profiler
//   .perfetto-trace, .pftrace  Perfetto trace, as FlashInfer's profiler writes it (reading only)
//   .sqlite, .db               tables of Nsight Systems (reading only)
//   .csv                       TensorBoard's scalars (reading only)
//   .pickle, .pkl              PyTorch's memory snapshots (reading only)
//   *.speedscope.json, *.collapsed: sampled host stacks (writing only)
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/run_file/run_file.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// File name endings that import_run can read.
constexpr std::array<std::string_view, 10> kReadEndings{
    ".wsrun", ".json", ".json.gz", ".sqlite", ".db", ".csv", ".pickle", ".pkl", ".perfetto-trace", ".pftrace"};

RunData import_run(const std::string& path);                   // with all spans; throws Failure
// `found` is as for write_whole_file(). Throws Failure.
void export_run(const RunData& run, const std::string& path, const std::optional<FoundFile>& found = {});
// Writes what a run has beside its trace, and completes the file.
void finish_run_file(RunFileWriter& writer, const RunData& run);
// Throws Failure if `to` is its source. Returns the parts of the source that could not be read.
// Several sources are joined: they must be the ranks of one program.
std::vector<std::string> convert(const std::vector<std::string>& from, const std::string& to);
inline std::vector<std::string> convert(const std::string& from, const std::string& to) {
  return convert(std::vector{from}, to);
}

}  // namespace ws::prof
