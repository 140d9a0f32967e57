// Writes what a collector gathers into a run file while the recorded program runs.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "profiling/collectors/collector.h"
#include "profiling/recording/host_notes.h"
#include "profiling/recording/loader_notes.h"
#include "profiling/recording/live_link.h"
#include "profiling/analysis/step_finder.h"
#include "profiling/run_file/run_file.h"

namespace ws::prof {

class ProgramWriter {
 public:
  // `follower`: address of the live follower; empty: none. `source`: returns batches until one is empty. Without it the
  // collector is the source.
  ProgramWriter(const std::string& path, const std::string& name, const CollectorOptions& options,
           const std::string& follower = "", std::function<TraceBatch()> source = {});
  ~ProgramWriter();
  // Writes the last records and the steps, and completes the file. A second call does nothing. A write error was
  // already reported on standard error when it occurred.
  void finish();
  const std::string& path() const { return path_; }
  HostNotes& notes() { return notes_; }
  void capture(bool on) { collector_.capture(on); }  // a capture range begins or ends, on the program's thread
  void add_gpu() { collector_.add_gpu(); }  // for a program that starts CUDA after the recording began

 private:
  void loop();
  void attempt(const std::function<void()>& work);  // an error ends the recording, never the program
  void give_up(const std::string& why);
  void take_all();
  void keep(TraceBatch&& batch);
  void keep(NotesReader::Rows&& rows);
  void take_notes();
  void end_file();
  void look_for_steps(const TraceBatch& batch);
  void write_steps();
  void show_steps(int rank, const FoundSteps& found);
  bool name_machine();  // returns true if there was news

  std::string path_;
  RunSummary summary_;
  Collector collector_;
  std::function<TraceBatch()> source_;
  std::unique_ptr<RunFileWriter> writer_;
  std::unique_ptr<LiveSender> follower_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  int64_t began_ = 0;
  bool captures_ = false;
  std::string trouble_;  // why writing has stopped
  StepFinders steps_;
  std::map<int, size_t> shown_;  // by rank: steps that the follower has
  size_t ranks_ = 0;                   // that have steps of their own; known at the end
  HostNotes notes_;
  NotesReader notes_reader_;
  LoaderNotes loaders_;
  int64_t origin_ = 0;  // steady clock at trace time 0
  uint64_t notes_refused_ = 0;
};

}  // namespace ws::prof
