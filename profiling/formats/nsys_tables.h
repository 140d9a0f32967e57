// Writes CSV tables like `nsys stats --format csv`, one report per file.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/run_data.h"

namespace ws::prof {

std::vector<std::string_view> nsys_reports();  // "cuda_gpu_kern_sum", ...
// Finds the report in the file name, as nsys names its files (run_cuda_api_sum.csv). Default: cuda_gpu_kern_sum. Throws
// Failure for a name that looks like a report but is none.
std::string_view nsys_report_of(std::string_view path);
void export_nsys_table(const RunData& run, const std::string& path, std::string_view report);

}  // namespace ws::prof
