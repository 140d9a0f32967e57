#include "profiling/collectors/stamp_spans.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ws::prof {
namespace {

constexpr size_t kMostWaiting = 1024;

}  // namespace

void StampSpans::draw(std::vector<StampedLaunch> fresh, bool last) {
  std::ranges::move(fresh, std::back_inserter(waiting_));
  std::erase_if(waiting_, [&](const StampedLaunch& launch) {
    for (const ResidentKernel& kernel : context_.resident_kernels) {
      if (kernel.op != launch.kernel_op || kernel.step != launch.first_step) continue;
      draw(launch, kernel);
      return true;
    }
    return last;
  });
  if (waiting_.size() > kMostWaiting) waiting_.erase(waiting_.begin(), waiting_.end() - kMostWaiting);
}

void StampSpans::draw(const StampedLaunch& launch, const ResidentKernel& kernel) {
  const StampMap map = map_stamps(launch, kernel.start, kernel.end);
  for (StampedLane& lane : spans_of_stamps(launch.stamps, map)) {
    const StampedLaneName of = lane.lane < launch.lanes.size() ? launch.lanes[lane.lane]
                                                               : StampedLaneName{"block " + std::to_string(lane.lane)};
    auto& row = context_.batch.row(TrackKind::Inner, of.name, "GPU " + std::to_string(kernel.device), 0,
                                   context_.rank_of_gpu(kernel.device));
    for (Span& span : lane.spans) {
      span.name = context_.batch.id(context_.name_of(span.op));
      span.meaning = static_cast<uint64_t>(context_.meaning_of(span.op));
      if (of.helper) span.flags = kHelper;
      row.spans.push_back(span);
    }
  }
}

}  // namespace ws::prof
