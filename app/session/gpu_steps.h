// Steps and phases as the GPU ran them. A host that runs ahead marks its steps long before the GPU gets to them, and a
// graph of many steps is one launch; the step numbers that kernels carry tell where each step really was.
#pragma once
#include "engine/run_spec.h"
#include "profiling/trace.h"

namespace ws::app {

bool host_runs_ahead(const RunSpec& spec);  // then the host's marks say nothing of the GPU's time

class GpuSteps {
 public:
  // Takes the kernels that began before `until`; call it with growing times.
  void update(const prof::Trace& from, prof::TimeNs until);
  void finish(const prof::Trace& from);  // the run is over: its last step is whole
  bool empty() const { return trace_.span_count() == 0; }
  const prof::Trace& trace() const { return trace_; }  // a track of steps and a track of phases

 private:
  struct Work {
    prof::TimeNs start, end;
    uint32_t step;
    prof::OpTag op;
  };
  struct Open {
    prof::TimeNs start = 0, end = 0;
    prof::NameId name{};
    bool any = false;
  };
  void take(const prof::Trace& from, const Work& work);
  void close(Open& open, prof::TrackId track, prof::SpanKind kind, prof::TimeNs next);

  prof::Trace trace_;
  prof::TrackId steps_{}, phases_{};
  Open step_, phase_;
  uint32_t number_ = 0;
  prof::TimeNs taken_ = INT64_MIN / 2;
  std::vector<Work> fresh_;
};

// Until when every kind of record is in: what the GPU did arrives later than what the host did.
prof::TimeNs arrived_until(const prof::Trace& trace, bool over);

}  // namespace ws::app
