// Writes the run file of a recorded program, outside of it, from the frames that the program sends.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/step_finder.h"
#include "profiling/recording/frame_ring.h"
#include "profiling/recording/host_notes.h"
#include "profiling/recording/live_link.h"
#include "profiling/recording/loader_notes.h"
#include "profiling/recording/program_frames.h"
#include "profiling/run_file/run_file.h"

namespace ws::prof {

// Message of a run whose program did not reach its exit handlers.
inline constexpr const char* kProgramLeft = "The process was killed, or left without its exit handlers. The written part is shown.";

class ProgramWriter {
 public:
  explicit ProgramWriter(ProgramBegin begin);  // creates the run file; throws Failure
  void take(FrameKind kind, std::string_view payload);
  void write_if_due();
  void finish(bool complete);  // writes the last records and the steps, and completes the file
  const std::string& trouble() const { return trouble_; }  // why writing has stopped; empty: it has not

 private:
  void attempt(const std::function<void()>& work);  // an error ends the writing; later frames are discarded
  void keep(TraceBatch&& batch);
  void keep(NotesReader::Rows&& rows);
  void take_batch(TraceBatch&& batch);
  void take_notes(HostNotes::Taken&& notes);
  void take_status(ProgramStatus&& status);
  void take_loaders();
  bool is_uncaptured(int64_t time) const;
  void write_steps();
  void show_steps(int rank, const FoundSteps& found);
  void end_file(bool complete);

  ProgramBegin begin_;
  RunSummary summary_;
  ProgramStatus status_;
  std::unique_ptr<RunFileWriter> writer_;
  std::unique_ptr<LiveSender> follower_;
  std::vector<OpTag> ops_;  // maps the program's op tags to ours
  std::vector<HostNotes::Capture> captures_;
  int64_t known_until_ = 0;  // steady clock: what happened before has arrived
  std::string trouble_;
  StepFinders steps_;
  std::map<int, size_t> shown_;  // by rank: steps that the follower has
  size_t ranks_ = 0;             // that have steps of their own; known at the end
  NotesReader notes_reader_, loader_reader_;
  HostNotes loader_notes_;
  LoaderNotes loaders_;
};

// Reads the frames of a program until it ends, and writes its run file. Returns false if nothing could be written.
bool write_run(FrameRing& ring);

}  // namespace ws::prof
