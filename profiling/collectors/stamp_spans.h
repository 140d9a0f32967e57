// Converts the stamps of a resident kernel into spans inside its record.
#pragma once
#include <vector>

#include "profiling/collectors/op_join.h"
#include "profiling/collectors/trace_context.h"

namespace ws::prof {

class StampSpans {
 public:
  explicit StampSpans(TraceContext& context) : context_(context) {}
  // Draws the launches whose kernel record has arrived and keeps the rest. With `last`, drops the rest.
  void draw(std::vector<StampedLaunch> fresh, bool last);

 private:
  void draw(const StampedLaunch& launch, const ResidentKernel& kernel);

  TraceContext& context_;
  std::vector<StampedLaunch> waiting_;
};

}  // namespace ws::prof
