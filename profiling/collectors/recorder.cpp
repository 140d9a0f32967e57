#include "profiling/collectors/recorder.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "profiling/clock.h"

namespace ws::prof {

namespace {

constexpr size_t kMostKernels = 4'000'000;  // kept to look for steps in

}  // namespace

Recorder::Recorder(const std::string& path, const std::string& name, const CollectorOptions& options,
                   const std::string& follower)
    : path_(path) {
  summary_.name = name;
  summary_.origin = "record";
  summary_.created = utc_text();
  began_ = steady_ns();
  const CollectorStatus status = collector_.start(options);
  summary_.extra["traced"] = status.sentence;
  writer_ = std::make_unique<RunFileWriter>(path, summary_);
  if (!follower.empty()) follower_ = std::make_unique<LiveSender>(follower, status.origin_ns);
  thread_ = std::thread([this] { loop(); });
}

Recorder::~Recorder() { finish(); }

void Recorder::loop() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    take_all();
    if (name_machine()) writer_->set_summary(summary_);  // also of a program that is killed
    writer_->flush_if_due();
  }
}

bool Recorder::name_machine() {
  if (!summary_.device.empty()) return false;
  const CollectorStatus status = collector_.status();
  if (status.device.empty()) return false;
  summary_.device = status.device;
  summary_.machine =
      nlohmann::json{{"gpu", status.device}, {"driver", status.driver}, {"compute", status.compute}}.dump();
  return true;
}

void Recorder::take_all() {
  for (TraceBatch batch = collector_.take(); !batch.empty(); batch = collector_.take()) {
    look_for_steps(batch);
    keep(std::move(batch));
  }
}

void Recorder::keep(TraceBatch&& batch) {
  if (follower_) follower_->send(batch);
  writer_->add(std::move(batch));
}

void Recorder::look_for_steps(const TraceBatch& batch) {
  std::vector<uint32_t> name_of;
  for (const std::string& name : batch.names) {
    name_of.push_back(names_.try_emplace(name, static_cast<uint32_t>(names_.size())).first->second);
  }
  for (const StepAllocations& calls : batch.allocations) {
    allocator_calls_ += calls.allocations + calls.frees + calls.async_allocations + calls.async_frees;
  }
  for (const BatchTrack& track : batch.tracks) {
    for (const Span& span : track.spans) {
      const auto name = static_cast<size_t>(span.name);
      if (span.span_kind() == SpanKind::Phase && names_a_step(batch.names[name]))
        ranges_.push_back({span.start, span.end()});
      if (span.span_kind() != SpanKind::Kernel || kernels_kept_ >= kMostKernels) continue;
      kernels_[track.group + track.name].push_back({span.start, span.end(), name_of[name]});
      ++kernels_kept_;
    }
  }
}

std::vector<FoundStep> Recorder::steps() {
  if (ranges_.size() >= 2) {
    std::ranges::sort(ranges_, {}, &FoundStep::start);
    return ranges_;
  }
  std::vector<SeenKernel>* busiest = nullptr;
  for (auto& [stream, kernels] : kernels_) {
    if (!busiest || kernels.size() > busiest->size()) busiest = &kernels;
  }
  if (!busiest) return {};
  std::ranges::stable_sort(*busiest, {}, &SeenKernel::start);
  return find_steps(*busiest);
}

void Recorder::write_steps() {
  const std::vector<FoundStep> found = steps();
  if (found.empty()) return;
  BatchBuilder builder;
  auto& row = builder.row(TrackKind::Steps, "steps", "CPU");
  const NameId name = builder.id(builder.name("step"));
  for (const FoundStep& step : found) {
    Span span;
    span.start = step.start;
    span.duration = static_cast<uint64_t>(step.end - step.start);
    span.kind = static_cast<uint64_t>(SpanKind::Step);
    span.meaning = static_cast<uint64_t>(Meaning::Other);
    span.flags = ranges_.size() >= 2 ? 0 : kEstimated;
    span.name = name;
    span.step = static_cast<uint32_t>(row.spans.size() + 1);
    row.spans.push_back(span);
  }
  keep(builder.finish());
  summary_.steps = static_cast<int64_t>(found.size());
  summary_.us_per_step =
      static_cast<double>(found.back().end - found.front().start) * 1e-3 / static_cast<double>(found.size());
  summary_.allocator_calls_per_step = static_cast<double>(allocator_calls_) / static_cast<double>(found.size());
  summary_.extra["steps_from"] = ranges_.size() >= 2 ? "NVTX ranges" : "the repeating pattern of kernels";
}

void Recorder::finish() {
  if (stopping_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  collector_.stop();
  take_all();
  write_steps();
  name_machine();
  const CollectorStatus status = collector_.status();
  summary_.extra["traced"] = status.sentence;
  if (!status.counters.empty()) summary_.extra["counters"] = status.counters;
  summary_.status = "finished";
  summary_.wall_s = static_cast<double>(steady_ns() - began_) * 1e-9;
  writer_->set_summary(summary_);
  writer_->finish();
  if (follower_) follower_->finish();
}

}  // namespace ws::prof
