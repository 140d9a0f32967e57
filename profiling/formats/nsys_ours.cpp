#include "profiling/formats/nsys_ours.h"

#include <algorithm>

#include "profiling/formats/nsys_rows.h"
#include "profiling/formats/nsys_sqlite.h"

namespace ws::prof {

void OurSteps::read(Database& db) {
  read_in_ = true;
  NsysRows rows(db, kOurSteps, {"start", "place", "step"});
  while (rows.next())
    if (const int64_t step = rows.integer(2); step > 0 && step < 0xffffffff)
      steps_.push_back({{rows.integer(0), rows.integer(1)}, static_cast<uint32_t>(step)});
  std::ranges::stable_sort(steps_, {}, &Known::begun);
}

uint32_t OurSteps::of(int64_t start, int64_t place) const {
  const std::pair begun{start, place};
  const auto known = std::ranges::lower_bound(steps_, begun, {}, &Known::begun);
  return known != steps_.end() && known->begun == begun ? known->step : 0;
}

}  // namespace ws::prof
