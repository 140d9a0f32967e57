// The operator laboratory: one operation over many sizes and ways of running it, each timed, checked and explained.
#pragma once
#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/workloads/expression.h"

namespace ws::lab {

enum class Operation { MatMul, Sine, Add, Reduce, Softmax, Copy, Expression };

// A way of running: one curve in the chart.
enum class Way {
  CpuLoops,     // plain loops, one thread
  CpuLibrary,   // OpenBLAS, or vectorised loops on all cores
  GpuPageable,  // copy in from pageable memory, compute, copy out
  GpuPinned,    // the same from pinned memory
  GpuResident,  // data already there: the work alone
  GpuUnsynced,  // the clock stops before the work does: a pitfall
  GpuOpByOp,    // one kernel an operation, intermediates in memory
  GpuOverlap,   // chunks on three streams: copies behind compute
  GpuGraph,     // the kernel of GpuResident as a graph
  GpuGraphOps,  // the kernels of GpuOpByOp as one graph
  GpuCold,      // the first call in a fresh process: context, module load
  GpuNaive,     // matrix product: one thread an output
  GpuTiled,     // matrix product: tiles in shared memory
  GpuTf32,      // tensor cores, tf32
  GpuFp16,      // tensor cores, half inputs
};

struct WayInfo {
  Way way;
  std::string_view name;     // "gpu-pinned"
  std::string_view label;    // "GPU, pinned copies"
  std::string_view explain;  // one sentence
  bool gpu = false;
  bool pitfall = false;  // drawn dashed, never in a speed-up
};
std::span<const WayInfo> ways();
const WayInfo& info(Way way);
std::vector<Way> ways_of(Operation operation);
std::vector<int64_t> default_sizes(Operation operation);
int64_t size_of_text(std::string_view text);  // "4096", "2^12", "64M"; throws Failure
std::string_view to_string(Operation operation);
std::string_view explain(Operation operation);

struct LabSpec {
  std::string name = "matmul";
  Operation operation = Operation::MatMul;
  std::vector<int64_t> sizes;  // n of an n × n product, elements otherwise; empty: the operation's default range
  int64_t m = 0, k = 0;        // matrix product m × k × size; 0: square
  int depth = 4;               // nested sine
  std::string expression = "sin(sin(x))*2+y";
  std::vector<Way> ways;  // empty: all that the machine can run
  int repeats = 50, warm_up = 5;
  double seconds_per_point = 0.5;  // no more repeats after this
  double longest_call_s = 5;       // a curve ends where one call takes longer
  bool cold_cache = false;         // inputs are pushed out of the caches before each call
  uint64_t seed = 42;
};

// Where the time of one call went, by events on the stream; 0: not known.
struct CallSplit {
  double device_s = 0;
  double copy_s = 0;     // of it: copies; where they overlap with kernels, what the kernels do not hide
  double compute_s = 0;  // of it: kernels
};

// Where a point stands in the run file of its sweep.
struct Recorded {
  int64_t first_step = 0, steps = 0;  // 0 steps: not recorded
  int64_t begin_ns = 0, end_ns = 0;   // trace time
};

struct LabPoint {
  Way way{};
  int64_t size = 0;
  double median_s = 0, low_s = 0, high_s = 0;  // 5th and 95th percentile of the host clock
  double device_s = 0, copy_s = 0, compute_s = 0;
  double device_low_s = 0, device_high_s = 0;  // the same percentiles of device_s; 0: not known
  int repeats = 0;
  int64_t flops = 0, bytes = 0;  // of one call; bytes that the operation must move
  double bound_s = 0;            // least time that this machine's ceilings allow; 0: not known
  double error = 0;              // largest relative to float64 on the CPU
  std::string note;              // "chunks: 8", "first call 214 ms", or why there is no number
  bool ok = true;                // no: it could not be run, or its result is wrong
  Recorded recorded;
};

struct Ceilings {
  double read_write_bytes_s = 0;  // device memory, copy of a large block
  double fp32_flops_s = 0, tf32_flops_s = 0, fp16_flops_s = 0, pinned_bytes_s = 0;
  double sine_per_s = 0, short_sine_per_s = 0;  // of any argument; of arguments known to be within [-1, 1]
};

// The least time that the ceilings allow for the work alone, without copies to and from the host.
struct Bound {
  double bytes_s = 0, arithmetic_s = 0;  // 0: no ceiling is known
  double seconds() const { return bytes_s > arithmetic_s ? bytes_s : arithmetic_s; }
};
Bound bound_of(const LabSpec& spec, Way way, int64_t size, const Ceilings& ceilings);

struct LabResult {
  LabSpec spec;
  std::vector<LabPoint> points;
  Ceilings ceilings;
  std::string device, cpu, message;
  std::string source;  // of an overlay: "PyTorch 2.11"; empty: this program
  bool cancelled = false;
};

struct Crossover {
  Way slower_below, faster_above;
  double size = 0, seconds = 0;  // where the curves meet, by interpolation in logarithms
};
std::vector<Crossover> crossovers(const LabResult& result);

class LabSink {
 public:
  virtual ~LabSink() = default;
  virtual void point(const LabPoint&) {}
  virtual void progress(int /*done*/, int /*of*/, const std::string& /*what*/) {}
  virtual void ceilings(const Ceilings&) {}
  // Recording: after a point is measured a few more calls are made between record(true) and record(false), so that
  // tracing costs the figures nothing.
  virtual bool records() const { return false; }
  virtual void record(bool /*on*/) {}
  virtual int64_t trace_time() const { return 0; }
  // Handed on, as kChildTrace, to the process that makes a recorded first call; empty: what it does is not traced.
  virtual std::string child_trace() const { return {}; }
};

LabResult run_lab(const LabSpec& spec, const std::atomic<bool>& cancel, LabSink& sink);

// A program that offers the laboratory calls this first and ends when it says true: the process was started by the
// sweep to make one first call.
bool run_cold_call_if_asked();
inline constexpr const char* kChildTrace = "WARPSCOPE_LAB_TRACE";  // where it is to write its trace

int64_t flops_of(const LabSpec& spec, int64_t size);
int64_t bytes_of(const LabSpec& spec, int64_t size);   // inputs and outputs once
int64_t memory_of(const LabSpec& spec, int64_t size);  // of the GPU: bytes that the largest way needs

LabSpec lab_spec_from_json(const nlohmann::json& json);  // refusals name the key
nlohmann::json to_json(const LabSpec& spec);
nlohmann::json to_json(const LabResult& result);
LabResult lab_result_from_json(const nlohmann::json& json);  // also what the PyTorch script writes; throws Failure
std::string to_csv(const LabResult& result);

}  // namespace ws::lab
