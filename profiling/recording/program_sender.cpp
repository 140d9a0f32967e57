#include "profiling/recording/program_sender.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/file_identity.h"
#include "profiling/base/process.h"
#include "profiling/recording/own_files.h"
#include "profiling/trace/batch_codec.h"

namespace ws::prof {
namespace {

constexpr size_t kMostWaiting = size_t{16} << 20;  // bytes beside the ring; then batches stay in the collector, which counts what it drops
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kMostBeginNs = 20'000 * kMs, kMostStillNs = 2000 * kMs, kMostEndNs = 1000 * kMs;

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// No file is opened for the answer.
bool has_ended(int process) { return process > 0 && kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

ProgramSender::ProgramSender(const std::string& path, const std::string& name, const CollectorOptions& options,
                             const std::string& follower, const StartWriter& start, std::function<TraceBatch()> source)
    : source_(source ? std::move(source) : [this] { return collector_.take(); }), process_(getpid()), followed_(!follower.empty()) {
  ProgramBegin first;
  first.path = path, first.name = name, first.follower = follower;
  with_own_files([&] { first.process = this_process(); first.mark = process_mark(); });
  first.number = getpid();
  first.rank = launched_rank(), first.captures = options.captures;
  first.began_ns = steady_ns();
  const auto claimed = FileIdentity::of(path);
  first.device = claimed.device, first.file = claimed.file;
  const CollectorStatus status = collector_.start(options);
  first.traced = status.sentence, first.origin_ns = status.origin_ns;
  begin(std::move(first), start);
  thread_ = SmallThread([this] { loop(); });
}

ProgramSender::~ProgramSender() { finish(); }

void ProgramSender::begin(ProgramBegin&& begin, const StartWriter& start) {
  add_frame(waiting_, FrameKind::Begin, encode(begin));
  push();
  writer_ = start(ring_);
  const int64_t until = steady_ns() + kMostBeginNs;
  while (ring_.state() == WriterState::Starting && !writer_ended() && steady_ns() < until) pause_ms(1);
  if (const std::string trouble = ring_.trouble(); !trouble.empty()) throw Failure(trouble);
  if (ring_.state() == WriterState::Starting) throw Failure("the process that writes the run file does not begin.");
}

// In a container whose first process reaps nothing, the number of an ended process stays.
bool ProgramSender::writer_ended() const { return ring_.writer_died() || has_ended(writer_); }

void ProgramSender::capture(bool on) {
  notes_.capture(on);
  collector_.capture(on);
}

void ProgramSender::loop() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    pause_ms(50);
    send_all(kMostWaiting);
    stop_if_not_written();
  }
}

// After a failure, data is discarded so that it takes no memory.
void ProgramSender::send_all(size_t most_waiting) {
  const int64_t now = steady_ns();  // what is taken below is complete up to here
  push();
  while (unsent() < most_waiting) {
    const TraceBatch batch = source_();
    if (batch.empty()) break;
    if (!trouble_.empty()) continue;
    ops_.add_frame_if_any(waiting_);
    add_frame(waiting_, FrameKind::Batch, encode_batch(batch));
    push();
  }
  const HostNotes::Taken notes = notes_.take();
  if (!trouble_.empty()) return;
  if (!notes.empty()) add_frame(waiting_, FrameKind::Notes, encode(notes));
  if (status_.empty()) send_status();
  if (unsent() < most_waiting) add_frame(waiting_, FrameKind::Alive, bytes_of(now));
  push();
}

// Once the device is known, in case the program is killed, and at the end.
void ProgramSender::send_status() {
  const CollectorStatus status = collector_.status();
  if (status.device.empty() && !stopping_) return;
  status_ = encode(status_of(status));
  add_frame(waiting_, FrameKind::Status, status_);
}

void ProgramSender::push() {
  sent_ += ring_.put(std::string_view(waiting_).substr(sent_));
  if (sent_ < waiting_.size() && sent_ < waiting_.size() / 2) return;  // frees the sent part only when it is large
  waiting_.erase(0, sent_);
  sent_ = 0;
}

void ProgramSender::stop_if_not_written() {
  if (!trouble_.empty()) return;
  trouble_ = ring_.trouble();
  if (trouble_.empty() && writer_ended()) trouble_ = "the process that writes the run file was ended. The written part is shown.";
  if (trouble_.empty()) return;
  report("nothing more is recorded: " + trouble_);
}

// A writer that stands still does not keep the program from its end. One that has failed still gets the end.
void ProgramSender::push_rest() {
  for (int64_t moved = steady_ns(); unsent() > 0 && !writer_ended() && steady_ns() - moved < kMostStillNs;) {
    const size_t before = unsent();
    push();
    if (unsent() < before) moved = steady_ns();
    if (unsent() > 0) pause_ms(1);
  }
}

void ProgramSender::wait_until_written() {
  const int64_t until = steady_ns() + kMostEndNs;
  while (ring_.state() == WriterState::Writing && !writer_ended() && steady_ns() < until) pause_ms(1);
}

void ProgramSender::finish() {
  if (getpid() != process_ || stopping_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  collector_.stop();
  status_.clear();
  send_all(SIZE_MAX);
  add_frame(waiting_, FrameKind::End, {});
  push_rest();
  stop_if_not_written();
  if (!followed_) wait_until_written();
  stop_if_not_written();
}

}  // namespace ws::prof
