// Checks a person's kernel in a process of its own, which may crash or never end.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/core/kernels/kernel_plan.h"
#include "engine/own_kernels/own_kernel_verdict.h"
#include "engine/workloads/lab_kernels.h"

namespace ws::app {

struct KernelToCheck {
  std::string op, file;
  std::vector<CheckedShape> shapes;
};

// What the check found on one of the checked shapes.
struct ShapeResult {
  std::string shape, sentence;
  OwnKernelVerdict verdict;
  bool good() const { return verdict.good() && failure.empty(); }
  std::string failure;  // the check itself failed: no GPU, no memory
};
std::string to_json_line(const ShapeResult& result);
ShapeResult shape_result(const std::string& json_line);  // throws Failure

struct CheckTimes {
  int load_ms = 60'000;    // the data, the GPU's context, the compiler
  int launch_ms = 1'000;   // one launch
};

// Starts `program` ("warpsight kernel check-inside"), follows it, and ends it. The results end with the first that is not
// good. `arrived` gets each result; it returns false to stop the check. A kernel that crashes or never ends is a result.
std::vector<ShapeResult> check_kernel(const KernelToCheck& kernel, const std::function<bool(const ShapeResult&)>& arrived = {},
                                      const CheckTimes& times = {}, const std::vector<std::string>& program = {});
// Checks all kernels of a laboratory sweep at its sizes, up to the first size at which one is wrong. `arrived` gets the number of checks
// so far and what was checked; it returns false to stop.
lab::KernelChecks check_lab_kernels(const lab::LabSpec& spec, const std::function<bool(int, const std::string&)>& arrived,
                                    const std::vector<std::string>& program = {});
// The checking process: reads what to check from a file, and prints a line for each shape. Returns
// its exit code.
int check_inside(const std::string& request_file);

}  // namespace ws::app
