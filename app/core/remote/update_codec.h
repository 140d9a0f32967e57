// What a training or a recording tells as it goes, as frames and back, by how urgent it is: news are few; losses are many and
// never left out; traces are more and may be.
#pragma once
#include <string>
#include <vector>

#include "app/core/remote/frame.h"
#include "app/core/runs/traced_training.h"
#include "profiling/recording/live_link.h"

namespace ws::app {

// A RunUpdate as it comes from another machine. Its plan is not carried: the spec says it.
struct RemoteUpdate {
  RunUpdate run;
  bool recompiled = false;                      // the plan is another one since
  std::optional<prof::FollowStatus> recording;  // of a program that is recorded there
  std::vector<std::string> files;               // with the end: run files there, the first one first
  int64_t steps_until = 0;                      // the losses before this step belong to these news and those before
  std::optional<int> exit_status;               // the job has ended; of a recorded program or a command
};

class UpdateWriter {
 public:
  // Frames of the news without the losses, of the losses, and one for each batch of the trace.
  std::string news(const RemoteUpdate& update);
  static std::string losses(const std::vector<StepResult>& steps);
  static std::string trace(const prof::TraceBatch& batch);

 private:
  size_t ops_told_ = 1;  // tags of this process that the other side knows
};

// Reads all kinds. Throws Failure; nothing of the bytes is trusted.
class UpdateReader {
 public:
  void read(const Frame& frame, RemoteUpdate& into);

 private:
  void read_ops(std::string_view text);
  std::vector<prof::OpTag> ops_;  // here, by tag there
};

}  // namespace ws::app
