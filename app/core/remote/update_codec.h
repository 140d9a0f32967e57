// Encodes the reports of a training or a recording as frames, and decodes them. They are split by urgency: state;
// news, which are few and never left out; losses and tests, which may be thinned; traces, which may have gaps.
#pragma once
#include <string>
#include <vector>

#include "app/core/remote/curves.h"
#include "app/core/remote/frame.h"
#include "app/core/runs/traced_training.h"
#include "profiling/recording/live_link.h"

namespace ws::app {

// A RunUpdate from another machine. It does not carry the plan, because the spec determines it.
struct RemoteUpdate {
  RunUpdate run;
  bool recompiled = false;                      // the plan changed since the last update
  std::optional<prof::FollowStatus> recording;  // only for a program that is recorded there
  std::vector<std::string> results;                // JSON of an experiment or a sweep, see remote_job.h
  std::vector<std::string> files;               // at the end: run files there, the main one first
  std::optional<int> exit_status;               // set once the job has ended; from the recorded program or command
};

class UpdateWriter {
 public:
  // Each returns one part of an update; empty if the update has no such part.
  static std::string now(const RemoteUpdate& update);
  std::string news(const RemoteUpdate& update);
  static std::string curves(const Curves& curves);
  static std::string trace(const prof::TraceBatch& batch);

 private:
  size_t ops_sent_ = 1;  // number of tags of this process that the other side knows
};

// Reads frames of all kinds and trusts none of the bytes. Throws Failure.
class UpdateReader {
 public:
  void read(const Frame& frame, RemoteUpdate& into);

 private:
  std::vector<prof::OpTag> ops_;  // local tags, by the tag of the other side
};

}  // namespace ws::app
