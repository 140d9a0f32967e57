// Runs a sweep: for each way and size warm up, repeat until the figure is steady, check the result, report the point.
#include "engine/lab/lab.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "engine/executor.h"
#include "engine/lab/workload.h"

namespace ws::lab {
namespace {

using Clock = std::chrono::steady_clock;

double percentile(std::vector<double> sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

// Steady: the half-width of the 95 % interval of the mean is under one per cent.
bool steady(const std::vector<double>& seconds) {
  if (seconds.size() < 10) return false;
  double sum = 0, squares = 0;
  for (double s : seconds) sum += s, squares += s * s;
  const auto n = static_cast<double>(seconds.size());
  const double mean = sum / n, variance = std::max(0.0, squares / n - mean * mean);
  return 1.96 * std::sqrt(variance / n) < 0.01 * mean;
}

double largest_error(const std::vector<float>& output, const std::vector<Sample>& expected) {
  double scale = 1e-30, worst = 0;
  for (const Sample& s : expected) scale = std::max(scale, std::abs(s.value));
  for (const Sample& s : expected)
    worst = std::max(worst, std::abs(static_cast<double>(output[static_cast<size_t>(s.index)]) - s.value) / scale);
  return worst;
}

void time_point(const LabSpec& spec, Workload& work, LabPoint& point, const std::atomic<bool>& cancel) {
  const auto begin = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (int i = 0; i < spec.warm_up && !cancel && spent() < spec.seconds_per_point; ++i) work.call();
  std::vector<double> host, device, copy, compute;
  while (static_cast<int>(host.size()) < spec.repeats && !cancel) {
    if (spec.cold_cache) work.cool();
    const CallTime time = work.call();
    host.push_back(time.host_s);
    device.push_back(time.device_s);
    copy.push_back(time.copy_s);
    compute.push_back(time.compute_s);
    if (host.size() >= 3 && (spent() > spec.seconds_per_point || steady(host))) break;
    if (spent() > 4 * spec.longest_call_s) break;
  }
  if (host.empty()) return;
  for (auto* values : {&host, &device, &copy, &compute}) std::ranges::sort(*values);
  point.median_s = percentile(host, 0.5);
  point.low_s = percentile(host, 0.05);
  point.high_s = percentile(host, 0.95);
  point.device_s = percentile(device, 0.5);
  point.copy_s = percentile(copy, 0.5);
  point.compute_s = percentile(compute, 0.5);
  point.repeats = static_cast<int>(host.size());
}

std::unique_ptr<Workload> make_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs) {
  if (!info(way).gpu) return make_cpu_workload(spec, way, size, inputs);
  if (!device_info().cuda) throw Failure("no GPU: " + device_info().why_not);
#ifdef WARPSCOPE_HAVE_CUDA
  return make_cuda_workload(spec, way, size, inputs);
#else
  return nullptr;
#endif
}

int64_t free_host_bytes() { return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

// Asked before anything is allocated.
void must_fit(const LabSpec& spec, Way way, int64_t size) {
  const int64_t needed = memory_of(spec, size), host = free_host_bytes() / 2;
  const int64_t room = info(way).gpu && device_info().cuda ? std::min(host, device_info().memory_bytes * 9 / 10) : host;
  if (needed > room)
    throw Failure("size " + std::to_string(size) + " needs " + std::to_string(needed >> 20) +
                  " MiB; the largest that fits is " + std::to_string(largest_size(spec, room)));
}

class Sweep {
 public:
  Sweep(const LabSpec& spec, const std::atomic<bool>& cancel, LabSink& sink) : cancel_(cancel), sink_(sink) {
    result_.spec = spec;
    if (result_.spec.sizes.empty()) result_.spec.sizes = default_sizes(spec.operation);
    if (result_.spec.ways.empty()) result_.spec.ways = ways_of(spec.operation);
    if (!device_info().cuda) std::erase_if(result_.spec.ways, [](Way w) { return info(w).gpu; });
    std::ranges::sort(result_.spec.sizes);
    result_.device = device_info().cuda ? device_info().name : "";
    if (!device_info().cuda) result_.message = "Only the CPU's curves: " + device_info().why_not;
  }

  LabResult run() {
#ifdef WARPSCOPE_HAVE_CUDA
    if (device_info().cuda) result_.ceilings = measure_cuda_ceilings();
#endif
    const int total = static_cast<int>(result_.spec.sizes.size() * result_.spec.ways.size());
    int done = 0;
    for (int64_t size : result_.spec.sizes) {
      inputs_ = {};
      for (Way way : result_.spec.ways) {
        if (cancel_) break;
        sink_.progress(done++, total, std::string(info(way).label) + ", " + std::to_string(size));
        if (!ended_.contains(way)) measure(way, size);
      }
    }
    result_.cancelled = cancel_;
    return std::move(result_);
  }

 private:
  static std::vector<int64_t> default_sizes(Operation operation) {
    std::vector<int64_t> sizes;
    const int from = operation == Operation::MatMul ? 4 : 10, to = operation == Operation::MatMul ? 12 : 26;
    for (int p = from; p <= to; ++p) sizes.push_back(int64_t{1} << p);
    return sizes;
  }

  void measure(Way way, int64_t size) {
    LabPoint point;
    point.way = way;
    point.size = size;
    point.flops = flops_of(result_.spec, size);
    point.bytes = bytes_of(result_.spec, size);
    try {
      must_fit(result_.spec, way, size);
      if (inputs_.a.empty()) prepare(size);
      const auto work = make_workload(result_.spec, way, size, inputs_);
      time_point(result_.spec, *work, point, cancel_);
      if (point.repeats == 0) return;
      point.error = largest_error(work->output(), expected_);
      point.note = work->note();
    } catch (const Failure& failure) {
      point.ok = false;
      point.note = failure.what();
    }
    if (!point.ok || point.median_s > result_.spec.longest_call_s) ended_[way] = true;
    result_.points.push_back(point);
    sink_.point(point);
  }

  void prepare(int64_t size) {
    inputs_ = make_inputs(result_.spec, size);
    expected_ = expected_samples(result_.spec, size, inputs_);
  }

  const std::atomic<bool>& cancel_;
  LabSink& sink_;
  LabResult result_;
  Inputs inputs_;
  std::vector<Sample> expected_;
  std::map<Way, bool> ended_;  // ways whose curve stops: too slow, or failed
};

}  // namespace

#ifndef WARPSCOPE_HAVE_CUDA
bool run_cold_call_if_asked() { return false; }
#endif

LabResult run_lab(const LabSpec& spec, const std::atomic<bool>& cancel, LabSink& sink) {
  if (spec.operation == Operation::Expression) Expression::parse(spec.expression);
  if (spec.operation == Operation::Sine) Expression::nested_sine(spec.depth);
  return Sweep(spec, cancel, sink).run();
}

}  // namespace ws::lab
