// A job for other machines to watch, whose data are made: no training runs.
#pragma once
#include <filesystem>
#include <string>

#include "app/core/remote/job_sender.h"
#include "profiling/base/ownership.h"
#include "profiling/base/whole_file.h"

namespace ws::test {

// A job that sends so many spans and steps per second, as the collectors would: in batches, with the times of the clock.
class MadeJob {
 public:
  MadeJob(const app::JobFolder& job, double spans_a_s, double steps_a_s, const std::string& request = "{}")
      : folder_(made(job, request)), owned_(folder_.path()), sender_(folder_), spans_a_s_(spans_a_s), steps_a_s_(steps_a_s) {}

  // Until now_ns of the clock, or of the time that a test lets pass.
  void send_until(int64_t now_ns) {
    app::RemoteUpdate update;
    prof::BatchBuilder builder;
    auto &kernels = builder.row(prof::TrackKind::Stream, "stream 7", "GPU"), &steps = builder.row(prof::TrackKind::Steps, "steps", "CPU");
    const auto kernel = builder.id(builder.name("kernel")), step = builder.id(builder.name("step"));
    const auto apart = static_cast<int64_t>(1e9 / spans_a_s_), step_apart = static_cast<int64_t>(1e9 / steps_a_s_);
    for (; next_span_ + apart <= now_ns; next_span_ += apart) {
      prof::Span span{};
      span.start = next_span_, span.duration = static_cast<uint32_t>(apart / 2) + (next_random() >> 24);
      span.name = kernel, span.step = static_cast<uint32_t>((next_span_ - begin_) / step_apart);
      span.kind = static_cast<uint64_t>(prof::SpanKind::Kernel);
      kernels.spans.push_back(span);
    }
    for (; next_step_ + step_apart <= now_ns; next_step_ += step_apart) {
      prof::Span span{};
      span.start = next_step_, span.duration = static_cast<uint64_t>(step_apart);
      span.name = step, span.step = static_cast<uint32_t>(step_);
      span.kind = static_cast<uint64_t>(prof::SpanKind::Step);
      steps.spans.push_back(span);
      update.run.steps.push_back({step_++, 0.1f + static_cast<float>(next_random() >> 8) * 1e-9f, 0.5f, static_cast<double>(next_step_ - begin_) * 1e-9});
    }
    Progress progress;
    progress.step = step_, progress.elapsed_s = static_cast<double>(now_ns - begin_) * 1e-9;
    update.run.progress = progress;
    update.run.traces.push_back(builder.finish());
    sender_.send(update);
  }
  void begin_at(int64_t now_ns) { begin_ = next_span_ = next_step_ = now_ns; }
  int64_t steps() const { return step_; }

 private:
  uint32_t next_random() { return random_ = random_ * 1664525 + 1013904223; }
  static app::JobFolder made(const app::JobFolder& job, const std::string& request) {
    std::filesystem::create_directories(job.path());
    prof::write_whole(job.file("job.json"), request);
    return job;
  }
  app::JobFolder folder_;
  Ownership owned_;
  app::JobSender sender_;
  double spans_a_s_, steps_a_s_;
  int64_t begin_ = 0, next_span_ = 0, next_step_ = 0, step_ = 0;
  uint32_t random_ = 1;
};

}  // namespace ws::test
