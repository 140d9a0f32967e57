// The names and descriptions of operations and ways.
#include <charconv>
#include <filesystem>

#include "engine/workloads/lab_kernels.h"

namespace ws::lab {
namespace {

constexpr WayInfo kWays[] = {
    {Way::CpuLoops, "cpu-loops", "CPU, plain loops", "One thread, no library: a first attempt."},
    {Way::CpuLibrary, "cpu", "CPU, library", "Products for the widest vectors of the processor, vectorised loops otherwise, on all cores."},
    {Way::GpuPageable, "gpu-pageable", "GPU, pageable copies", "Includes the copies in and out, from ordinary memory.", true},
    {Way::GpuPinned, "gpu-pinned", "GPU, pinned copies", "Includes the copies in and out, from page-locked memory.", true},
    {Way::GpuResident, "gpu", "GPU, resident data", "Only the work: the data is already on the GPU.", true},
    {Way::GpuUnsynced, "gpu-unsynced", "GPU, no sync",
     "A pitfall: the clock stops after the launch, not after the work.", true, true},
    {Way::GpuOpByOp, "gpu-op-by-op", "GPU, op by op",
     "One kernel for each operation; every intermediate goes through memory.", true},
    {Way::GpuOverlap, "gpu-overlap", "GPU, overlapped copies", "Chunks on three streams: copies hide behind compute.",
     true},
    {Way::GpuGraph, "gpu-graph", "GPU, CUDA graph",
     "The kernel of “resident data”, launched as a CUDA graph: one kernel gains little.", true},
    {Way::GpuGraphOps, "gpu-graph-op-by-op", "GPU, graph op by op",
     "All operations as one CUDA graph: one launch, but every intermediate goes through memory.",
     true},
    {Way::GpuCold, "gpu-cold", "GPU, first call",
     "A fresh process: context, module load and the call. Its timeline has rows of its own.", true},
    {Way::GpuNaive, "gpu-naive", "GPU, naive kernel", "One thread for each output, directly from memory.", true},
    {Way::GpuTiled, "gpu-tiled", "GPU, tiled kernel", "Tiles in shared memory.", true},
    {Way::GpuTf32, "gpu-tf32", "GPU, tf32", "Tensor cores; inputs rounded to tf32.", true},
    {Way::GpuFp16, "gpu-fp16", "GPU, fp16", "Tensor cores; inputs in half precision.", true},
    {Way::GpuOwn, "gpu-own", "GPU, your kernel", "A kernel that you wrote, on data that is already on the GPU.", true},
    {Way::GpuOwn2, "gpu-own-2", "GPU, your second kernel", "Your second kernel, on the same data.", true},
    {Way::GpuOwn3, "gpu-own-3", "GPU, your third kernel", "Your third kernel, on the same data.", true},
    {Way::GpuOwn4, "gpu-own-4", "GPU, your fourth kernel", "Your fourth kernel, on the same data.", true},
};

}  // namespace

std::span<const WayInfo> ways() { return kWays; }
const WayInfo& info(Way way) { return kWays[static_cast<size_t>(way)]; }

std::string label_of(const LabSpec& spec, Way way) {
  const OwnKernelSource* own = kernel_of(spec, way);
  return own ? "GPU, " + std::filesystem::path(own->file).filename().string() : std::string(info(way).label);
}

int64_t size_of_text(std::string_view text) {
  constexpr int64_t kMost = 1'000'000'000'000;
  const auto whole = [](std::string_view digits) -> int64_t {
    int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc() && read.ptr == digits.data() + digits.size() ? value : 0;
  };
  std::string_view bare = text;
  while (bare.starts_with(' ')) bare.remove_prefix(1);
  while (bare.ends_with(' ')) bare.remove_suffix(1);
  int64_t size = 0;
  if (bare.starts_with("2^")) {
    const int64_t exponent = bare == "2^0" ? 0 : whole(bare.substr(2));
    size = exponent < 0 || exponent > 39 || (exponent == 0 && bare != "2^0") ? 0 : int64_t{1} << exponent;
  } else if (!bare.empty()) {
    const int64_t times = bare.back() == 'k' ? 1024 : bare.back() == 'M' ? 1 << 20 : 1;
    const int64_t count = whole(times > 1 ? bare.substr(0, bare.size() - 1) : bare);
    size = count > kMost / times ? 0 : count * times;
  }
  if (size < 1 || size > kMost)
    throw Failure("sizes: expected a whole number such as 4096, 2^12 or 64M, got " + std::string(text.substr(0, 40)));
  return size;
}

std::string_view to_string(Operation operation) {
  constexpr std::string_view names[] = {"matmul", "sine", "add", "reduce", "softmax", "copy"};
  return names[static_cast<size_t>(operation)];
}

std::string_view explain(Operation operation) {
  constexpr std::string_view sentences[] = {"C = A·B, n × n",           "sin(sin(…x))", "x + y",        "Σ x",
                                            "softmax of rows of 1 024", "out = x"};
  return sentences[static_cast<size_t>(operation)];
}

std::vector<Way> ways_of(Operation operation) {
  std::vector<Way> all{Way::CpuLoops, Way::CpuLibrary};
  const auto gpu = {Way::GpuPageable, Way::GpuPinned, Way::GpuResident, Way::GpuUnsynced, Way::GpuGraph, Way::GpuCold};
  all.insert(all.end(), gpu);
  if (operation == Operation::MatMul) all.insert(all.end(), {Way::GpuNaive, Way::GpuTiled, Way::GpuTf32, Way::GpuFp16});
  if (operation == Operation::Sine)
    all.insert(all.end(), {Way::GpuOpByOp, Way::GpuGraphOps, Way::GpuOverlap});
  if (operation == Operation::Add || operation == Operation::Copy) all.push_back(Way::GpuOverlap);
  return all;
}

std::vector<int64_t> default_sizes(Operation operation) {
  std::vector<int64_t> sizes;
  const int from = operation == Operation::MatMul ? 4 : 10, to = operation == Operation::MatMul ? 12 : 26;
  for (int p = from; p <= to; ++p) sizes.push_back(int64_t{1} << p);
  return sizes;
}

}  // namespace ws::lab
