// Writes what a collector gathers into a run file while the recorded program runs.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "profiling/collectors/collector.h"
#include "profiling/collectors/follow.h"
#include "profiling/collectors/step_pattern.h"
#include "profiling/formats/run_file.h"

namespace ws::prof {

class Recorder {
 public:
  // `follower`: address of who follows it live; empty: nobody.
  Recorder(const std::string& path, const std::string& name, const CollectorOptions& options,
           const std::string& follower = "");
  ~Recorder();
  void finish();  // last records, steps, one file; the second call does nothing
  const std::string& path() const { return path_; }

 private:
  void loop();
  void take_all();
  void keep(TraceBatch&& batch);
  void look_for_steps(const TraceBatch& batch);
  void write_steps();
  bool name_machine();  // true when there was news
  std::vector<FoundStep> steps();

  std::string path_;
  RunSummary summary_;
  Collector collector_;
  std::unique_ptr<RunFileWriter> writer_;
  std::unique_ptr<LiveSender> follower_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  int64_t began_ = 0;
  std::vector<FoundStep> ranges_;                           // that name themselves steps
  std::map<std::string, std::vector<SeenKernel>> kernels_;  // by stream
  std::map<std::string, uint32_t> names_;
  size_t kernels_kept_ = 0;
  uint64_t allocator_calls_ = 0;
};

}  // namespace ws::prof
