#include "profiling/trace/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "profiling/analysis/memory_history.h"
#include "profiling/trace/batch_codec.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/span_walk.h"
#include "tests/support/span_of.h"

namespace ws::prof {
namespace {

std::vector<TimeNs> starts_of(const Track& track) {
  std::vector<TimeNs> starts;
  for (const SpanBlock& block : track.blocks) {
    for (const Span& span : block.spans) starts.push_back(span.start);
  }
  return starts;
}

TEST(Trace, InternsNamesAndDetailsOnce) {
  Trace trace;
  const NameId a = trace.intern("gemm");
  EXPECT_EQ(trace.intern("gemm"), a);
  EXPECT_NE(trace.intern("relu"), a);
  EXPECT_EQ(trace.name(a), "gemm");
  Detail detail;
  detail.grid[0] = 4;
  EXPECT_EQ(trace.intern(Detail{}), DetailId{0});
  EXPECT_EQ(trace.intern(detail), trace.intern(detail));
  EXPECT_EQ(trace.detail_count(), 2u);
}

TEST(Trace, MovesLateSpansToTheirPlaceAndKeepsSums) {
  Trace trace;
  const TrackId id = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  std::mt19937 random(7);
  std::vector<TimeNs> expected;
  for (int i = 0; i < 20000; ++i) {
    const TimeNs start = i * 100 - (i % 7 == 0 ? static_cast<TimeNs>(random() % 400000) : 0);
    trace.append(id, span_of(start, 50));
    expected.push_back(start);
  }
  std::ranges::sort(expected);
  const Track& track = trace.tracks()[0];
  EXPECT_EQ(starts_of(track), expected);
  EXPECT_EQ(track.spans, 20000u);
  size_t before = 0;
  for (size_t i = 0; i < track.blocks.size(); ++i) {
    const SpanBlock& block = track.blocks[i];
    EXPECT_EQ(block.count_before, before);
    EXPECT_EQ(block.count, block.spans.size());
    EXPECT_EQ(block.total[0], static_cast<int64_t>(block.count) * 50);
    EXPECT_EQ(track.block_starts[i], block.first);
    EXPECT_EQ(block.first, block.spans.front().start);
    before += block.count;
  }
}

TEST(Trace, EvictsTheOldestAndTakesThemBack) {
  Trace trace;
  const TrackId id = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  for (int i = 0; i < 10000; ++i) trace.append(id, span_of(i * 100, 50));
  const std::vector<Span> first = trace.tracks()[0].blocks[0].spans;
  trace.evict(100 * 1024);
  EXPECT_LE(trace.resident_bytes(), 100u * 1024);
  EXPECT_FALSE(trace.tracks()[0].blocks[0].resident());
  EXPECT_TRUE(trace.tracks()[0].blocks.back().resident());
  EXPECT_EQ(trace.span_count(), 10000u);
  EXPECT_EQ(trace.losses.evicted_spans % SpanBlock::kCapacity, 0u);
  EXPECT_GT(trace.losses.evicted_spans, 0u);
  std::vector<Span> wrong(3);
  EXPECT_FALSE(trace.fill(id, 0, std::move(wrong)));
  EXPECT_TRUE(trace.fill(id, 0, std::vector<Span>(first)));
  EXPECT_EQ(trace.tracks()[0].blocks[0].spans.size(), first.size());
}

// Hours of a fast training: the sums stay right while their number stays small.
TEST(Trace, SumsOfEvictedBlocksAreBoundedToo) {
  Trace trace;
  trace.backed = true;
  const TrackId id = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  constexpr size_t kMostBlocks = 8192;
  constexpr int64_t kSpans = 3 * kMostBlocks * SpanBlock::kCapacity;
  for (int64_t i = 0; i < kSpans; ++i) {
    trace.append(id, span_of(i * 100, 50));
    if (i % 100'000 == 0) trace.evict(1 << 20);
  }
  const Track& track = trace.tracks()[0];
  EXPECT_LT(track.blocks.size(), kMostBlocks + 200);
  size_t before = 0;
  for (size_t i = 0; i < track.blocks.size(); ++i) {
    const SpanBlock& block = track.blocks[i];
    ASSERT_EQ(block.count_before, before);
    ASSERT_EQ(block.before[0], static_cast<int64_t>(before) * 50);
    ASSERT_EQ(block.first, static_cast<TimeNs>(before) * 100);
    ASSERT_EQ(track.block_starts[i], block.first);
    before += block.count;
    ASSERT_EQ(block.last, static_cast<TimeNs>(before - 1) * 100 + 50);
    ASSERT_EQ(block.reach, block.last);
  }
  EXPECT_EQ(before, static_cast<size_t>(kSpans));
  EXPECT_GT(track.blocks.front().count, track.blocks[track.blocks.size() / 2].count) << "the oldest are the coarsest";
}

// Somebody looks at the oldest part: it stays, and others go instead.
TEST(Trace, WhatIsLookedAtStays) {
  Trace trace;
  trace.backed = true;
  const TrackId id = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  for (int i = 0; i < 10000; ++i) trace.append(id, span_of(i * 100, 50));
  trace.evict(100 * 1024, 50'000, 60'000);
  const Track& track = trace.tracks()[0];
  EXPECT_TRUE(track.blocks[0].resident());
  EXPECT_FALSE(track.blocks[1].resident());
  EXPECT_TRUE(in_memory(track, 50'000, 60'000));
  EXPECT_FALSE(in_memory(track, 50'000, 200'000));
  EXPECT_EQ(spans_out_of_memory(track, 150'000, 160'000), SpanBlock::kCapacity);
}

TEST(Trace, LosesNothingWhenAFileHoldsTheSpans) {
  Trace trace;
  trace.backed = true;
  const TrackId id = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  for (int i = 0; i < 10000; ++i) trace.append(id, span_of(i * 100, 50));
  trace.evict(0);
  EXPECT_EQ(trace.losses.evicted_spans, 0u);
  EXPECT_EQ(trace.last_time(), 9999 * 100 + 50);
}

MemoryEvent event_at(TimeNs time, uint64_t address, MemoryAction kind) {
  return {time, address, 64, 0, kNoOp, kind, 0};
}

// Blocks that come and go are forgotten; those that are still there stay, however old.
TEST(Trace, MemoryEventsKeepToTheirShareAndToTheTruth) {
  Trace trace;
  trace.backed = true;
  constexpr int kPairs = 200'000;
  for (uint64_t i = 0; i < 10; ++i) trace.append_memory(event_at(i, 0x1000 + i * 64, MemoryAction::Allocate));
  for (int i = 0; i < kPairs; ++i) {
    trace.append_memory(event_at(100 + 2 * i, 0x90000, MemoryAction::Allocate));
    trace.append_memory(event_at(101 + 2 * i, 0x90000, MemoryAction::Free));
    if (i % 1000 == 0) trace.evict(1 << 20);
  }
  trace.evict(1 << 20);
  EXPECT_LE(trace.memory().size() * sizeof(MemoryEvent), size_t{1} << 18);
  EXPECT_EQ(trace.memory_count(), 10u + 2 * kPairs);
  EXPECT_TRUE(std::ranges::is_sorted(trace.memory(), {}, &MemoryEvent::time));
  EXPECT_EQ(trace.memory().back().time, 101 + 2 * (kPairs - 1));
  const MemoryHistory history = memory_history(trace);
  EXPECT_EQ(history.points.back().live, 640u);
  EXPECT_EQ(history.unmatched_frees, 0u);
}

TEST(Trace, CountersKeepTheirPeaksWhenTheyAreThinned) {
  Trace trace;
  const TrackId id = trace.counter("SM active", "%");
  for (int i = 0; i < 100'000; ++i) {
    trace.append_counter(id, {i * 1000, i == 7 ? 99.0 : 10.0});
    if (i % 1000 == 0) trace.evict(1 << 18);
  }
  const auto& points = trace.counters()[0].points;
  EXPECT_LE(points.size() * sizeof(CounterPoint), (size_t{1} << 16) + 16'000);
  EXPECT_TRUE(std::ranges::is_sorted(points, {}, &CounterPoint::time));
  EXPECT_EQ(points.front().time, 0);
  EXPECT_EQ(points.back().time, 99'999'000);
  EXPECT_EQ(std::ranges::max(points, {}, &CounterPoint::value).value, 99.0);
}

TEST(Annotate, GivesOneTagPerOpAndKnowsAListAgain) {
  const std::vector<OpInfo> ops{{"relu", "", "fc1", "forward", Meaning::Pointwise, 1, 2},
                                {"dW1", "", "fc1", "backward", Meaning::Matrix, 3, 4}};
  const OpTag first = register_ops(ops);
  EXPECT_EQ(op_info(first).name, "relu");
  EXPECT_EQ(op_info(static_cast<OpTag>(first + 1)).name, "dW1");
  EXPECT_EQ(register_ops(ops), first);
  EXPECT_EQ(op_info(kNoOp).name, "");
}

TEST(Trace, StepsThatAreReplacedAreDropped) {
  constexpr uint32_t kSteps = 3 * SpanBlock::kCapacity + 7;
  const auto step = [](uint32_t number, TimeNs start) {
    Span span;
    span.start = start, span.duration = 5, span.kind = static_cast<uint64_t>(SpanKind::Step), span.step = number;
    return span;
  };
  for (const uint32_t first : {1u, 5u, static_cast<uint32_t>(SpanBlock::kCapacity) + 1, 2 * static_cast<uint32_t>(SpanBlock::kCapacity) + 9, kSteps + 1}) {
    Trace trace;
    const TrackId track = trace.track(TrackKind::Steps, "steps", "CPU");
    for (uint32_t i = 1; i <= kSteps; ++i) trace.append(track, step(i, 10 * i));
    trace.drop_steps(track, first);
    EXPECT_EQ(trace.span_count(), first - 1);
    for (uint32_t i = first; i <= kSteps; ++i) trace.append(track, step(i, 10 * i - 3));
    uint32_t next = 0;
    each_span(trace.tracks()[0], -kAlways, kAlways, [&](const Span& span) {
      ++next;
      ASSERT_EQ(span.step, next);
      ASSERT_EQ(span.start, 10 * TimeNs{next} - (next < first ? 0 : 3));
    });
    EXPECT_EQ(next, kSteps);
    EXPECT_EQ(trace.tracks()[0].spans, kSteps);
  }
}

std::vector<std::string> fuzz_seeds(const char* target) {
  std::vector<std::string> seeds;
  for (const auto& file : std::filesystem::directory_iterator(std::string(WARPSIGHT_SOURCE_DIR "/tests/fuzz/corpus/") + target)) {
    std::ifstream in(file.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

// A seed of an earlier format is refused at once, and fuzzing never comes further.
TEST(Batch, SeedsOfTheFuzzTargetsHaveTodaysFormat) {
  TraceBatch kinds;
  for (const std::string& seed : fuzz_seeds("batch")) {
    TraceBatch batch;
    ASSERT_NO_THROW(batch = decode_batch(seed));
    if (!batch.stacks.empty()) kinds.stacks = batch.stacks;
    if (!batch.counters.empty()) kinds.counters = batch.counters;
    if (!batch.memory.empty()) kinds.memory = batch.memory;
    if (!batch.allocations.empty()) kinds.allocations = batch.allocations;
    if (!batch.sampled.empty()) kinds.sampled = batch.sampled, kinds.sampled_windows = batch.sampled_windows;
  }
  EXPECT_FALSE(kinds.stacks.empty() || kinds.counters.empty() || kinds.memory.empty() || kinds.allocations.empty() || kinds.sampled.empty() ||
               kinds.sampled_windows.empty());
  for (const std::string& seed : fuzz_seeds("ranks")) {
    constexpr size_t kHead = 40;  // of fuzz_ranks.cpp
    uint16_t first = 0;
    ASSERT_GT(seed.size(), kHead);
    std::memcpy(&first, seed.data(), sizeof first);
    EXPECT_NO_THROW(decode_batch(seed.substr(kHead, first)));
    EXPECT_NO_THROW(decode_batch(seed.substr(kHead + first)));
  }
}

}  // namespace
}  // namespace ws::prof
