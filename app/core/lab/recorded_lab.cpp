#include "app/core/lab/recorded_lab.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/core/kernels/kernel_check_process.h"
#include "app/core/lab/first_call.h"
#include "app/core/runs/machine.h"
#include "engine/devices/devices.h"
#include "profiling/annotate/annotate.h"
#include "profiling/base/clock.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/repeat.h"
#include "profiling/collectors/collector.h"
#include "profiling/cupti/gpu_source.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {
namespace {

constexpr int64_t kApart = 1'000'000'000;  // ns between the timelines of two sweeps
constexpr const char* kKey = "lab";  // key of the result as JSON in the summary's extra texts

prof::RunSummary first_summary(const lab::LabSpec& spec) {
  prof::RunSummary s;
  s.name = "Lab: " + std::string(to_string(spec.operation));
  s.preset = "lab";
  s.origin = "lab";
  s.created = prof::utc_text();
  s.device = device_info().cuda ? device_info().name : "CPU";
  s.spec = to_json(spec).dump();
  s.machine = machine_json().dump();
  return s;
}

// Forwards everything to the sink and writes to the file as data arrives, so that a killed
// program loses at most a second.
class Recorder final : public lab::LabSink {
 public:
  Recorder(const lab::LabSpec& spec, const std::string& path, lab::LabSink& sink, const LeftSweep& left, const std::optional<FoundFile>& found)
      : sink_(sink), summary_(first_summary(spec)), writer_(path, summary_, "", found) {
    partial_.spec = spec;
    if (!left.points.empty()) keep_left(left);
    prof::CollectorOptions options{.gpu = prof::cupti_gpu_source(), .level = prof::TraceLevel::Full};
    options.poll_memory = false;
    if (!left.points.empty()) options.origin_ns = prof::steady_ns() - left.trace.last_time() - kApart;  // its times come first
    origin_ns_ = collector_.start(options).origin_ns;
    trace_no_more();
    file_thread_ = std::jthread([this](const std::stop_token& ended) { write_until(ended); });
  }

  void point(const lab::LabPoint& p) override {
    partial_.points.push_back(p);
    keep([&] { write(partial_); });
    sink_.point(p);
  }
  void progress(int done, int of, const std::string& what) override { sink_.progress(done, of, what); }
  void ceilings(const lab::Ceilings& c) override {
    partial_.ceilings = c;
    sink_.ceilings(c);
  }
  bool records() const override { return true; }
  void record(bool on) override {
    if (on) return collector_.set_level(prof::TraceLevel::Full);
    trace_no_more();
    take_in_first_calls();
  }
  std::string child_trace() const override { return first_call_order(first_calls_, origin_ns_); }
  int64_t trace_time() const override { return prof::steady_ns() - origin_ns_; }

  void finish(lab::LabResult& result, const char* status) {
    file_thread_.request_stop();
    file_thread_.join();
    collector_.stop();
    keep([&] {
      drain();
      summary_.status = status;
      summary_.wall_s = static_cast<double>(trace_time()) * 1e-9;
      summary_.extra["traced"] = "Three more calls of each point, after it was measured without tracing.";
      write(result);
      writer_.finish();
    });
    if (!problem_.empty()) result.unsaved = "The run file is incomplete: " + problem_;
  }

 private:
  void write(const lab::LabResult& result) {
    summary_.steps = 0;
    for (const lab::LabPoint& p : result.points) summary_.steps += p.recorded.steps;
    summary_.extra[kKey] = to_json(result).dump();
    writer_.set_summary(summary_);
  }

  // At once: this sweep may be killed, too.
  void keep_left(const LeftSweep& left) {
    lab::LabResult known = partial_;
    known.points = left.points;
    write(known);
    writer_.add(prof::whole_batch(left.trace));
    writer_.flush();
  }

  // After graphs ran, a level change waits for the next step, and the next point would be measured during that wait.
  void trace_no_more() {
    constexpr int64_t kNone = -2;  // no step has that number, and it also differs from "no step yet"
    collector_.set_level(prof::TraceLevel::Off);
    if (auto* still = prof::listener()) still->steps_launched(kNone, 0);
  }

  // If it cannot be read, only the rows of that process are lost.
  void take_in_first_calls() {
    try {
      for (prof::TraceBatch& batch : take_first_calls(first_calls_)) keep([&] { writer_.add(std::move(batch)); });
    } catch (const std::exception&) {
    }
  }

  void drain() {
    for (prof::TraceBatch batch = collector_.take(); !batch.empty(); batch = collector_.take())
      writer_.add(std::move(batch));
  }

  template <class Work>
  void keep(const Work& work) {
    const std::lock_guard lock(writing_);
    if (!problem_.empty()) return;
    try {
      work();
    } catch (const std::exception& failure) {
      problem_ = failure.what();
    }
  }

  void write_until(const std::stop_token& ended) {
    repeat_until(ended, [this] {
      keep([this] {
        drain();
        writer_.flush_if_due();
      });
    });
  }

  lab::LabSink& sink_;
  prof::RunSummary summary_;
  prof::RunFileWriter writer_;
  prof::Collector collector_;
  int64_t origin_ns_ = 0;
  // This file belongs to this process and this sweep. The processes that make first calls write it.
  const std::string first_calls_ =
      (temporary_folder() /
       ("warpsight-first-" + std::to_string(getpid()) + "-" + std::to_string(prof::steady_ns())))
          .string();
  lab::LabResult partial_;
  std::mutex writing_;
  std::string problem_;
  std::jthread file_thread_;  // last member: it must end before the members it uses
};

lab::KernelChecks check_kernels(lab::LabSpec spec, const std::atomic<bool>& cancel, lab::LabSink& sink) {
  if (spec.kernels.empty() || !device_info().cuda) return {};
  if (spec.sizes.empty()) spec.sizes = lab::default_sizes(spec.operation);
  std::ranges::sort(spec.sizes);
  const int all = static_cast<int>(spec.sizes.size() * spec.kernels.size());
  return check_lab_kernels(spec, [&](int done, const std::string& what) {
    sink.progress(done, all, "checked: " + what);
    return !cancel;
  });
}

}  // namespace

lab::LabResult run_sweep(const lab::LabSpec& spec, const std::string& path, const std::atomic<bool>& cancel, lab::LabSink& sink) {
  std::optional<FoundFile> found;  // the check of kernels takes a while
  if (!path.empty()) found = prof::check_run_file(path);
  lab::KernelChecks checks = check_kernels(spec, cancel, sink);
  if (path.empty()) return lab::run_lab(spec, cancel, sink, {}, std::move(checks));
  LeftSweep left = left_sweep(spec, path).value_or(LeftSweep{});
  Recorder recorder(spec, path, sink, left, found);
  try {
    lab::LabResult result = lab::run_lab(spec, cancel, recorder, std::move(left.points), std::move(checks));
    recorder.finish(result, result.cancelled ? "stopped" : "finished");
    return result;
  } catch (const std::exception& failure) {
    lab::LabResult none;
    none.spec = spec;
    none.message = failure.what();
    recorder.finish(none, "failed");
    throw;
  }
}

std::optional<LeftSweep> left_sweep(const lab::LabSpec& spec, const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none) || !owner_of(path).empty()) return {};
  try {
    prof::RunFileReader file(path);
    const prof::RunSummary& before = file.summary();
    const auto found = before.extra.find(kKey);
    if (before.status != "running" || found == before.extra.end() || before.device != first_summary(spec).device) return {};
    const lab::LabResult result = lab::lab_result_from_json(parse_json(found->second, path));
    if (to_json(result.spec) != to_json(spec)) return {};
    LeftSweep left{result.points, file.trace()};
    file.fill(left.trace);
    return left;
  } catch (const Failure&) {  // a damaged file is replaced
    return {};
  }
}

std::optional<lab::LabResult> read_lab(const std::string& path) {
  const prof::RunSummary summary = prof::read_run_summary(path);
  const auto found = summary.extra.find(kKey);
  if (found == summary.extra.end()) return {};
  return lab::lab_result_from_json(parse_json(found->second, path));
}

}  // namespace ws::app
