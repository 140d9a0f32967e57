// Turns the stamps that a resident kernel wrote into spans inside of its record.
#pragma once
#include <vector>

#include "profiling/collectors/op_join.h"
#include "profiling/collectors/trace_context.h"

namespace ws::prof {

class StampSpans {
 public:
  explicit StampSpans(TraceContext& context) : context_(context) {}
  // Draws what has its kernel's record by now, and keeps the rest; the last time, drops the rest.
  void draw(std::vector<StampedLaunch> fresh, bool last);

 private:
  void draw(const StampedLaunch& launch, const ResidentKernel& kernel);

  TraceContext& context_;
  std::vector<StampedLaunch> waiting_;
};

}  // namespace ws::prof
