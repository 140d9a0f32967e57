// The gate: runs two programs in turn, in pairs whose order is drawn by lot, until a sequential test knows the answer.
#pragma once
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "app/core/gate/gpu_neighbours.h"
#include "profiling/base/sequential_test.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// One measurement of a program: a time or another figure that should be low.
struct GateMeasurement {
  double value = std::numeric_limits<double>::quiet_NaN();
  double others = 0;    // share of the processors that other programs used meanwhile
  bool shared_gpu = false;  // another process computed on the GPU that it used
  std::string failure;  // why there is no value; empty: there is one
};

struct GateOptions {
  double limit = kUsualLimit;  // how much slower B may be
  double busy = 0.25;         // a pair during which others used more of the processors, or the same GPU, is left out
  size_t most_pairs = 300;    // with those that are left out
  unsigned seed = 1;          // of the order in each pair
  bool throwaway = true;      // one run of each first, which fills caches
};

// What carries the difference of two recorded runs, per step, and which kernels only one of them has.
struct GateReason {
  std::string kind, name;  // "module", "fc1"
  double a_us = 0, b_us = 0;
};
struct GateReasons {
  std::vector<GateReason> rows;  // of each kind at most three, the largest first
  std::vector<std::string> only_a, only_b;
  std::string missing;           // why there is no row
};
GateReasons reasons_of(const prof::RunData& a, const prof::RunData& b);

struct GateResult {
  GateState state;
  GateReasons reasons;
  std::string name_a, name_b, unit;
  std::string clocks;  // "locked at 1980 MHz", "not locked: …"; empty: nobody asked
  double median_a = 0, median_b = 0;  // of the pairs that were not left out
  double limit = 0, seconds = 0;
  std::vector<MeasuredPair> pairs;
  size_t shared_gpu = 0;  // pairs beside another process on the GPU; they count as busy
  size_t unused_a = 0, unused_b = 0;  // measurements without a partner, as the other side has fewer
  std::vector<bool> a_first;
  std::string failure;  // a program failed; there is no verdict
};

// Fills the reasons: what carries a difference, and for each verdict which kernels only one side has. `recorded` records both.
void explain(GateResult& result, const std::function<GateReasons()>& recorded);

using Measure = std::function<GateMeasurement(bool second)>;  // runs A, or B if `second`
using Watch = std::function<void(const GateState&)>;          // after each pair
using Seconds = std::function<double()>;                      // a clock
GateResult run_gate(const GateOptions& options, const Measure& measure, const Seconds& clock, const Watch& watch = {});

// Judges measurements that are there already: A's and B's in the order in which they were taken.
GateResult judge_measured(const std::vector<double>& a, const std::vector<double>& b, double limit);

enum class GateEnd : uint8_t { WithinLimit, Slower, CannotTell, Failed };
GateEnd end_of(const GateResult& result);

std::string to_text(const GateResult& result);
std::string to_json(const GateResult& result);
std::string to_markdown(const GateResult& result);  // for a pull request

// A program as the gate runs it.
struct GateProgram {
  std::vector<std::string> command;
  double timeout_s = 600;
  std::string figure;  // an expression with one group: the last match in what the program prints counts; empty: its wall time
  GpuUsers users = gpu_users;  // who computes on GPUs
};
GateMeasurement run_program(const GateProgram& program);
void check_figure(const std::string& figure);  // throws Failure if the expression cannot be used

}  // namespace ws::app
