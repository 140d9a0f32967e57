// Runs a sweep: for each way and size it warms up, repeats until the time is stable, checks and reports the point.
#include "engine/lab/lab.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/devices/device_workloads.h"
#include "engine/devices/devices.h"
#include "engine/devices/own_kernels.h"
#include "engine/lab/ceilings.h"
#include "engine/lab/correctness.h"
#include "engine/lab/measure.h"
#include "profiling/annotate/annotate.h"
#include "profiling/base/text.h"

namespace ws::lab {
namespace {

constexpr int kRecordedCalls = 3;

prof::Meaning meaning_of(Operation operation) {
  if (operation == Operation::MatMul) return prof::Meaning::Matrix;
  return operation == Operation::Copy ? prof::Meaning::Copy : prof::Meaning::Pointwise;
}

// The op of a point in the timeline. Tags are kept for the life of the process, because the op registry is never
// emptied.
prof::OpTag tag_of(const LabSpec& spec, const LabPoint& point) {
  static std::mutex mutex;
  static std::map<std::string, prof::OpTag> known;
  prof::OpInfo op;
  op.name = std::string(to_string(spec.operation)) + " " + std::to_string(point.size);
  op.detail = label_of(spec, point.way);
  op.phase = std::string(info(point.way).name);
  op.meaning = meaning_of(spec.operation);
  op.flops = point.flops;
  op.bytes = point.bytes;
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = known.try_emplace(op.name + op.phase + op.detail + std::to_string(op.flops), prof::kNoOp);
  if (fresh && prof::registered_ops() < 60'000) entry->second = prof::register_ops({op});
  return entry->second;
}

class Sweep {
 public:
  Sweep(const LabSpec& spec, const std::atomic<bool>& cancel, LabSink& sink, std::vector<LabPoint> left, KernelChecks checks)
      : cancel_(cancel), sink_(sink), left_(std::move(left)), checks_(std::move(checks)) {
    for (const LabPoint& point : left_) next_step_ = std::max(next_step_, point.recorded.first_step + point.recorded.steps);
    result_.spec = spec;
    if (result_.spec.sizes.empty()) result_.spec.sizes = default_sizes(spec.operation);
    std::ranges::sort(result_.spec.sizes);
    result_.device = device_info().cuda ? device_info().name : "";
    choose_ways();
  }
  ~Sweep() { release_device_memory(); }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  LabResult run() {
    if (device_info().cuda) {
      result_.ceilings = remembered_ceilings(device_info().name, device_info().driver);
      find_ceilings();
      sink_.ceilings(result_.ceilings);
    }
    const int total = static_cast<int>(result_.spec.sizes.size() * result_.spec.ways.size());
    int done = 0;
    for (int64_t size : result_.spec.sizes) {
      inputs_ = {};
      for (Way way : result_.spec.ways) {
        if (cancel_) break;
        sink_.progress(done++, total, label_of(result_.spec, way) + ", " + std::to_string(size));
        if (!ended_.contains(way)) measure(way, size);
      }
    }
    result_.cancelled = cancel_;
    raise_ceilings();
    return std::move(result_);
  }

 private:
  void choose_ways() {
    std::vector<Way>& ways = result_.spec.ways;
    std::erase_if(ways, is_own);
    if (ways.empty()) ways = ways_of(result_.spec.operation);
    for (size_t i = 0; i < result_.spec.kernels.size(); ++i) ways.push_back(own_way(i));
    if (device_info().cuda) return;
    std::erase_if(ways, [](Way w) { return info(w).gpu; });
    std::string compiled;
    for (const OwnKernelSource& kernel : result_.spec.kernels) compiled += compile_only(kernel);
    if (ways.empty()) throw Failure("None of these variants can run here: " + device_info().why_not + compiled);
    result_.message = "Only CPU variants are measured: " + device_info().why_not + compiled;
  }
  // Returns a sentence. Throws Failure if the kernel does not compile.
  std::string compile_only(const OwnKernelSource& kernel) const {
    constexpr int kCompute = 90;
    own::KernelBuild build;
    try {
      build = build_own_kernel(kernel_contract(result_.spec, result_.spec.sizes.front()), kernel, kCompute);
    } catch (const OwnKernelRefused&) {
      throw;
    } catch (const Failure& no_compiler) {
      return " " + kernel.file + " was not compiled: " + no_compiler.what();
    }
    if (!build.good()) throw Failure(kernel.file + " does not compile: " + build.errors());
    return " " + (build.facts ? to_text(*build.facts, kernel.file, kCompute) : kernel.file + " compiles") + "; it is not measured.";
  }

  // Finds the ceilings. The sweep goes on without them, because they are only reference lines in the chart.
  void find_ceilings() {
    try {
      measure_device_ceilings(result_.ceilings, result_.spec, cancel_);
    } catch (const Failure& failure) {
      result_.message = std::string("The limits of the card are not known: ") + failure.what();
    }
  }
  // A ceiling is the best rate that was seen, so no point may exceed it.
  void raise_ceilings() {
    if (result_.spec.operation == Operation::MatMul) raise_to_products();
    if (device_info().cuda) remember_ceilings(device_info().name, device_info().driver, result_.ceilings);
  }
  void raise_to_products() {
    Ceilings& c = result_.ceilings;
    for (const LabPoint& p : result_.points) {
      if (!p.ok || p.compute_s <= 0 || !info(p.way).gpu) continue;
      double& most = p.way == Way::GpuTf32 ? c.tf32_flops_s : p.way == Way::GpuFp16 ? c.fp16_flops_s : c.fp32_flops_s;
      most = std::max(most, static_cast<double>(p.flops) / p.compute_s);
    }
    for (LabPoint& p : result_.points) p.bound_s = bound_of(result_.spec, p.way, p.size, c).seconds();
    sink_.ceilings(c);
  }

  void measure(Way way, int64_t size) {
    const auto known = std::ranges::find_if(left_, [&](const LabPoint& p) { return p.way == way && p.size == size && p.ok; });
    if (known != left_.end()) return take(*known);
    LabPoint point;
    point.way = way;
    point.size = size;
    point.flops = flops_of(result_.spec, size);
    point.bytes = bytes_of(result_.spec, size);
    point.bound_s = bound_of(result_.spec, way, size, result_.ceilings).seconds();
    try {
      must_fit(result_.spec, way, size);
      must_end(point);
      if (is_own(way)) must_be_right(way, size);
      if (inputs_.a.empty()) prepare(size);
      const auto work = make_workload(result_.spec, way, size, inputs_, cancel_);
      time_point(result_.spec, *work, point, cancel_);
      if (point.repeats == 0) return;
      point.note = work->note();
      if (sink_.records() && !cancel_) record(*work, point);
      if (!cancel_ || info(way).gpu) check_point(result_.spec, *work, expected_, point);
    } catch (const Failure& failure) {
      point.ok = false;
      point.note = failure.what();
      ended_[way] = true;
    }
    take(point);
  }

  void must_be_right(Way way, int64_t size) const {
    const auto found = checks_.find({way, size});
    if (found == checks_.end()) throw Failure("not measured: the kernel was not checked at this size");
    if (!found->second.empty()) throw Failure(found->second);
  }

  void take(const LabPoint& point) {
    if (point.median_s > result_.spec.longest_call_s) ended_[point.way] = true;
    if (point.ok) last_[point.way] = point;
    result_.points.push_back(point);
    sink_.point(point);
  }

  // Returns a lower limit of a way's operations or bytes per second. 0: its time does not grow with the work.
  static double slowest_rate(Way way) {
    if (way == Way::GpuCold) return 0;
    if (way == Way::CpuLoops || is_own(way)) return 3e8;
    if (way == Way::CpuLibrary) return 1e10;
    return way == Way::GpuNaive || way == Way::GpuTiled ? 5e11 : 1e13;
  }

  // Throws Failure if a call would take far too long: a call inside a library cannot be stopped.
  void must_end(const LabPoint& point) const {
    constexpr double kWorkItself = 1e-3;  // in a longer call, the work dominates the launch
    const auto work = [](const LabPoint& p) { return static_cast<double>(std::max(p.flops, p.bytes)); };
    const double rate = slowest_rate(point.way);
    if (rate == 0) return;
    const auto last = last_.find(point.way);
    const bool known = last != last_.end() && last->second.median_s > kWorkItself;
    const double expected =
        known ? last->second.median_s * work(point) / std::max(1.0, work(last->second)) : work(point) / rate;
    if (expected > 4 * std::max(result_.spec.longest_call_s, 0.25))
      throw Failure("left out: one call would take about " + duration_text(expected));
  }

  // Makes some more calls for the timeline, so that tracing does not change the measured times.
  void record(Workload& work, LabPoint& point) {
    struct Recording {  // ends the recording even if a call throws
      explicit Recording(LabSink& s) : sink(s) { sink.record(true); }
      ~Recording() { sink.record(false); }
      LabSink& sink;
    };
    const prof::OpTag tag = tag_of(result_.spec, point);
    const Recording recording(sink_);
    point.recorded = {next_step_, 0, sink_.trace_time(), 0};
    work.trace_child(sink_.child_trace());
    for (int i = 0; i < kRecordedCalls && !cancel_; ++i) {
      if (result_.spec.cold_cache) work.cool();
      const prof::StepScope step(next_step_++);
      const prof::PhaseScope phase(info(point.way).label.data());
      const prof::OpScope op(tag);
      work.call();
      ++point.recorded.steps;
      if (point.median_s > 1) break;
    }
    work.settle();
    work.trace_child({});
    point.recorded.end_ns = sink_.trace_time();
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
  std::map<Way, bool> ended_;  // ways whose curve ended: too slow or failed
  std::map<Way, LabPoint> last_;
  std::vector<LabPoint> left_;  // of an earlier sweep
  KernelChecks checks_;
  int64_t next_step_ = 0;
};

}  // namespace

LabResult run_lab(const LabSpec& spec, const std::atomic<bool>& cancel, LabSink& sink, std::vector<LabPoint> left, KernelChecks checks) {
  return Sweep(spec, cancel, sink, std::move(left), std::move(checks)).run();
}

}  // namespace ws::lab
