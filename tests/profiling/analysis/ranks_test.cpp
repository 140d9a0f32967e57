// The comparison of ranks, on made traces whose late rank, waits and transfers are known.
#include "profiling/analysis/ranks.h"

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>

#include "profiling/analysis/collective_waits.h"
#include "profiling/analysis/step_lanes.h"
#include "profiling/analysis/step_breaks.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "tests/profiling/analysis/made_ranks.h"
#include "tests/support/machine.h"

namespace ws::prof {
namespace {

constexpr double kMs = 1000;
double micros_of(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

TEST(Ranks, PlantedDelaysAreRecovered) {
  for (const double delay : {0.1, 0.5, 1.0, 3.0, 5.0}) {
    MadeRanks made;
    made.late = static_cast<TimeNs>(delay * 1e6);
    const RankReport report = rank_report(made.joined());
    const Straggler& s = report.straggler;
    EXPECT_EQ(s.rank, 5) << delay;
    EXPECT_EQ(s.every, 10) << delay;
    EXPECT_EQ(s.late_steps, 10) << delay;
    EXPECT_NEAR(s.late_us, delay * kMs, 0.05 * delay * kMs);
    EXPECT_NEAR(s.cost_us, delay * kMs / 10, 0.05 * delay * kMs / 10);
    EXPECT_NEAR(s.share, s.cost_us / report.step_us, 1e-9);
  }
}

// Ranks 0 and 1 come 3 ms late in turn, rank 1 in two steps of three.
RankReport late_in_turn(size_t steps) {
  RankReport report;
  report.ranks = {{.rank = 0}, {.rank = 1}};
  for (size_t step = 0; step < steps; ++step) report.steps.push_back(static_cast<int64_t>(step));
  for (size_t rank = 0; rank < 2; ++rank)
    for (size_t step = 0; step < steps; ++step) report.lateness.push_back((step % 3 != 0) == (rank == 1) ? 3000.0F : 0.0F);
  report.collectives = {{.name = "AllReduce", .count = 1}};
  report.step_us = 10'000, report.wait_us = 1500;
  return report;
}

TEST(Ranks, WhatTheyWaitForWithoutAPatternIsSaid) {
  const RankReport report = late_in_turn(30);
  const auto wait = usual_wait(report);
  ASSERT_TRUE(wait);
  EXPECT_DOUBLE_EQ(wait->us, 1500);
  EXPECT_DOUBLE_EQ(wait->share, 0.15);
  EXPECT_EQ(wait->rank, 1);
  EXPECT_EQ(wait->last_steps, 20);
  EXPECT_EQ(costliest_text(report), "a rank waits 1.5 ms of a mean step (15 %) for the last one, most often for rank 1 (in 20 of 30 steps)");
  EXPECT_TRUE(more_cost_texts(report).empty());
  EXPECT_NE(to_json(report).find("\"usual_wait\": {"), std::string::npos);
  RankReport straggles = report;
  straggles.straggler.rank = 1, straggles.straggler.cost_us = 2000;
  EXPECT_FALSE(usual_wait(straggles)) << "the straggler explains 1,000 of the 1,500 µs";
  RankReport pipeline = report;
  pipeline.collectives.push_back({.name = "SendRecv", .messages = true});
  EXPECT_FALSE(usual_wait(pipeline)) << "a stage waits for the one before";
  EXPECT_FALSE(usual_wait(rank_report(MadeRanks{}.joined()))) << "one rank is late";
}

TEST(Ranks, TheGreatestCostIsSaidFirst) {
  RankReport report = late_in_turn(30);
  report.straggler = {.rank = 0, .late_us = 3000, .late_steps = 1, .every = 0, .cost_us = 100, .share = 0.01};
  EXPECT_TRUE(costliest_text(report).starts_with("a rank waits 1.4 ms")) << costliest_text(report);
  ASSERT_EQ(more_cost_texts(report).size(), 1u);
  EXPECT_TRUE(more_cost_texts(report)[0].starts_with("Also, rank 0 makes all ranks lose ")) << more_cost_texts(report)[0];
  EXPECT_TRUE(to_text(report).starts_with(costliest_text(report)));
  report.wait_us = 3500, report.straggler.cost_us = 3000, report.straggler.share = 0.3;
  EXPECT_TRUE(costliest_text(report).starts_with("rank 0 makes all ranks lose ")) << costliest_text(report);
  ASSERT_EQ(more_cost_texts(report).size(), 1u);
  EXPECT_TRUE(more_cost_texts(report)[0].starts_with("Without a pattern, a rank waits 2.0 ms")) << more_cost_texts(report)[0];
}

// The other ranks wait inside of their steps, so that this is no pause of the program. The split and the ranks count the same steps.
TEST(Ranks, ALongStepOfOneRankIsNoPause) {
  std::vector<Span> slow, steady;
  for (uint32_t i = 0; i < 50; ++i) {
    Span step;
    step.step = i + 1, step.duration = 900'000;
    step.start = int64_t{i} * 1'000'000;
    steady.push_back(step);
    if (i > 20) step.start += 20'000'000;
    if (i == 20) step.duration += 20'000'000;
    slow.push_back(step);
  }
  StepBreaks alone(slow), shared(slow), both(slow);
  EXPECT_TRUE(alone.pause(slow[20], slow[21]));
  shared.share(steady);
  EXPECT_FALSE(shared.pause(slow[20], slow[21]));
  EXPECT_FALSE(shared.between(slow[20], slow[21]));
  both.share(slow);
  EXPECT_TRUE(both.pause(slow[20], slow[21])) << "all ranks pause";
  const auto pauses = [&](const std::vector<Span>& other) {
    Trace trace;
    const TrackId first = trace.track(TrackKind::Steps, "steps", "rank 0", 0, 0), second = trace.track(TrackKind::Steps, "steps", "rank 1", 0, 1);
    for (const Span& step : slow) trace.append(first, step);
    for (const Span& step : other) trace.append(second, step);
    return StepsOfRun::of(trace).sample().left_out.size();
  };
  EXPECT_EQ(pauses(steady), 0u) << "insights count the same steps";
  EXPECT_EQ(pauses(slow), 1u);
}

// What a step waits and transfers is of the same steps as its length, so that the parts fit into the step.
TEST(Ranks, ThePartsAreOfTheStepsThatCount) {
  MadeRanks made{.ranks = 2, .steps = 100, .late_rank = -1};
  const RankReport alone = rank_report(made.joined());
  made.late_rank = 1, made.every = 1000;
  for (int64_t step = 5; step < 100; step += 10) made.hiccups[step] = 60'000'000;  // pauses, ten times as long as a step
  const RankReport report = rank_report(made.joined());
  EXPECT_NEAR(report.step_us, alone.step_us, 0.01 * alone.step_us);
  EXPECT_NEAR(report.wait_us, alone.wait_us, 0.02 * alone.step_us);
  for (const RankRow& row : report.ranks) EXPECT_LT(row.wait + row.exposed, row.step);
}

// The timeline and the page Ranks say the same.
TEST(Ranks, TheWaitsOfTheTimelineAddUpToTheReport) {
  const MadeRanks made{.ranks = 4, .steps = 30};
  const Trace trace = MadeRanks{.ranks = 4, .steps = 30, .late_rank = 2}.joined();
  const RankReport report = rank_report(trace);
  const CollectiveWaits waits(trace, {trace.first_time(), trace.last_time()}, 0);
  std::vector<double> sums(4), transfers(4);
  TimeNs longest = 0;
  for (const Track& track : trace.tracks()) {
    for (const SpanBlock& block : track.blocks)
      for (const Span& span : block.spans) {
        const auto parts = waits.of(track.rank, span);
        EXPECT_EQ(parts.has_value(), span.span_meaning() == Meaning::Communication);
        if (!parts) continue;
        EXPECT_EQ(parts->wait + parts->transfer, static_cast<TimeNs>(span.duration));
        longest = std::max(longest, parts->wait);
        const auto alone = parts_of_collective(trace, track, span, 0);
        ASSERT_TRUE(alone) << "from its own time only";
        EXPECT_EQ(alone->wait, parts->wait);
        if (span.start < report.step_begins[1]) continue;  // the first step counts in no mean
        const auto rank = static_cast<size_t>(track.rank);
        sums[rank] += static_cast<double>(parts->wait) * 1e-3, transfers[rank] += static_cast<double>(parts->transfer) * 1e-3;
      }
  }
  EXPECT_NEAR(static_cast<double>(longest), static_cast<double>(made.late), 10'000);
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_NEAR(sums[rank] / 29, report.ranks[rank].wait, 1e-6);
    EXPECT_NEAR(transfers[rank] / 29, report.ranks[rank].transfer, 1e-6);
  }
  EXPECT_EQ(parts_text({3'000'000, 158'000}), "waits 3.00 ms, transfers 158.0 µs");
  EXPECT_FALSE(CollectiveWaits(MadeRanks{.ranks = 1, .late_rank = -1}.joined(), {0, kAlways}, 0).of(0, Span{})) << "one rank waits for nobody";
}

// A library that is loaded in one of the first steps, or a page that has to be read: so few steps name nobody, and hide
// nobody.
TEST(Ranks, AFewHiccupsDoNotHideSmallDelays) {
  MadeRanks made{.ranks = 2, .steps = 321, .late = 100'000, .late_rank = 1};
  made.hiccups = {{2, 200'000'000}, {3, 50'000'000}, {7, 4'000'000}, {200, 2'000'000}};
  const Straggler found = rank_report(made.joined()).straggler;
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.every, 10);
  EXPECT_NEAR(found.late_us, 100, 5);
}

// On a shared host each rank comes late now and then, by more than the delay that returns.
TEST(Ranks, SmallRegularDelaysAreFoundAmongLargeIrregularOnes) {
  for (const double delay : {0.1, 0.5, 1.0}) {
    MadeRanks made{.ranks = 2, .steps = 1'001, .late = static_cast<TimeNs>(delay * 1e6), .late_rank = 1};
    made.bursts = 2'000'000, made.jitter = 30'000;
    const RankReport report = rank_report(made.joined());
    std::vector<Straggler> all = report.more_late;
    all.push_back(report.straggler);
    const auto regular = std::ranges::find(all, 10, &Straggler::every);
    ASSERT_NE(regular, all.end()) << delay;
    EXPECT_EQ(regular->rank, 1);
    EXPECT_NEAR(regular->late_us, delay * kMs, 0.05 * delay * kMs);
    EXPECT_EQ(std::ranges::count_if(all, [](const Straggler& s) { return s.every > 0; }), 1) << "and no other pattern";
    for (size_t i = 1; i < report.more_late.size(); ++i)
      EXPECT_GE(report.more_late[i - 1].cost_us, report.more_late[i].cost_us);
    EXPECT_EQ(more_cost_texts(report).size(), report.more_late.size());
  }
}

TEST(Ranks, IrregularDelaysHaveNoPattern) {
  for (const TimeNs jitter : {1'000, 30'000, 500'000}) {
    MadeRanks made{.ranks = 4, .steps = 1'001, .late = 0, .bursts = 2'000'000, .jitter = jitter};
    const RankReport report = rank_report(made.joined());
    EXPECT_EQ(report.straggler.every, 0);
    for (const Straggler& one : report.more_late) EXPECT_EQ(one.every, 0) << "rank " << one.rank;
  }
}

TEST(Ranks, RanksThatAreLateInTurnByChanceAreNotNamed) {
  MadeRanks made{.ranks = 2, .steps = 321, .late = 0, .jitter = 2'000'000};
  EXPECT_EQ(rank_report(made.joined()).straggler.rank, -1);
}

TEST(Ranks, ADelayThatCostsNothingIsNotSaid) {
  MadeRanks made{.ranks = 2, .steps = 321, .late = 4'000, .late_rank = 1, .jitter = 100};
  EXPECT_EQ(rank_report(made.joined()).straggler.rank, -1);
  made.late = 20'000;
  EXPECT_EQ(rank_report(made.joined()).straggler.rank, 1);
}

// Two GPUs are never equally fast. What is said is what costs more.
TEST(Ranks, ASlowerRankIsLateInEveryStepUnlessSomeStepsCostMore) {
  MadeRanks made{.ranks = 2, .steps = 321, .late = 100'000, .late_rank = 1};
  made.usually_late = 6'000;
  EXPECT_EQ(rank_report(made.joined()).straggler.every, 10);
  made.usually_late = 30'000;
  const Straggler found = rank_report(made.joined()).straggler;
  EXPECT_EQ(found.every, 1);
  EXPECT_NEAR(found.late_us, 30, 3);
}

TEST(Ranks, TimesOfAStepAddUp) {
  const RankReport report = rank_report(MadeRanks{}.joined(), 0.8);
  ASSERT_EQ(report.ranks.size(), 8u);
  ASSERT_EQ(report.steps.size(), 101u);
  EXPECT_EQ(report.lateness.size(), 8u * 101u);
  EXPECT_NEAR(report.late(5, 60), 3000, 5);
  EXPECT_LT(report.late(4, 60), 3);
  EXPECT_EQ(report.step_begins.size(), 101u);
  EXPECT_LT(report.step_begins[59], report.step_begins[60]);
  const double step = 1e-3 * (MadeRanks::kForward + 2 * MadeRanks::kBucket + 5'000) + 300 + 1.75;
  EXPECT_NEAR(report.step_us, step, 0.01 * step);
  for (const RankRow& row : report.ranks) {
    EXPECT_NEAR(row.step, report.step_us, 1);
    EXPECT_NEAR(row.transfer, 158 + 157, 0.1) << "bucket 0 from the last arrival, bucket 1 whole";
    EXPECT_NEAR(row.exposed, 158 + 157 - 101, 0.1) << "the backward kernel hides 101 µs of bucket 0";
    EXPECT_NEAR(row.wait, row.rank == 5 ? 1 : 301, 2);
    EXPECT_NEAR(row.caused, row.rank == 5 ? 300 : 0, 3);
    EXPECT_EQ(row.collectives, 202u);
  }
  ASSERT_EQ(report.collectives.size(), 1u) << "one name and size";
  EXPECT_EQ(report.collectives[0].name, "AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(report.collectives[0].bytes, 25u << 20);
  EXPECT_NEAR(report.collectives[0].count, 2, 1e-9);
  EXPECT_NEAR(report.collectives[0].bus_gb_s, (25 << 20) * 2 * 7 / 8.0 / 157.5e3, 1);
  EXPECT_NEAR(report.wait_us, 7 * 301 / 8.0, 2);
}

// The page shows one statistic: the transfer of a mean call, and the bandwidth of the same call.
TEST(Ranks, BandwidthIsOfTheMeanTransfer) {
  RankReport report = rank_report(MadeRanks{.ranks = 2, .steps = 40, .late_rank = -1}.joined());
  ASSERT_EQ(report.collectives.size(), 1u);
  const CollectiveRow& row = report.collectives[0];
  const double us = row.transfer / row.count;  // of a call
  EXPECT_NEAR(row.bus_gb_s, static_cast<double>(row.bytes) / us * 1e-3, 0.01 * row.bus_gb_s) << "two ranks send each byte once";
  report.median_step_us = report.step_us, report.straggler = {.rank = 1, .late_us = 1, .every = 1, .cost_us = 500, .share = 0.3, .of_median = true};
  report.ranks[1].late = 620;
  EXPECT_TRUE(straggler_text(report).ends_with("comes 620.0 µs late")) << straggler_text(report);
}

TEST(Ranks, NameAKernelWithoutItsArguments) {
  MadeRanks made;
  for (const auto& [kernel, name] : {std::pair{"ws::(anonymous namespace)::all_reduce(ws::(anonymous namespace)::Peer)", "ws::all_reduce"},
                                     {"all_reduce", "all_reduce"},
                                     {"(anonymous namespace)::all_reduce", "all_reduce"}}) {
    made.all_reduce = kernel;
    EXPECT_EQ(rank_report(made.joined()).collectives.at(0).name, name);
  }
}

TEST(Ranks, StandBesideThePeakOfTheirLinks) {
  const std::vector<BusRate> measured{{2, 1 << 20, 90}, {8, 1 << 20, 100}, {8, 25 << 20, 300}};
  RunData run;
  run.trace = MadeRanks{}.joined();
  run.summary.extra[kBusRatesKey] = ws::to_json(measured).dump();
  const RankReport report = rank_report(run);
  EXPECT_EQ(report.peak.size(), 2u) << "of 8 GPUs only";
  EXPECT_DOUBLE_EQ(report.collectives.at(0).peak_gb_s, 300);
  EXPECT_NE(to_text(report).find("peak: "), std::string::npos);
  run.summary.extra[kHostsKey] = R"(["a", "a", "a", "a", "b", "b", "b", "b"])";
  EXPECT_TRUE(rank_report(run).peak.empty()) << "other links connect hosts";
  run.summary.extra = {{kBusRatesKey, "["}};
  EXPECT_TRUE(rank_report(run).peak.empty());
  EXPECT_EQ(rank_report(run).collectives.at(0).peak_gb_s, 0);
}

TEST(Ranks, ShareTheirSteps) { EXPECT_EQ(trace_stats(MadeRanks{}.joined()).steps, 101u); }

// The mean step of the split leaves evaluations out, too.
TEST(Ranks, AnEvaluationIsNoPartOfAStep) {
  MadeRanks made;
  made.late_rank = -1;
  const double alone = rank_report(made.joined()).step_us;
  made.evaluate_every = 10;
  const Trace trace = made.joined();
  const RankReport report = rank_report(trace);
  EXPECT_NEAR(report.step_us, alone, 0.005 * alone);
  EXPECT_NEAR(StepsOfRun::of(trace).sample().mean_step_us(), alone, 0.005 * alone);
  made.small_last_batch = true;
  EXPECT_NEAR(rank_report(made.joined()).step_us, alone, 0.005 * alone) << "a smaller batch ends each epoch";
  EXPECT_NEAR(StepsOfRun::of(made.joined()).sample().mean_step_us(), alone, 0.005 * alone);
  made.small_last_batch = false;
  made.late_rank = 0, made.every = 5;  // the rank whose marks come first
  EXPECT_NEAR(rank_report(made.joined()).step_us, alone + 3000 / 8.0, 0.03 * alone)
      << "half of the delays lie in an evaluation; 8 of 10 steps count";
}

TEST(Ranks, APauseIsNoPartOfTheMeanStepAndIsCounted) {
  MadeRanks made;
  made.late_rank = -1;
  const double alone = rank_report(made.joined()).step_us;
  made.late_rank = 1, made.late = 100'000'000, made.every = 50;
  const RankReport report = rank_report(made.joined());
  EXPECT_NEAR(report.step_us, alone, 0.01 * alone);
  EXPECT_EQ(report.pauses, 2u);
}

TEST(Ranks, TheSentenceReportsWhatEveryRankLoses) {
  MadeRanks made;
  made.jitter = 0;
  EXPECT_EQ(straggler_text(rank_report(made.joined())),
            "rank 5 makes all ranks lose 0.30 ms per step (19 %): it comes about 3.0 ms late in every 10th step");
  made.every = 1, made.ranks = 2, made.late_rank = 1, made.late = 50'000;
  EXPECT_EQ(straggler_text(rank_report(made.joined())),
            "rank 1 makes all ranks lose 50.0 µs per step (3.6 %): it comes about 50.0 µs late in every step");
  made.late = 0;
  EXPECT_EQ(straggler_text(rank_report(made.joined())), "");
}

TEST(Ranks, ALatenessBelowTheErrorOfTheClocksNamesNobody) {
  MadeRanks made;
  made.late = 100'000;
  const Trace trace = made.joined();
  EXPECT_EQ(rank_report(trace, 50).straggler.rank, 5);
  EXPECT_EQ(rank_report(trace, 120).straggler.rank, -1);
}

TEST(Ranks, StepsComeFromMarksFromSpansOrFromThePattern) {
  MadeRanks numbered;
  numbered.marks = false, numbered.numbered = true;
  const RankReport of_spans = rank_report(numbered.joined());
  EXPECT_EQ(of_spans.steps.size(), 101u);
  EXPECT_EQ(of_spans.straggler.every, 10);

  MadeRanks bare;
  bare.marks = false, bare.kernels = 3;
  const RankReport found = rank_report(bare.joined());
  EXPECT_GE(found.steps.size(), 98u);
  EXPECT_EQ(found.straggler.rank, 5);
  EXPECT_EQ(found.straggler.every, 10);
}

// Marks of a host that runs a little ahead of its GPU. `missing`: a step without its collective.
Trace marked_by_the_host(int64_t missing) {
  Trace trace;
  const NameId step = trace.intern("step"), reduce = trace.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  constexpr TimeNs kStep = 100'000;
  for (int rank = 0; rank < 2; ++rank) {
    const TrackId marks = trace.track(TrackKind::Steps, "steps", "CPU", 0, rank);
    const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU " + std::to_string(rank), 0, rank);
    for (int64_t i = 0; i < 100; ++i) {
      Span mark;
      mark.start = i * kStep, mark.duration = kStep, mark.kind = static_cast<uint64_t>(SpanKind::Step);
      mark.name = step, mark.step = static_cast<uint32_t>(i + 1);
      trace.append(marks, mark);
      Span kernel;
      kernel.start = i * kStep + (i % 7 == 3 ? 104'000 : 80'000) + rank, kernel.duration = 10'000;
      kernel.kind = static_cast<uint64_t>(SpanKind::Kernel), kernel.meaning = static_cast<uint64_t>(Meaning::Communication);
      kernel.name = reduce;
      if (i != missing) trace.append(stream, kernel);
    }
  }
  return trace;
}

TEST(Ranks, ACollectiveThatBeginsAfterTheHostsStepBelongsToIt) {
  EXPECT_EQ(rank_report(marked_by_the_host(-1)).steps.size(), 100u);
  const RankReport some = rank_report(marked_by_the_host(50));
  EXPECT_LT(some.steps.size(), 99u) << "then only the time says to which step one belongs";
}

// Keeps only the first spans of a rank, as if it had died.
Trace without_end(const Trace& from, int rank, TimeNs end) {
  Trace to;
  for (const Track& track : from.tracks()) {
    const TrackId id = to.track(track.kind, track.name, track.group, track.depth, track.rank);
    for (const SpanBlock& block : track.blocks)
      for (Span span : block.spans) {
        if (track.rank == rank && span.start >= end) continue;
        span.name = to.intern(from.name(span.name));
        span.detail = to.intern(from.detail(span.detail));
        to.append(id, span);
      }
  }
  return to;
}

TEST(Ranks, ARankThatDiedIsComparedUntilThen) {
  MadeRanks made;
  made.steps = 61;
  const Trace whole = made.joined();
  const TimeNs middle = whole.last_time() / 2;
  for (const int dead : {0, 3}) {
    const RankReport report = rank_report(without_end(whole, dead, middle));
    EXPECT_GT(report.steps.size(), 25u);
    EXPECT_LT(report.steps.size(), 35u);
    EXPECT_EQ(report.straggler.rank, 5);
    EXPECT_NEAR(report.straggler.late_us, 3000, 150);
    ASSERT_FALSE(report.notes.empty());
    EXPECT_NE(report.notes[0].find("Rank " + std::to_string(dead)), std::string::npos) << report.notes[0];
  }
}

TEST(Ranks, ARankWithoutItsFirstCallsIsMatchedFromTheEnd) {
  MadeRanks made;
  made.jitter = 50'000;
  made.late_rank = 2;
  const Trace whole = made.joined();
  Trace late;
  for (const Track& track : whole.tracks()) {
    const TrackId id = late.track(track.kind, track.name, track.group, track.depth, track.rank);
    for (const SpanBlock& block : track.blocks)
      for (Span span : block.spans) {
        if (track.rank == 6 && span.start < whole.last_time() / 3) continue;
        span.name = late.intern(whole.name(span.name));
        span.detail = late.intern(whole.detail(span.detail));
        late.append(id, span);
      }
  }
  const RankReport report = rank_report(late);
  EXPECT_EQ(report.straggler.rank, 2);
  EXPECT_NEAR(report.straggler.late_us, 3000, 150);
  EXPECT_LT(report.steps.size(), 75u);
  EXPECT_GT(report.steps.size(), 60u);
}

TEST(Ranks, AMissingRankIsARowThatWasNotRecorded) {
  MadeRanks made;
  made.ranks = 4, made.late_rank = 3;
  Trace trace;
  made.add([&](int) -> Trace& { return trace; }, [](int rank) { return rank < 2 ? rank : rank + 1; });
  trace.track(TrackKind::NotRecorded, "not recorded", "rank 5", 0, 5);
  const RankReport report = rank_report(trace);
  ASSERT_EQ(report.ranks.size(), 6u);
  EXPECT_FALSE(report.ranks[2].recorded);
  EXPECT_FALSE(report.ranks[5].recorded);
  EXPECT_TRUE(std::isnan(report.late(2, 0)));
  EXPECT_EQ(report.straggler.rank, 4);
  EXPECT_EQ(report.notes.at(0), "Not recorded: rank 2, 5.");
  EXPECT_NE(to_text(report).find("not recorded"), std::string::npos);
}

// A small file can name many ranks, of which each has collectives that no other takes part in.
TEST(Ranks, MoreCollectivesThanFitAreRefused) {
  Trace trace;
  const MadeRanks made{.ranks = 3000, .steps = 1};
  made.add([&](int) -> Trace& { return trace; }, [](int rank) { return rank; });
  for (int rank = 0; rank < made.ranks; ++rank) {
    const TrackId track = trace.track(TrackKind::Stream, "stream 7", "rank " + std::to_string(rank) + " · GPU 0", 0, rank);
    Span span{.start = 1'000'000'000 + 1000 * rank, .duration = 10};
    span.name = trace.intern("all-reduce " + std::to_string(rank)), span.meaning = static_cast<uint64_t>(Meaning::Communication);
    span.kind = static_cast<uint64_t>(SpanKind::Kernel);
    trace.append(track, span);
  }
  set_memory_limit(64 << 20);
  std::string said;
  try {
    rank_report(trace);
  } catch (const Failure& failure) {
    said = failure.what();
  }
  set_memory_limit(0);
  EXPECT_TRUE(said.find("--limit allows more") != said.npos) << said;
}

TEST(Ranks, OneRankAloneHasNoReport) {
  MadeRanks made;
  made.ranks = 1, made.late_rank = 0;
  EXPECT_FALSE(rank_report(made.joined()).any());
  Trace none;
  EXPECT_FALSE(rank_report(none).any());
  EXPECT_EQ(straggler_text(rank_report(none)), "");
}

TEST(Ranks, CommunicatorsAreNotMixed) {
  Trace trace;  // ranks 0 and 1 reduce with each other, 2 and 3 as well, at other times
  for (int rank = 0; rank < 4; ++rank) {
    Detail detail;
    detail.copy_kind = rank < 2 ? "group 0" : "group 1";
    const TrackId track = trace.track(TrackKind::Stream, "stream 7", "GPU 0", 0, rank);
    for (uint32_t step = 0; step < 20; ++step) {
      Span span;
      span.start = step * 10'000 + (rank < 2 ? 0 : 5'000) + rank % 2 * 100;
      span.duration = 1'000;
      span.kind = static_cast<uint8_t>(SpanKind::Kernel);
      span.meaning = static_cast<uint8_t>(Meaning::Communication);
      span.name = trace.intern("AllReduce");
      span.detail = trace.intern(detail);
      span.step = step + 1;
      trace.append(track, span);
    }
  }
  const RankReport report = rank_report(trace);
  EXPECT_NEAR(report.ranks[0].wait, 0.1, 1e-6);
  EXPECT_NEAR(report.ranks[3].late, 0.1, 1e-6);
  EXPECT_EQ(report.collectives.size(), 1u);
}

// Calls of a training on several communicators.
struct MadeCalls {
  Trace trace;
  void add(int rank, const char* kernel, const std::string& communicator, TimeNs begin, TimeNs end, uint32_t step, uint64_t bytes = 1 << 20) {
    Detail detail;
    detail.copy_kind = communicator, detail.bytes = bytes;
    Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(end - begin);
    span.kind = static_cast<uint8_t>(SpanKind::Kernel);
    span.meaning = static_cast<uint8_t>(Meaning::Communication);
    span.name = trace.intern(kernel), span.detail = trace.intern(detail);
    span.step = step + 1;
    const std::string stream = "stream " + std::to_string(std::hash<std::string>()(communicator) % 97);
    trace.append(trace.track(TrackKind::Stream, stream, "GPU " + std::to_string(rank), 0, rank), span);
  }
};
constexpr const char* kReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr const char* kMessage = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

// Ranks 0 and 1 hold the parts of one layer, as 2 and 3 do. Ranks 0 and 2 average, as 1 and 3 do. All of it at the same time.
TEST(Ranks, GroupsThatOverlapInTimeAreNotMatchedWithEachOther) {
  MadeCalls made;
  for (uint32_t step = 0; step < 40; ++step) {
    const TimeNs now = step * 10'000'000, late = step % 4 == 1 ? 3'000'000 : 0;
    for (int rank = 0; rank < 4; ++rank) {
      const bool upper = rank >= 2;
      const TimeNs tensor = now + (rank == 2 ? late : 0) + rank * 500, after = now + (upper ? late : 0) + 200'000;
      made.add(rank, kReduce, upper ? "AllReduce · 2 ranks · communicator b" : "AllReduce · 2 ranks · communicator a", tensor, after, step);
      made.add(rank, kReduce, rank % 2 ? "AllReduce · 2 ranks · communicator d" : "AllReduce · 2 ranks · communicator c", after + 1'000,
               now + late + 500'000, step);
    }
    for (const int rank : {0, 3})  // in another order than the calls of all
      made.add(rank, "ncclDevKernel_Broadcast(ncclDevKernelArgsStorage<4096ul>)", "Broadcast · 2 ranks · communicator e",
               now + late + 510'000 + rank * 1'000, now + late + 600'000, step);
  }
  const RankReport report = rank_report(made.trace);
  ASSERT_EQ(report.steps.size(), 40u);
  EXPECT_EQ(report.straggler.rank, 2);
  EXPECT_EQ(report.straggler.every, 4);
  EXPECT_NEAR(report.straggler.late_us, 3000, 5);
  EXPECT_NEAR(report.ranks[3].wait, 3000 / 4., 110) << "for rank 2, in their group";
  EXPECT_NEAR(report.ranks[1].wait, 3000 / 4., 110) << "for rank 3, which has waited: it is late because of rank 2";
  ASSERT_EQ(report.collectives.size(), 2u);
  for (const CollectiveRow& row : report.collectives) EXPECT_EQ(row.ranks, 2) << row.name;
  EXPECT_EQ(report.collectives[0].name, "AllReduce_Sum_f32_RING_LL · 2 ranks");
  EXPECT_NEAR(report.collectives[0].count, 2, 1e-9);
  EXPECT_NEAR(report.collectives[1].count, 0.5, 1e-9) << "a mean of all ranks";
  EXPECT_TRUE(report.notes.empty()) << "ranks 1 and 2 lack no call";
}

TEST(Ranks, WithoutCollectivesItReportsHowTheHostsAreSeen) {
  const auto note = [](TrackKind kind) {
    Trace trace;
    for (int rank = 0; rank < 2; ++rank) {
      Span span;
      span.duration = 1000, span.name = trace.intern("work");
      trace.append(trace.track(kind, "a", "", 0, rank), span);
    }
    return rank_report(trace).notes.back();
  };
  EXPECT_EQ(note(TrackKind::Stream), "No collective of two ranks was recorded.");
  EXPECT_NE(note(TrackKind::Phases).find("--level ops"), std::string::npos);
}

TEST(Ranks, ARankThatMeetsTheRestOnlyAtTheEndHidesNoStep) {
  MadeCalls made;
  for (uint32_t step = 0; step < 40; ++step)
    for (const int rank : {0, 2})
      made.add(rank, kReduce, "AllReduce · 2 ranks · communicator a", step * 1'000'000 + (rank == 2 && step % 4 == 1 ? 300'000 : 0),
               step * 1'000'000 + 400'000, step);
  for (int rank = 0; rank < 3; ++rank)
    made.add(rank, kReduce, "AllReduce · 3 ranks · communicator b", 39'600'000 + rank, 39'700'000, 39, 4);
  const RankReport report = rank_report(made.trace);
  EXPECT_EQ(report.steps.size(), 40u);
  EXPECT_EQ(report.straggler.rank, 2);
  EXPECT_NEAR(report.straggler.late_us, 300, 1);
  EXPECT_NEAR(report.step_us, 1000, 15) << "rank 1 has no steps";
}

// A pipeline: each stage waits for the one before it. That is no lateness.
TEST(Ranks, AReceiveBelongsToItsSendAndNamesNoStraggler) {
  for (const bool timed : {false, true}) {
    MadeCalls made;
    for (uint32_t step = 0; step < 40; ++step) {
      const TimeNs now = step * 10'000'000;
      made.add(0, timed ? "Send" : kMessage, "Send · 2 ranks · communicator a", now + 4'000'000, now + 4'100'000, step, 5000);
      made.add(1, timed ? "Recv" : kMessage, "Recv · 2 ranks · communicator a", now, now + 4'100'000, step, 5000);
      for (int rank = 0; rank < 2; ++rank)
        made.add(rank, kReduce, "AllReduce · 2 ranks · communicator b", now + 9'000'000 + rank * 500, now + 9'200'000, step);
    }
    const RankReport report = rank_report(made.trace);
    EXPECT_NEAR(report.ranks[1].wait, 4000, 0.01);
    EXPECT_NEAR(report.ranks[0].wait, 0.5, 0.01);
    EXPECT_EQ(straggler_text(report), "");
    EXPECT_NEAR(report.ranks[0].late, 0, 0.01) << "to the all-reduce";
    ASSERT_EQ(report.collectives.size(), 2u);
    EXPECT_EQ(report.collectives[0].name, "SendRecv");
    EXPECT_EQ(report.collectives[0].bytes, 5000u);
    EXPECT_TRUE(report.notes.empty());
  }
}

// Named as by PyTorch's profiler: a send its receiver, a receive its sender; and as a recording does.
TEST(Ranks, MessagesOfALargerGroupAreMatchedByTheirRanks) {
  for (const bool recorded : {false, true}) {
    MadeCalls made;
    const auto text = [recorded](const char* operation, int from, int to) {
      const std::string both = std::to_string(from) + " → " + std::to_string(to);
      if (recorded) return operation + (" · 3 ranks · communicator a · " + both);
      return "0 [0, 1, 2]" + (operation == std::string("Send") ? " · to " + std::to_string(to) : " · from " + std::to_string(from));
    };
    for (uint32_t step = 0; step < 20; ++step)
      for (int rank = 0; rank < 3; ++rank) {
        const TimeNs now = step * 10'000'000, ready = now + rank * 1'000'000;
        if (rank > 0) made.add(rank, kMessage, text("Recv", rank - 1, rank), now, ready, step);
        if (rank < 2) made.add(rank, kMessage, text("Send", rank, rank + 1), ready + 900'000, ready + 1'000'000, step);
      }
    const RankReport report = rank_report(made.trace);
    ASSERT_EQ(report.steps.size(), 20u);
    EXPECT_NEAR(report.ranks[1].wait, 900, 0.01);
    EXPECT_NEAR(report.ranks[2].wait, 1900, 0.01);
    EXPECT_NEAR(report.ranks[0].wait, 0, 0.01);
    EXPECT_EQ(straggler_text(report), "");
    EXPECT_TRUE(report.notes.empty());
  }
}

TEST(Ranks, MessagesToUnknownRanksAreReportedNotMatched) {
  MadeCalls made;
  for (uint32_t step = 0; step < 20; ++step) {
    const TimeNs now = step * 10'000'000;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank < 2) made.add(rank, kMessage, "Send · 4 ranks · communicator a", now + rank * 100'000, now + 400'000, step);
      if (rank >= 2) made.add(rank, kMessage, "Recv · 4 ranks · communicator a", now, now + 400'000, step);
      made.add(rank, kReduce, "AllReduce · 4 ranks · communicator a", now + 500'000 + rank, now + 600'000, step);
    }
  }
  const RankReport report = rank_report(made.trace);
  ASSERT_EQ(report.collectives.size(), 1u);
  EXPECT_LT(report.ranks[0].wait, 0.01);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("does not say which rank gets them"), std::string::npos);
}

// All-reduces of two ranks. `late`: of rank 1, by step; both also vary by up to 2 ms.
RankReport of_two(const std::function<TimeNs(uint32_t, std::mt19937&)>& late) {
  MadeCalls made;
  std::mt19937 random(3);
  TimeNs now = 0;
  for (uint32_t step = 0; step < 120; ++step) {
    const TimeNs later = late(step, random);
    for (int rank = 0; rank < 2; ++rank)
      made.add(rank, kReduce, "AllReduce · 2 ranks · communicator a",
               now + static_cast<TimeNs>(random() % 2'000'000) + (rank == 1 ? later : 0), now + later + 3'500'000, step);
    now += later + 5'000'000;
  }
  return rank_report(made.trace);
}

// Two workers load the batches of rank 1 too slowly: of two batches one is late, later by both.
TEST(Ranks, OfTwoRanksOneThatIsLateAsARuleIsNamedThoughItVaries) {
  const RankReport half = of_two([](uint32_t, auto& random) { return random() % 2 == 0 ? 26'000'000 + static_cast<TimeNs>(random() % 4'000'000) : 0; });
  EXPECT_EQ(half.straggler.rank, 1);
  EXPECT_NEAR(half.straggler.late_us, 28'000, 1500);
  EXPECT_NEAR(half.straggler.cost_us, half.ranks[1].late, 0.1 * half.ranks[1].late);
  const RankReport always = of_two([](uint32_t step, auto&) { return step % 2 == 0 ? 8'500'000 : 17'000'000; });
  EXPECT_EQ(always.straggler.rank, 1);
  EXPECT_NEAR(always.straggler.cost_us, 12'750, 0.4 * 12'750);
  const RankReport by_chance = of_two([](uint32_t, auto&) { return 0; });
  EXPECT_EQ(straggler_text(by_chance), "");
}

// A process without a GPU reduces on a few threads, which take the calls in turn.
TEST(Ranks, CollectivesOfTheHostAreComparedAcrossThreads) {
  Trace trace;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint32_t step = 0; step < 40; ++step) {
      const std::string thread = "thread " + std::to_string((step + rank * (step / 3)) % 2) + " ranges";
      Span span;
      span.start = step * 1'000'000 + (rank == 1 && step % 4 == 2 ? 200'000 : 0);
      span.duration = static_cast<uint64_t>(step * 1'000'000 + 300'000 - span.start);
      span.kind = static_cast<uint8_t>(SpanKind::Phase);
      span.meaning = static_cast<uint8_t>(Meaning::Communication);
      span.name = trace.intern("gloo:all_reduce");
      span.step = step + 1;
      trace.append(trace.track(TrackKind::Ranges, thread, "CPU", 0, static_cast<int>(rank)), span);
    }
  }
  const RankReport report = rank_report(trace);
  EXPECT_EQ(report.steps.size(), 40u);
  EXPECT_EQ(report.straggler.rank, 1);
  EXPECT_EQ(report.straggler.every, 4);
  EXPECT_EQ(report.straggler.late_us, 200);
}

TEST(Ranks, ATypicalStepBelongsToOneRank) {
  const Trace trace = MadeRanks{}.joined();
  const std::vector<StepLane> lanes = step_lanes(trace, trace, {}, 20);
  ASSERT_FALSE(lanes.empty());
  for (const StepLane& lane : lanes) EXPECT_EQ(lane.track->rank, 0) << lane.name;
}

// Nested ranges of a recorded program take two rows at most: the rows left are for its kernels and calls.
TEST(Ranks, RangesLeaveSpaceForKernels) {
  Trace trace;
  const auto add = [&trace](TrackKind kind, const char* name, int depth, SpanKind span_kind) {
    Span span;
    span.start = 1000, span.duration = 100, span.kind = static_cast<uint64_t>(span_kind), span.name = trace.intern(name);
    trace.append(trace.track(kind, name, "CPU", depth), span);
  };
  for (int depth = 0; depth < 6; ++depth) add(TrackKind::Ranges, "thread 1 ranges", depth, SpanKind::Phase);
  add(TrackKind::Stream, "stream 7", 0, SpanKind::Kernel);
  const std::vector<StepLane> lanes = step_lanes(trace, trace, {}, 5);
  ASSERT_EQ(lanes.size(), 3u);
  EXPECT_EQ(lanes[0].name, "ranges");
  EXPECT_EQ(lanes[1].name, "");
  EXPECT_EQ(lanes[2].name, "stream 7");
}

// In a recording of collectives only, a typical step shows these, and not its own mark.
TEST(Ranks, ATypicalStepHasItsTimedCollectives) {
  Trace trace;
  const auto add = [&trace](TrackKind kind, std::string_view name, SpanKind span_kind, Meaning meaning) {
    Span span;
    span.start = 1000, span.duration = 100, span.kind = static_cast<uint64_t>(span_kind);
    span.meaning = static_cast<uint64_t>(meaning), span.name = trace.intern(std::string(name));
    trace.append(trace.track(kind, std::string(name), "CPU", 0), span);
  };
  add(TrackKind::ProgramSteps, "steps of the program", SpanKind::Phase, Meaning::Other);
  add(TrackKind::Collectives, "collectives", SpanKind::Op, Meaning::Communication);
  add(TrackKind::StreamWaits, "stream 7 waits", SpanKind::Sync, Meaning::Sync);
  const std::vector<StepLane> lanes = step_lanes(trace, trace, {}, 5);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0].name, "collectives");
}

TEST(Ranks, TheJsonHasTheSameNumbers) {
  const RankReport report = rank_report(MadeRanks{}.joined());
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["ranks"].size(), 8u);
  EXPECT_EQ(json["straggler"]["rank"], 5);
  EXPECT_DOUBLE_EQ(json["straggler"]["cost_us"], report.straggler.cost_us);
  EXPECT_EQ(json["ranks"][5]["late_us_by_step"].size(), report.steps.size());
}

double seconds_of(const MadeRanks& made, size_t& spans) {
  const Trace trace = made.joined();
  spans = trace.span_count();
  const std::clock_t begin = std::clock();
  EXPECT_EQ(rank_report(trace).straggler.rank, made.late_rank);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Holistic Trace Analysis splits a collective in the same way. Rank 1 comes 1 ms late in every step.
TEST(Ranks, ALateRankMakesOtherRanksWaitAndNotCommunicate) {
  const MadeRanks made{.ranks = 2, .steps = 40, .late = 0, .late_rank = 1, .usually_late = 1'000'000};
  const auto parts_of_step = [](const Trace& trace) {
    std::map<std::string, double> us;
    const Breakdown parts = StepsOfRun::of(trace).sample().median_parts;
    for (const BreakdownPart& part : parts_of(parts)) us[part_name(part.id)] = micros_of(part.ns) / static_cast<double>(parts.steps);
    EXPECT_EQ(std::accumulate(parts.times.begin(), parts.times.end(), int64_t{0}), parts.wall());
    return us;
  };
  auto both = parts_of_step(made.joined());
  EXPECT_NEAR(both["waits for a rank"], 1000, 20);
  EXPECT_NEAR(both["communication"], 2 * 158 - 101 - 1, 20) << "what the backward pass does not hide";
  auto alone = parts_of_step(made.apart()[0]);
  EXPECT_EQ(alone.count("waits for a rank"), 0u) << "who comes late is not known";
  EXPECT_NEAR(alone["communication"], both["communication"] + both["waits for a rank"], 20);
}

TEST(Ranks, GpuBusyIsOfTheRankWhoseStepsStandForTheRun) {
  Trace trace = MadeRanks{.ranks = 2, .steps = 40, .late = 0, .late_rank = 1, .usually_late = 1'000'000}.joined();
  const TrackId stray = trace.track(TrackKind::Stream, "stream 9", "rank 1 · GPU 0", 0, 1);
  const TimeNs begin = trace.first_time(), end = trace.last_time();
  Span span;
  span.start = begin, span.duration = static_cast<uint64_t>(end - begin), span.name = trace.intern("gemm");
  const Activity before = activity(trace, begin, end);
  trace.append(stray, span);
  EXPECT_LT(before.busy, before.wall);
  EXPECT_EQ(activity(trace, begin, end).busy, before.busy);
  EXPECT_EQ(gpu_during(trace, {begin, end}).busy, before.busy);
  EXPECT_EQ(gpu_during(trace, {begin, end}, 1).busy, before.wall);
}

TEST(Ranks, ManyRanksAndManySpansTakeLinearTime) {
  const double slower = test::busy() * (test::kSanitized ? 5 : 1);
  MadeRanks wide;
  wide.ranks = 1024, wide.steps = 200;
  size_t spans = 0;
  EXPECT_LT(seconds_of(wide, spans), 2 * slower) << spans;
  MadeRanks long_run;
  long_run.steps = 5000, long_run.kernels = 50;
  EXPECT_LT(seconds_of(long_run, spans), slower) << spans;
  EXPECT_GT(spans, 2'000'000u);
}

}  // namespace
}  // namespace ws::prof
