// What an analysis on another thread reads: the file of a run, or a copy of the newest part of a trace that no file has
// yet.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "app/workspace/run.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/ranks.h"

namespace ws::app {

class TraceSource {
 public:
  explicit TraceSource(const Run& run);  // on the window's thread
  using Cancelled = std::shared_ptr<const std::atomic<bool>>;
  prof::RankReport ranks(const Cancelled& cancelled = nullptr) const;
  prof::MultiprocessorReport multiprocessors(const Cancelled& cancelled = nullptr) const;

 private:
  std::string path_;
  std::shared_ptr<prof::Trace> copy_;  // empty: the file is read
  bool part_ = false;                  // the trace is longer than its copy
};

}  // namespace ws::app
