// What a laboratory sweep measures: an operation, its sizes, and the ways to run it.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/plan.h"
#include "profiling/base/bus_rate.h"

namespace ws::lab {

enum class Operation { MatMul, Sine, Add, Reduce, Softmax, Copy };

// A way to run the operation: one curve in the chart.
enum class Way {
  CpuLoops,     // plain loops, one thread
  CpuLibrary,   // products for the widest vectors, or vectorised loops, on all cores
  GpuPageable,  // copy in from pageable memory, compute, copy out
  GpuPinned,    // the same copies from pinned memory
  GpuResident,  // data is already on the GPU: only the work
  GpuUnsynced,  // the clock stops before the work ends: a pitfall
  GpuOpByOp,    // one kernel per operation, intermediates in memory
  GpuOverlap,   // chunks on three streams: copies overlap compute
  GpuGraph,     // the kernel of GpuResident as a graph
  GpuGraphOps,  // the kernels of GpuOpByOp as one graph
  GpuCold,      // first call in a fresh process: context, module load
  GpuNaive,     // matrix product: one thread per output
  GpuTiled,     // matrix product: tiles in shared memory
  GpuTf32,      // tensor cores, tf32
  GpuFp16,      // tensor cores, half inputs
  GpuOwn,       // a person's kernel on resident data: LabSpec::kernels[0]
  GpuOwn2,
  GpuOwn3,
  GpuOwn4,
};

struct WayInfo {
  Way way;
  std::string_view name;     // "gpu-pinned"
  std::string_view label;    // "GPU, pinned copies"
  std::string_view explain;  // one sentence
  bool gpu = false;
  bool pitfall = false;  // drawn dashed, never part of a speed-up
};
std::span<const WayInfo> ways();
const WayInfo& info(Way way);
std::vector<Way> ways_of(Operation operation);  // the built-in ones
inline constexpr size_t kMostKernels = 4;
inline bool is_own(Way way) { return way >= Way::GpuOwn; }
std::vector<int64_t> default_sizes(Operation operation);
int64_t size_of_text(std::string_view text);  // "4096", "2^12", "64M"; throws Failure
std::string_view to_string(Operation operation);
std::string_view explain(Operation operation);

struct LabSpec {
  std::string name = "matmul";
  Operation operation = Operation::MatMul;
  std::vector<int64_t> sizes;  // n for an n × n product, else elements; empty: the operation's default range
  int64_t m = 0, k = 0;        // matrix product m × k × size; 0: square
  int depth = 4;               // levels of the nested sine
  std::vector<Way> ways;                 // empty: all built-in ways that this machine can run
  std::vector<OwnKernelSource> kernels;  // further ways: kernels that a person wrote for the operation; see lab_kernels.h
  int repeats = 50, warm_up = 5;
  double seconds_per_point = 0.5;  // stop repeating a point after this time
  double longest_call_s = 5;       // end a curve at the first size with a longer call
  bool cold_cache = false;         // evict the inputs from the caches before each call
  uint64_t seed = 42;
};

std::string label_of(const LabSpec& spec, Way way);  // "GPU, my_sine.cu" for a person's kernel

// Where the time of one call went, measured by events on the stream; 0: unknown.
struct CallSplit {
  double device_s = 0;
  double copy_s = 0;     // copies; if they overlap kernels, only the part that kernels do not hide
  double compute_s = 0;  // kernels
};

struct Ceilings {
  double read_write_bytes_s = 0;  // bandwidth of device memory, measured by copying a large block
  double l2_bytes_s = 0;          // bandwidth of the L2 cache, measured by rewriting a block that fits
  double fp32_flops_s = 0, tf32_flops_s = 0, fp16_flops_s = 0, pinned_bytes_s = 0;
  double sine_per_s = 0, short_sine_per_s = 0;  // any argument; arguments known to be within [-1, 1]
  std::vector<BusRate> bus_rates;               // of several GPUs
};

int64_t flops_of(const LabSpec& spec, int64_t size);
int64_t bytes_of(const LabSpec& spec, int64_t size);   // inputs and outputs once each
int64_t memory_of(const LabSpec& spec, int64_t size);  // bytes of GPU memory for the way that needs most

LabSpec lab_spec_from_json(const nlohmann::json& json);  // an error names the key
nlohmann::json to_json(const LabSpec& spec);

}  // namespace ws::lab
