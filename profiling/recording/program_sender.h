// Runs in a recorded program: sends what a collector gathers to the process that writes the run file.
#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "profiling/base/small_thread.h"
#include "profiling/collectors/collector.h"
#include "profiling/recording/frame_ring.h"
#include "profiling/recording/host_notes.h"
#include "profiling/recording/program_frames.h"

namespace ws::prof {

class ProgramSender {
 public:
  // Starts what reads the ring: a process, or a thread of a test. Returns its process number; throws Failure.
  using StartWriter = std::function<int(const FrameRing& ring)>;
  // `path`: an empty file of ours, see claim_file(). `source`: returns batches until one is empty; without it the collector
  // is the source. Returns once the writer has begun; throws Failure if it cannot.
  ProgramSender(const std::string& path, const std::string& name, const CollectorOptions& options, const std::string& follower,
                const StartWriter& start, std::function<TraceBatch()> source = {});
  ~ProgramSender();
  // Sends the last records. Waits for the writer as long as it reads, and at most a second for the complete file if nobody
  // else waits for it. A second call does nothing.
  void finish();
  HostNotes& notes() { return notes_; }
  void capture(bool on);  // a capture range begins or ends, on the program's thread
  void add_gpu() { collector_.add_gpu(); }  // for a program that starts CUDA after the recording began

 private:
  void begin(ProgramBegin&& begin, const StartWriter& start);
  void loop();
  void send_all(size_t most_waiting);
  void send_status();
  size_t unsent() const { return waiting_.size() - sent_; }
  void push();
  bool writer_ended() const;
  void push_rest();
  void wait_until_written();
  void stop_if_not_written();

  Collector collector_;
  std::function<TraceBatch()> source_;
  FrameRing ring_;
  HostNotes notes_;
  NewOps ops_;
  std::string waiting_;  // frames that the ring had no space for; unsent bytes begin at sent_
  size_t sent_ = 0;
  std::string status_;   // as sent
  std::string trouble_;  // why nothing more is recorded
  int writer_ = 0;       // its process
  int process_ = 0;      // this one: a forked child must not write
  bool followed_ = false;
  std::atomic<bool> stopping_{false};
  SmallThread thread_;
};

}  // namespace ws::prof
