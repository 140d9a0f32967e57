// What the collector adds to the trace by itself: its own pauses, and the inside of kernels that stamp the time.
#include <algorithm>
#include <iterator>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/collectors/collector_impl.h"

namespace ws::prof {

// A gap in the trace that we made ourselves says so.
void Collector::Impl::draw_pauses(bool last) {
  std::vector<std::pair<int64_t, int64_t>> done;
  {
    std::lock_guard lock(switch_mutex);
    done.swap(pauses);
    // A stretch between windows is long: what there is of it is said at once, so that its steps are not taken for idle.
    // One that is still open at the end ends there.
    if (quiet && (last || !paused)) {
      const int64_t now = steady_ns();
      done.emplace_back(std::exchange(quiet_since, now), now);
    }
  }
  for (const auto& [begin_ns, end_ns] : done) {
    Span span;
    span.start = context.from_steady(begin_ns);
    span.duration = static_cast<uint64_t>(end_ns - begin_ns);
    span.kind = static_cast<uint64_t>(SpanKind::Overhead);
    span.meaning = static_cast<uint64_t>(Meaning::Other);
    span.name = context.batch.id(context.batch.name("untraced on purpose"));
    context.batch.row(TrackKind::Overhead, kUntracedTrack, "CPU").spans.push_back(span);
  }
}

void Collector::Impl::draw_stamps(bool last) {
  {
    std::lock_guard lock(mutex);
    std::ranges::move(stamps, std::back_inserter(unmatched));
    stamps.clear();
  }
  std::erase_if(unmatched, [&](const StampedLaunch& launch) {
    for (const ResidentKernel& kernel : context.resident_kernels) {
      if (kernel.op != launch.kernel_op || kernel.step != launch.first_step) continue;
      draw(launch, kernel);
      return true;
    }
    return last;
  });
  if (unmatched.size() > 1024) unmatched.erase(unmatched.begin(), unmatched.end() - 1024);
}

void Collector::Impl::draw(const StampedLaunch& launch, const ResidentKernel& kernel) {
  const StampMap map = map_stamps(launch.stamps, kernel.start, kernel.end);
  for (BlockSpans& block : spans_of_stamps(launch.stamps, map)) {
    auto& row = context.batch.row(TrackKind::Inner, "block " + std::to_string(block.block),
                                  "GPU " + std::to_string(kernel.device));
    for (Span& span : block.spans) {
      span.name = context.batch.id(context.name_of(span.op));
      span.meaning = static_cast<uint64_t>(context.meaning_of(span.op));
      row.spans.push_back(span);
    }
  }
}

}  // namespace ws::prof
