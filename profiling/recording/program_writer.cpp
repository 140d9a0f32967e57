#include "profiling/recording/program_writer.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/clock.h"
#include "profiling/base/driver_version.h"
#include "profiling/base/file_identity.h"
#include "profiling/base/process.h"
#include "profiling/base/text.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/record_keys.h"
#include "profiling/trace/batch_codec.h"

namespace ws::prof {
namespace {

// The program was killed and its file removed, or somebody else took the name: then nothing may be written there.
void must_be_the_same_file(const ProgramBegin& begin) {
  const FileIdentity claimed{static_cast<dev_t>(begin.device), static_cast<ino_t>(begin.file)};
  if (!claimed.known() || FileIdentity::of(begin.path) != claimed || holds_something(begin.path))
    throw Failure(begin.path + " was removed or replaced.");
}

RunSummary first_summary(const ProgramBegin& begin) {
  RunSummary summary;
  summary.name = begin.name;
  summary.origin = "record";
  summary.created = utc_text();
  summary.extra[kRecordProcess] = begin.process;
  if (!begin.follower.empty()) summary.extra[kRecordingKey] = recording_mark(begin.follower);
  summary.extra["traced"] = begin.traced;
  keep_origin(summary, begin.rank, begin.origin_ns);
  return summary;
}

TraceBatch batch_of(int rank, const FoundSteps& found, size_t first = 0) {
  BatchBuilder builder;
  builder.row(TrackKind::Steps, "steps", "CPU", 0, rank).spans = found.spans(builder.id(builder.name("step")), first);
  return builder.finish();
}

}  // namespace

ProgramWriter::ProgramWriter(ProgramBegin begin)
    : begin_(std::move(begin)), summary_(first_summary(begin_)),
      loaders_(std::filesystem::path(begin_.follower).parent_path().string(), begin_.number) {
  must_be_the_same_file(begin_);
  writer_ = std::make_unique<RunFileWriter>(begin_.path, summary_, begin_.process);
  if (!begin_.follower.empty()) follower_ = std::make_unique<LiveSender>(begin_.follower, begin_.number, begin_.origin_ns);
}

// A full disk, for example. What still arrives is discarded, so that it takes no memory.
void ProgramWriter::attempt(const std::function<void()>& work) {
  try {
    if (trouble_.empty()) work();
  } catch (const std::exception& failure) {
    trouble_ = failure.what();
  }
}

void ProgramWriter::take(FrameKind kind, std::string_view payload) {
  attempt([&] {
    if (kind == FrameKind::Ops) decode_ops(payload, ops_);
    if (kind == FrameKind::Batch) take_batch(decode_batch(payload, ops_));
    if (kind == FrameKind::Notes) take_notes(decode_notes(payload));
    if (kind == FrameKind::Status) take_status(decode_status(payload));
    if (kind == FrameKind::Alive && payload.size() == sizeof known_until_) std::memcpy(&known_until_, payload.data(), payload.size());
  });
}

void ProgramWriter::write_if_due() {
  attempt([this] {
    take_loaders();
    steps_.each_so_far(steady_ns() - begin_.origin_ns, [this](int rank, const FoundSteps& found) { show_steps(rank, found); });
    if (follower_) follower_->send_waiting();
    writer_->flush_if_due();
  });
}

void ProgramWriter::take_batch(TraceBatch&& batch) {
  for (const StepAllocations& calls : batch.allocations) steps_.take(calls);
  for (const BatchTrack& track : batch.tracks)
    steps_.take(track.rank, track.kind, track.group + " " + track.name, track.spans, batch.names);
  keep(std::move(batch));
  writer_->flush_if_due();  // batches may arrive as fast as they are taken
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

void ProgramWriter::take_notes(HostNotes::Taken&& notes) {
  captures_.insert(captures_.end(), notes.captures.begin(), notes.captures.end());
  const bool facts = !notes.facts.empty();
  keep(notes_reader_.read(std::move(notes), begin_.origin_ns, summary_));
  if (facts) writer_->set_summary(summary_);
}

// The device is known once the program uses it.
void ProgramWriter::take_status(ProgramStatus&& status) {
  status_ = std::move(status);
  if (status_.device.empty() || !summary_.device.empty()) return;
  summary_.device = status_.device;
  summary_.machine = nlohmann::json{{"gpu", status_.device}, {"driver", driver_version(status_.driver)}, {"compute", status_.compute}}.dump();
  writer_->set_summary(summary_);
}

void ProgramWriter::take_loaders() {
  loaders_.take(loader_notes_, known_until_, [this](int64_t time) { return is_uncaptured(time); });
  if (HostNotes::Taken taken = loader_notes_.take(); !taken.empty())
    keep(loader_reader_.read(std::move(taken), begin_.origin_ns, summary_));
}

bool ProgramWriter::is_uncaptured(int64_t time) const {
  if (!begin_.captures) return false;
  const auto next = std::ranges::upper_bound(captures_, time, {}, &HostNotes::Capture::time);
  return next == captures_.begin() || std::prev(next)->on == 0;
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
    if (steps.marked) continue;
    show_steps(rank, steps);
    writer_->add(batch_of(rank, steps));
  }
  ranks_ = by_rank.size();
  const FoundSteps& found = by_rank.begin()->second;
  summary_.steps = static_cast<int64_t>(found.steps.size());
  summary_.us_per_step = found.us_each;
  summary_.step_time = step_time(found, status_.gpu);
  summary_.allocator_calls_per_step = found.allocator_calls_each;
  summary_.extra["steps_from"] = found.from();
}

void ProgramWriter::finish(bool complete) {
  known_until_ = std::numeric_limits<int64_t>::max();
  attempt([this] {
    take_loaders();
    keep(notes_reader_.last());
    write_steps();
  });
  if (follower_) follower_->finish();
  end_file(complete);
}

void ProgramWriter::end_file(bool complete) {
  if (ranks_ > 1 && !summary_.device.empty()) summary_.device = several_text(ranks_, summary_.device);
  for (const auto& [key, value] : status_.kept) summary_.extra[key] = value;
  if (status_.captures > 0) summary_.extra[kCaptureCountKey] = std::to_string(status_.captures);
  if (complete && begin_.captures && status_.captures == 0)
    summary_.extra[kNeverCaptured] = summary_.extra["traced"] =
        "Nothing was recorded: the program began no capture range. It calls cudaProfilerStart() or warpsight.capture() for that.";
  if (status_.clock_width_ns > 0) summary_.extra[kClockWidthKey] = std::to_string(status_.clock_width_ns);
  summary_.status = complete && trouble_.empty() ? "finished" : "stopped";
  if (!complete) summary_.extra["message"] = kProgramLeft;
  if (!trouble_.empty()) summary_.extra["message"] = "The recording ended early: " + trouble_;
  summary_.wall_s = static_cast<double>(steady_ns() - begin_.began_ns) * 1e-9;
  writer_->set_summary(summary_);
  try {
    writer_->finish();
  } catch (const std::exception& failure) {
    if (trouble_.empty()) trouble_ = failure.what();
  }
  writer_.reset();  // releases the file
}

namespace {

// The program that sends the frames. It is gone once it has ended, and once it has become another one by exec().
class Sender {
 public:
  Sender(const ProgramBegin& begin, int ring)
      : process_(begin.mark), number_(static_cast<int>(begin.number)), ring_(ring), other_(number_ != getpid()) {
    constexpr long kOpenProcess = 434;  // pidfd_open(); older headers do not name it
    if (other_) file_ = static_cast<int>(syscall(kOpenProcess, number_, 0));
  }
  ~Sender() {
    if (file_ >= 0) close(file_);
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  bool gone(int most_ms, int64_t silent_ns) const {
    constexpr int64_t kSilent = 500'000'000;
    pollfd wait{file_, POLLIN, 0};
    const bool ended = poll(&wait, file_ >= 0 ? 1 : 0, most_ms) > 0;
    if (!other_) return false;
    return ended || (file_ < 0 && process_.ended(0)) || (silent_ns > kSilent && !maps_ring());
  }

 private:
  bool maps_ring() const {
    std::ifstream maps("/proc/" + std::to_string(number_) + "/maps");
    if (!maps) return !process_.ended(0);
    const std::string number = " " + std::to_string(ring_) + " ";  // stands there as the number of the file
    for (std::string line; std::getline(maps, line);)
      if (line.find(number) != line.npos && line.find("SYSV") != line.npos) return true;
    return false;
  }

  OtherProcess process_;
  int number_, file_ = -1;
  int ring_;
  bool other_;  // false in a test that does both
};

constexpr int kLookMs = 20;

// The frames of one program as they come.
class Writing {
 public:
  explicit Writing(FrameRing& ring) : ring_(ring) {}

  // Returns true if something came.
  bool take() {
    if (!ring_.take(bytes_)) return false;
    came_ = steady_ns();
    take_frames(bytes_, [this](FrameKind kind, std::string_view payload) { take(kind, payload); });
    return true;
  }
  bool over() const { return over_; }
  bool begun() const { return writer_.has_value(); }
  void wait_or_end() {
    if (take()) return write();
    if (sender_->gone(kLookMs, steady_ns() - came_)) {
      take();  // what it sent last
      over_ = true;
    }
    write();
  }
  void finish() {
    writer_->finish(complete_);
    ring_.report(writer_->trouble());
    ring_.set_state(WriterState::Finished);
  }

 private:
  void take(FrameKind kind, std::string_view payload) {
    if (kind == FrameKind::Begin && !writer_) begin(decode_begin(payload));
    if (kind == FrameKind::End) over_ = complete_ = true;
    if (writer_ && !over_) writer_->take(kind, payload);
  }
  void begin(ProgramBegin&& begin) {
    sender_.emplace(begin, ring_.number());
    writer_.emplace(std::move(begin));
    ring_.set_state(WriterState::Writing);
  }
  void write() {
    if (over_) return;
    writer_->write_if_due();
    ring_.report(writer_->trouble());
  }

  FrameRing& ring_;
  std::optional<Sender> sender_;
  std::optional<ProgramWriter> writer_;
  std::string bytes_;
  int64_t came_ = steady_ns();
  bool over_ = false, complete_ = false;
};

// While it lives, the program knows that its writer does.
class Held {
 public:
  explicit Held(FrameRing& ring) : ring_(ring) { ring_.hold(); }
  ~Held() { ring_.release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  FrameRing& ring_;
};

}  // namespace

bool write_run(FrameRing& ring) {
  const Held held(ring);
  try {
    Writing writing(ring);
    writing.take();
    if (!writing.begun()) return false;  // the first frame is there before the writer starts
    while (!writing.over()) writing.wait_or_end();
    writing.finish();
    return true;
  } catch (const std::exception& failure) {
    ring.report(failure.what());
    ring.set_state(WriterState::Failed);
    return false;
  }
}

}  // namespace ws::prof
