// Measures training steps on an executor alone: no test, no recording, no window.
#pragma once
#include <string>
#include <vector>

#include "engine/executor/executor.h"

namespace ws::cli {

struct BenchOptions {
  int repeats = 7;
  double seconds = 0.3;  // per repeat
};

struct BenchResult {
  double median_us = 0, least_us = 0, most_us = 0;  // per step
  std::vector<double> repeats_us;
  int64_t steps = 0;  // per repeat
  double samples_per_s = 0;
  std::string device;
};

BenchResult bench_steps(const RunSpec& spec, const data::Dataset& data, const BenchOptions& options);

}  // namespace ws::cli
