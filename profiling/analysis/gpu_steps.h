// Steps and phases as the GPU ran them. A host that runs ahead marks its steps long before the GPU gets to them, and a
// graph of many steps is one launch; the step numbers that kernels carry tell where each step really was.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::prof {

// Whether most kernels began after the host had marked the end of their step: then its marks say nothing of the GPU's
// time. For traces whose program's choices are not known.
bool host_ran_ahead(const Trace& trace);

class GpuSteps {
 public:
  // Takes the kernels that began before `until`; call it with growing times.
  void update(const Trace& from, TimeNs until);
  void finish(const Trace& from);  // the run is over: its last step is whole
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

// Until when every kind of record is in: what the GPU did arrives later than what the host did.
TimeNs arrived_until(const Trace& trace, bool over);

}  // namespace ws::prof
