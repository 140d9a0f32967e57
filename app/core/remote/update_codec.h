// What a training or a recording tells as it goes, as frames and back, by how urgent it is: how things stand; news, which are
// few and never left out; losses and tests, which may be thinned; traces, of which parts may be left out.
#pragma once
#include <string>
#include <vector>

#include "app/core/remote/curves.h"
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
  std::optional<int> exit_status;               // the job has ended; of a recorded program or a command
};

class UpdateWriter {
 public:
  // Each part of an update by itself; empty: it has none.
  static std::string now(const RemoteUpdate& update);
  std::string news(const RemoteUpdate& update);
  static std::string curves(const Curves& curves);
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
