// Kernels with lanes inside, made so that the late multiprocessor is known.
#pragma once
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

// A kernel of many steps: forward, a wait until the last multiprocessor has ended it, optimizer.
struct MadeInside {
  int multiprocessors = 132, steps = 60;
  int late = 17;         // -1: none
  TimeNs delay = 400;    // of forward, in nine of ten steps
  TimeNs other = 0;      // longer optimizer of all
  int once = -1;         // the step in which multiprocessor 5 is late by the delay
  bool warps = false;    // two rows a multiprocessor
  bool numbered = true;  // steps have numbers; otherwise each is a kernel
  bool planned = false;  // waits belong to an op that names the reason

  Trace trace() {
    Trace trace;
    if (planned) trace.ops = {{}, {"wait", "for sums", "", "", Meaning::Sync}};
    std::mt19937 random(1);
    const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
    TimeNs time = 1000;
    const TimeNs begin = time;
    for (int step = 0; step < steps; ++step) time = add_step(trace, random, step, time, stream);
    if (numbered) add(trace, stream, "persistent", Meaning::Matrix, SpanKind::Kernel, begin, time, 0);
    return trace;
  }

 private:
  TimeNs delay_of(int multiprocessor, int step) const {
    return (multiprocessor == late && step % 10 != 0) || (multiprocessor == 5 && step == once) ? delay : 0;
  }

  TimeNs add_step(Trace& trace, std::mt19937& random, int step, TimeNs time, TrackId stream) {
    std::vector<TimeNs> ends;
    for (int m = 0; m < multiprocessors; ++m)
      ends.push_back(time + 2000 + static_cast<TimeNs>(random() % 9) + delay_of(m, step));
    const TimeNs all = std::ranges::max(ends) + 50, done = all + 1000 + other;
    for (int m = 0; m < multiprocessors; ++m) {
      const std::string number = std::to_string(m);
      const std::string row = "SM " + std::string(3 - number.size(), '0') + number;
      for (int warp = 0; warp < (warps ? 2 : 1); ++warp) {
        const TrackId lane =
            trace.track(TrackKind::Inner, row + (warps ? " warp 0" + std::to_string(warp) : ""), "GPU 0");
        const auto at = static_cast<size_t>(m);
        add(trace, lane, "forward", Meaning::Matrix, SpanKind::Inner, time, ends[at], step + 1);
        add(trace, lane, "wait", Meaning::Sync, SpanKind::Inner, ends[at], all, step + 1);
        add(trace, lane, "optimizer", Meaning::Optimizer, SpanKind::Inner, all, done, step + 1);
      }
    }
    if (!numbered) add(trace, stream, "mine", Meaning::Matrix, SpanKind::Kernel, time, done, 0);
    return numbered ? done : done + 5000;
  }

  void add(Trace& trace, TrackId track, const char* name, Meaning meaning, SpanKind kind, TimeNs begin, TimeNs end,
           int step) const {
    Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(end - begin);
    span.name = trace.intern(name), span.meaning = static_cast<uint64_t>(meaning);
    if (planned && meaning == Meaning::Sync) span.op = 1;
    span.kind = static_cast<uint64_t>(kind), span.step = numbered ? static_cast<uint32_t>(step) : 0;
    trace.append(track, span);
  }
};

}  // namespace ws::prof
