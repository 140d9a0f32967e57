#include "profiling/recording/program_writer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "profiling/analysis/ranks.h"
#include "profiling/analysis/step_time.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/clock.h"
#include "profiling/base/launched_rank.h"
#include "profiling/base/process.h"
#include "profiling/base/text.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/record_keys.h"

namespace ws::prof {

ProgramWriter::ProgramWriter(const std::string& path, const std::string& name, const CollectorOptions& options,
                   const std::string& follower, std::function<TraceBatch()> source)
    : path_(path),
      source_(source ? std::move(source) : [this] { return collector_.take(); }),
      loaders_(std::filesystem::path(follower).parent_path().string()) {
  summary_.name = name;
  summary_.origin = "record";
  summary_.created = utc_text();
  summary_.extra[kRecordProcess] = this_process();
  began_ = steady_ns();
  captures_ = options.captures;
  const CollectorStatus status = collector_.start(options);
  summary_.extra["traced"] = status.sentence;
  origin_ = status.origin_ns;
  keep_origin(summary_, launched_rank(), origin_);
  writer_ = std::make_unique<RunFileWriter>(path, summary_);
  if (!follower.empty()) follower_ = std::make_unique<LiveSender>(follower, status.origin_ns);
  thread_ = std::thread([this] { loop(); });
}

ProgramWriter::~ProgramWriter() { finish(); }

void ProgramWriter::loop() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    attempt([this] {
      take_all();
      take_notes();
      steps_.each_so_far(steady_ns() - origin_, [this](int rank, const FoundSteps& found) { show_steps(rank, found); });
      if (follower_) follower_->send_waiting();
      if (name_machine()) writer_->set_summary(summary_);  // now, in case the program is killed
      writer_->flush_if_due();
    });
  }
}

// This thread runs in a program that does not know us, so an error such as a full disk must not end it. After an error,
// collected data is discarded, so that it takes no memory.
void ProgramWriter::attempt(const std::function<void()>& work) {
  try {
    if (trouble_.empty()) work();
  } catch (const std::exception& failure) {
    give_up(failure.what());
  }
  while (!trouble_.empty() && !source_().empty()) {
  }
}

bool ProgramWriter::name_machine() {
  if (!summary_.device.empty()) return false;
  const CollectorStatus status = collector_.status();
  if (status.device.empty()) return false;
  summary_.device = status.device;
  summary_.machine =
      nlohmann::json{{"gpu", status.device}, {"driver", status.driver}, {"compute", status.compute}}.dump();
  return true;
}

void ProgramWriter::take_all() {
  for (TraceBatch batch = source_(); !batch.empty(); batch = source_()) {
    look_for_steps(batch);
    keep(std::move(batch));
    writer_->flush_if_due();  // batches may arrive as fast as they are taken
  }
}

void ProgramWriter::keep(TraceBatch&& batch) {
  if (follower_) follower_->send(batch);
  writer_->add(std::move(batch));
}

void ProgramWriter::keep(NotesReader::Rows&& rows) {
  for (const Metric& metric : rows.metrics) writer_->add(metric);
  for (const Evaluation& evaluation : rows.evaluations) writer_->add(evaluation);
  if (follower_) follower_->send(rows.metrics, rows.evaluations);
  if (!rows.batch.empty()) keep(std::move(rows.batch));
}

void ProgramWriter::take_notes() {
  loaders_.take(notes_, [this](int64_t time) { return collector_.is_uncaptured(time); });
  HostNotes::Taken taken = notes_.take();
  if (taken.empty()) return;
  const bool facts = !taken.facts.empty();
  NotesReader::Rows rows = notes_reader_.read(std::move(taken), origin_, summary_);
  const uint64_t refused = notes_.refused();
  rows.batch.losses.dropped_records = refused - std::exchange(notes_refused_, refused);
  keep(std::move(rows));
  if (facts) writer_->set_summary(summary_);
}

void ProgramWriter::look_for_steps(const TraceBatch& batch) {
  for (const StepAllocations& calls : batch.allocations) steps_.take(calls);
  for (const BatchTrack& track : batch.tracks)
    steps_.take(track.rank, track.kind, track.group + " " + track.name, track.spans, batch.names);
}

void ProgramWriter::give_up(const std::string& why) {
  if (trouble_.empty()) std::fprintf(stderr, "warpsight: nothing more is recorded: %s\n", why.c_str());
  trouble_ = why;
}

TraceBatch batch_of(int rank, const FoundSteps& found, size_t first = 0) {
  BatchBuilder builder;
  builder.row(TrackKind::Steps, "steps", "CPU", 0, rank).spans = found.spans(builder.id(builder.name("step")), first);
  return builder.finish();
}

// The follower gets each step soon after it ended, and again if a later fact changes it. The file gets all at the end.
void ProgramWriter::show_steps(int rank, const FoundSteps& found) {
  if (!follower_) return;
  const size_t shown = std::exchange(shown_[rank], found.steps.size()), stayed = std::min(found.stayed, shown);
  if (stayed == shown && shown == found.steps.size()) return;
  TraceBatch batch = batch_of(rank, found, stayed);
  if (batch.tracks.empty()) batch.tracks.push_back({TrackKind::Steps, "steps", "CPU", 0, {}, rank});
  if (stayed < shown) batch.tracks[0].replaces = static_cast<uint32_t>(stayed + 1);
  follower_->send(batch);
}

void ProgramWriter::write_steps() {
  const auto by_rank = steps_.find();
  if (by_rank.empty()) return;
  for (const auto& [rank, steps] : by_rank) {
    show_steps(rank, steps);
    writer_->add(batch_of(rank, steps));
  }
  ranks_ = by_rank.size();
  const FoundSteps& found = by_rank.begin()->second;
  summary_.steps = static_cast<int64_t>(found.steps.size());
  summary_.us_per_step = found.us_each;
  summary_.step_time = step_time(found, collector_.status().gpu);
  summary_.allocator_calls_per_step = found.allocator_calls_each;
  summary_.extra["steps_from"] = found.from();
}

void ProgramWriter::finish() {
  if (stopping_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  collector_.stop();
  attempt([this] {
    take_all();
    take_notes();
    keep(notes_reader_.last());
    write_steps();
  });
  if (follower_) follower_->finish();
  end_file();
}

void ProgramWriter::end_file() {
  name_machine();
  if (ranks_ > 1 && !summary_.device.empty()) summary_.device = several_text(ranks_, summary_.device);
  const CollectorStatus status = collector_.status();
  keep_status(status, summary_.extra);
  if (status.captures > 0) summary_.extra[kCaptureCountKey] = std::to_string(status.captures);
  if (captures_ && status.captures == 0)
    summary_.extra[kNeverCaptured] = summary_.extra["traced"] =
        "Nothing was recorded: the program began no capture range. It calls cudaProfilerStart() or warpsight.capture() for that.";
  if (status.clock_width_ns > 0) summary_.extra[kClockWidthKey] = std::to_string(status.clock_width_ns);
  summary_.status = trouble_.empty() ? "finished" : "stopped";
  if (!trouble_.empty()) summary_.extra["message"] = "The recording ended early: " + trouble_;
  summary_.wall_s = static_cast<double>(steady_ns() - began_) * 1e-9;
  writer_->set_summary(summary_);
  try {
    writer_->finish();
  } catch (const std::exception& failure) {
    give_up(failure.what());
  }
  writer_.reset();  // releases the file, even if this object is never destroyed
}

}  // namespace ws::prof
