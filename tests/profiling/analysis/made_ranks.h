// Made traces of a data-parallel training: each rank computes, then all ranks reduce two buckets. One rank comes late.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct MadeRanks {
  int ranks = 8;
  int64_t steps = 101;
  TimeNs late = 3'000'000;  // delay of the late rank
  int late_rank = 5;
  int64_t every = 10;
  TimeNs usually_late = 0;  // the late rank, in every step
  std::map<int64_t, TimeNs> hiccups;  // further delays of the late rank, by step
  TimeNs bursts = 0;  // each rank comes later by up to so much, by chance in every tenth step
  int kernels = 1;        // of a forward phase of 1 ms
  TimeNs jitter = 2'000;  // of each rank's begin
  bool marks = true;      // each rank marks its steps
  bool numbered = false;  // spans know their step
  int64_t evaluate_every = 0;  // steps; 0: never
  bool small_last_batch = false;  // before an evaluation
  TimeNs bucket = kBucket;  // a transfer
  bool backward_waits = true;  // for the last rank
  uint64_t bytes = 25 << 20;
  std::string all_reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
  std::function<TimeNs(int rank, TimeNs)> clock = [](int, TimeNs time) { return time; };

  static constexpr TimeNs kForward = 1'000'000, kBucket = 158'000, kBackward = 101'000;
  static constexpr TimeNs kEvaluation = 6'000'000;  // some steps long

  // Calls trace_of(rank) for the trace that gets the rank, and rank_of(rank) for the rank of its tracks.
  void add(const std::function<Trace&(int)>& trace_of, const std::function<int(int)>& rank_of) const {
    std::mt19937 random(7);
    std::vector<Row> rows;
    for (int r = 0; r < ranks; ++r) rows.push_back(row(trace_of(r), r, rank_of(r)));
    TimeNs now = 1'000'000;
    for (int64_t step = 0; step < steps; ++step) {
      if (evaluate_every > 0 && step > 0 && step % evaluate_every == 0) now += kEvaluation;
      now = add_step(rows, step, now, random);
    }
  }

  Trace joined() const {
    Trace trace;
    add([&](int) -> Trace& { return trace; }, [](int rank) { return rank; });
    return trace;
  }
  std::vector<Trace> apart() const {
    std::vector<Trace> traces(static_cast<size_t>(ranks));
    add([&](int rank) -> Trace& { return traces[static_cast<size_t>(rank)]; }, [](int) { return -1; });
    return traces;
  }

 private:
  struct Row {
    Trace* trace;
    int rank;
    TrackId compute, communication, marks;
    NameId gemm, backward, reduce, step;
    DetailId detail;
  };

  Row row(Trace& trace, int number, int rank) const {
    const std::string group = rank < 0 ? "" : "rank " + std::to_string(rank) + " · ";
    Detail detail;
    detail.bytes = bytes;
    Row made{&trace,
             number,
             trace.track(TrackKind::Stream, "stream 7", group + "GPU 0", 0, rank),
             trace.track(TrackKind::Stream, "stream 20", group + "GPU 0", 0, rank),
             {},
             trace.intern("gemm"),
             trace.intern("gemm_backward"),
             trace.intern(all_reduce),
             trace.intern("step"),
             trace.intern(detail)};
    if (marks) made.marks = trace.track(TrackKind::Steps, "steps", group + "CPU", 0, rank);
    return made;
  }

  void put(const Row& to, TrackId track, SpanKind kind, Meaning meaning, NameId name, TimeNs begin, TimeNs end,
           int64_t step, DetailId detail = {}) const {
    Span span;
    span.start = clock(to.rank, begin);
    span.duration = static_cast<uint64_t>(clock(to.rank, end) - span.start);
    span.kind = static_cast<uint8_t>(kind);
    span.meaning = static_cast<uint8_t>(meaning);
    span.name = name;
    span.detail = detail;
    if (numbered || kind == SpanKind::Step) span.step = static_cast<uint32_t>(step + 1);
    to.trace->append(track, span);
  }

  // Returns when the step ends.
  TimeNs add_step(const std::vector<Row>& rows, int64_t step, TimeNs now, std::mt19937& random) const {
    std::vector<TimeNs> begins;
    for (const Row& to : rows) {
      const bool is_late = to.rank == late_rank && step > 0 && step % every == 0;
      const auto hiccup = to.rank == late_rank ? hiccups.find(step) : hiccups.end();
      const TimeNs usual = to.rank == late_rank ? usually_late : 0;
      const bool burst = bursts > 0 && random() % 10 == 0;
      const TimeNs by_burst = burst ? static_cast<TimeNs>(random() % static_cast<unsigned>(bursts)) : 0;
      begins.push_back(now + by_burst + static_cast<TimeNs>(random() % static_cast<unsigned>(jitter + 1)) + (is_late ? late : usual) +
                       (hiccup == hiccups.end() ? 0 : hiccup->second));
    }
    const bool small = small_last_batch && evaluate_every > 0 && (step + 1) % evaluate_every == 0;
    const TimeNs forward = small ? kForward / 4 : kForward;
    const TimeNs last = *std::ranges::max_element(begins) + forward;
    for (size_t r = 0; r < rows.size(); ++r) {
      const Row& to = rows[r];
      const TimeNs ready = begins[r] + forward;
      for (int k = 0; k < kernels; ++k)
        put(to, to.compute, SpanKind::Kernel, Meaning::Matrix, to.gemm, begins[r] + forward * k / kernels,
            begins[r] + forward * (k + 1) / kernels, step);
      const auto reduce = [&](TimeNs begin, TimeNs end) {
        put(to, to.communication, SpanKind::Kernel, Meaning::Communication, to.reduce, begin, end, step, to.detail);
      };
      reduce(ready, last + bucket);
      const TimeNs backward = backward_waits ? last : ready;
      put(to, to.compute, SpanKind::Kernel, Meaning::Matrix, to.backward, backward, backward + kBackward, step);
      reduce(last + bucket + 1'000, last + 2 * bucket);
      if (marks) put(to, to.marks, SpanKind::Step, Meaning::Other, to.step, begins[r] - 500, last + 2 * bucket, step);
    }
    return last + 2 * bucket + 5'000;
  }
};

}  // namespace ws::prof
