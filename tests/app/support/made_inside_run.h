// Runs of a kernel that trains many steps, as its stamps show it, made so that the late multiprocessor is known.
#pragma once
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "app/workspace/run.h"
#include "tests/app/support/made_run.h"

namespace ws::test {

// A kernel of two layers. Each wait ends when the last multiprocessor has done the part before it.
struct MadeKernel {
  int multiprocessors = 132, steps = 60;
  int late = 17;            // in "fc1 forward", by `delay`, in nine of ten steps; -1: none
  prof::TimeNs delay = 400;  // ns

  struct Part {
    const char *name, *detail;
    prof::Meaning meaning;
    prof::TimeNs ns;  // 0: waits for the last one
  };
  static std::vector<Part> parts() {
    using prof::Meaning;
    return {{"rows of the next step", "", Meaning::Copy, 200},
            {"fc1 forward", "", Meaning::Matrix, 900},
            {"wait", "for partial sums of the other blocks", Meaning::Sync, 0},
            {"fc2 forward", "", Meaning::Matrix, 350},
            {"loss and its gradient", "", Meaning::Loss, 220},
            {"wait", "for output gradients of the other blocks", Meaning::Sync, 0},
            {"fc2 backward", "", Meaning::Matrix, 400},
            {"fc1 backward", "", Meaning::Matrix, 800},
            {"fc1 update", "", Meaning::Optimizer, 300},
            {"wait", "for gradient sums of the other blocks", Meaning::Sync, 0}};
  }

  void add_to(prof::Trace& trace, int first = 0, prof::TimeNs begin = 100'000) const {
    for (const Part& part : parts())
      if (first == 0) trace.ops.push_back({part.name, part.detail, "", "", part.meaning});
    std::mt19937 random(static_cast<unsigned>(first) + 1);
    std::vector<prof::TimeNs> times(static_cast<size_t>(multiprocessors), begin);
    for (int step = first; step < first + steps; ++step) add_step(trace, random, step, times);
    add(trace, prof::TrackKind::Stream, "stream 7", "warpsight_persistent", prof::Meaning::Matrix, 0, begin,
        std::ranges::max(times), static_cast<uint32_t>(first) + 1);
  }

 private:
  void add_step(prof::Trace& trace, std::mt19937& random, int step, std::vector<prof::TimeNs>& times) const {
    const std::vector<Part> all = parts();
    for (size_t p = 0; p < all.size(); ++p) {
      const prof::TimeNs last = std::ranges::max(times) + 90;
      for (int m = 0; m < multiprocessors; ++m) {
        prof::TimeNs& time = times[static_cast<size_t>(m)];
        const bool delayed = m == late && step % 10 != 0 && p == 1;
        const prof::TimeNs jitter = static_cast<prof::TimeNs>(random() % 24);
        const prof::TimeNs end = all[p].ns == 0 ? last : time + all[p].ns + jitter + (delayed ? delay : 0);
        const std::string number = std::to_string(m);
        add(trace, prof::TrackKind::Inner, "SM " + std::string(3 - number.size(), '0') + number, all[p].name,
            all[p].meaning, static_cast<prof::OpTag>(p + 1), time, end, static_cast<uint32_t>(step) + 1);
        time = end;
      }
    }
  }

  static void add(prof::Trace& trace, prof::TrackKind kind, const std::string& row, const char* name,
                  prof::Meaning meaning, prof::OpTag op, prof::TimeNs begin, prof::TimeNs end, uint32_t step) {
    prof::Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(end - begin), span.op = op, span.step = step;
    span.name = trace.intern(name), span.meaning = static_cast<uint64_t>(meaning);
    span.kind = static_cast<uint64_t>(kind == prof::TrackKind::Inner ? prof::SpanKind::Inner : prof::SpanKind::Kernel);
    trace.append(trace.track(kind, row, "GPU 0"), span);
  }
};

inline constexpr double kStepSeconds = 4e-6;  // about what its stamps show

inline std::unique_ptr<app::Run> made_inside_run(const MadeKernel& kernel = {}, bool live = false) {
  auto run = std::make_unique<app::Run>();
  run->id = "inside", run->title = "persistent · arena · epilogue", run->device = "NVIDIA H200", run->slot = 0;
  run->spec.exec.launch = Launch::Persistent;
  if (!live) run->summary = Summary{};
  kernel.add_to(run->trace);
  for (int i = 0; i < kernel.steps; ++i)
    run->steps.push_back({double(i), double(i) * kStepSeconds, 0, float(2.3 / (1 + 0.01 * i)), 0.5F});
  if (run->summary) run->summary->us_per_step = 1e6 * kStepSeconds, run->summary->steps = kernel.steps;
  measure_steps(*run);
  return run;
}

}  // namespace ws::test
