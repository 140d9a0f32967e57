// Steps and phases as the GPU ran them. A host that runs ahead marks its steps long before the GPU reaches them, and a
// graph of many steps is one launch. The step numbers of the kernels tell where each step really was.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::prof {

// True if most kernels began after the host had marked the end of their step. Then the marks say nothing about GPU
// time. For traces of programs whose settings are not known.
bool host_ran_ahead(const Trace& trace);

class GpuSteps {
 public:
  // Takes the kernels that began before `until`. `until` must not decrease from call to call.
  void update(const Trace& from, TimeNs until);
  void finish(const Trace& from);  // call it at the end of the run, which completes the last step
  bool empty() const { return trace_.span_count() == 0; }
  const Trace& trace() const { return trace_; }  // a track of steps and a track of phases

 private:
  struct Work {
    TimeNs start, end;
    uint32_t step;
    OpTag op;
  };
  struct Open {
    TimeNs start = 0, end = 0;
    NameId name{};
    bool any = false;
  };
  void take(const Trace& from, const Work& work);
  void close(Open& open, TrackId track, SpanKind kind, TimeNs next);

  Trace trace_;
  TrackId steps_{}, phases_{};
  Open step_, phase_;
  uint32_t number_ = 0;
  TimeNs taken_ = INT64_MIN / 2;
  std::vector<Work> fresh_;
};

// Time until which every kind of record has arrived. GPU records arrive later than host records.
TimeNs arrived_until(const Trace& trace, bool over);

}  // namespace ws::prof
