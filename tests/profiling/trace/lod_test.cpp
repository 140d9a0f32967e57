#include "profiling/trace/lod.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include "tests/support/span_of.h"

namespace ws::prof {
namespace {

struct Row {
  Trace trace;
  TrackId id = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  const Track& track() const { return trace.tracks()[0]; }
};

Row random_row(int count, uint32_t seed) {
  Row row;
  std::mt19937 random(seed);
  TimeNs time = 1000;
  for (int i = 0; i < count; ++i) {
    const auto duration = random() % 100 == 0 ? random() % 100000 : 1 + random() % 900;
    row.trace.append(row.id, span_of(time, duration, static_cast<Meaning>(random() % kMeanings), random() % 5));
    time += static_cast<TimeNs>(duration + random() % 700);
  }
  return row;
}

void expect_one_per_column(const std::vector<LodRect>& rects, int pixels) {
  std::set<int> columns;
  float previous = -1;
  for (const LodRect& rect : rects) {
    EXPECT_GE(rect.x0, previous);
    previous = rect.x0;
    EXPECT_TRUE(columns.insert(static_cast<int>(rect.x0)).second) << "two rectangles begin in column " << rect.x0;
    EXPECT_LE(rect.x1, static_cast<float>(pixels));
    EXPECT_GT(rect.busy, 0.0f);
    EXPECT_LE(rect.busy, 1.0f);
  }
  EXPECT_LE(rects.size(), static_cast<size_t>(pixels));
}

// Kernels of 0.5 to 500 µs in bursts, with pauses of up to a second.
Row uneven_row(int count, uint32_t seed) {
  Row row;
  std::mt19937 random(seed);
  TimeNs time = 1000;
  for (int i = 0; i < count; ++i) {
    const uint64_t duration = uint64_t{500} << (random() % 11);
    row.trace.append(row.id, span_of(time, duration, static_cast<Meaning>(random() % kMeanings), random() % 5));
    time += static_cast<TimeNs>(duration) + 100 + (random() % 20 == 0 ? TimeNs{10} << (random() % 27) : 0);
  }
  return row;
}

struct Column {
  TimeNs first = 0, last = 0;  // start of its first span, end of its last
  uint32_t count = 0;
  std::map<Meaning, int64_t> times;
};

// What lod must say of spans that do not overlap, by looking at every one of them.
std::vector<Column> by_every_span(const Track& track, TimeNs begin, TimeNs end, int pixels) {
  const double ns_per_pixel = static_cast<double>(end - begin) / pixels;
  std::map<int, Column> columns;
  int at = 0;
  for (const SpanBlock& block : track.blocks) {
    for (const Span& span : block.spans) {
      if (span.end() <= begin || span.start >= end) continue;
      while (at + 1 < pixels && static_cast<double>(span.start - begin) >= (at + 1) * ns_per_pixel) ++at;
      Column& column = columns[at];
      if (column.count++ == 0) column.first = std::max(span.start, begin);
      column.last = span.end();
      column.times[span.span_meaning()] += static_cast<int64_t>(span.duration);
    }
  }
  std::vector<Column> list;
  for (auto& [pixel, column] : columns) list.push_back(std::move(column));
  return list;
}

void expect_as_by_every_span(const Track& track, TimeNs begin, TimeNs end, int pixels) {
  SCOPED_TRACE(testing::Message() << begin << " to " << end << " on " << pixels);
  const auto x = [&](TimeNs time) {
    return static_cast<double>(std::min(time, end) - begin) * pixels / static_cast<double>(end - begin);
  };
  const auto rects = lod(track, begin, end, pixels);
  const auto columns = by_every_span(track, begin, end, pixels);
  ASSERT_EQ(rects.size(), columns.size());
  for (size_t i = 0; i < rects.size(); ++i) {
    const auto& [first, last, count, times] = columns[i];
    ASSERT_EQ(rects[i].count, count) << i;
    ASSERT_NEAR(rects[i].x0, x(first), 1e-3) << i;
    ASSERT_NEAR(rects[i].x1, x(last), 1e-3) << i;
    int64_t covered = 0, most = 0;
    for (const auto& [meaning, ns] : times) covered += ns, most = std::max(most, ns);
    ASSERT_EQ(times.at(rects[i].meaning), most) << i;
    const double busy = std::min(1.0, static_cast<double>(covered) / static_cast<double>(last - first));
    ASSERT_NEAR(rects[i].busy, count == 1 ? 1.0 : busy, 1e-4) << i;
  }
}

size_t spans_in(const Track& track, TimeNs begin, TimeNs end) {
  size_t count = 0;
  for (const SpanBlock& block : track.blocks) {
    for (const Span& span : block.spans) count += span.end() > begin && span.start < end;
  }
  return count;
}

TEST(Lod, OneStepPerPixelAndEverySpanCountedOnce) {
  const Row row = random_row(50000, 3);
  const TimeNs last = row.trace.last_time();
  for (const auto& [begin, end, pixels] : {std::tuple<TimeNs, TimeNs, int>{0, last, 700},
                                           {last / 3, last / 2, 1999},
                                           {5000, 90000, 64},
                                           {last - 50, last + 100, 10}}) {
    const auto rects = lod(row.track(), begin, end, pixels);
    expect_one_per_column(rects, pixels);
    size_t count = 0;
    for (const LodRect& rect : rects) count += rect.count;
    EXPECT_EQ(count, spans_in(row.track(), begin, end));
  }
}

TEST(Lod, ReportsWhatEverySpanOfAColumnHas) {
  std::mt19937 random(11);
  for (const Row& row : {random_row(300, 1), random_row(60000, 2), uneven_row(900, 3), uneven_row(80000, 4)}) {
    const TimeNs last = row.trace.last_time();
    expect_as_by_every_span(row.track(), 0, last + 1, 1);
    expect_as_by_every_span(row.track(), 0, last + 1, 2000);
    for (int i = 0; i < 40; ++i) {
      const auto begin = static_cast<TimeNs>(random() % static_cast<uint64_t>(last));
      const auto length = static_cast<TimeNs>(static_cast<double>(last) / std::exp2(random() % 24));
      expect_as_by_every_span(row.track(), begin, begin + std::max<TimeNs>(length, 10), 1 + random() % 2500);
    }
  }
}

TEST(Lod, ABlockOfAFileMayBeLongerThanOurs) {
  std::vector<Span> spans;
  for (int i = 0; i < 20'000; ++i) spans.push_back(span_of(i * 100, 60, static_cast<Meaning>(i % 3)));
  Row row;
  SpanBlock stub;
  stub.count = static_cast<uint32_t>(spans.size());
  stub.first = spans.front().start;
  stub.last = spans.back().end();
  stub.head = spans.front();
  row.trace.add_stub(row.id, std::move(stub));
  ASSERT_TRUE(row.trace.fill(row.id, 0, std::move(spans)));
  for (const int pixels : {1, 7, 700, 3000}) expect_as_by_every_span(row.track(), 0, row.trace.last_time() + 1, pixels);
}

TEST(Lod, BusyShareAndMeaningOfAFoldedGroup) {
  Row row;
  for (int i = 0; i < 1000; ++i)
    row.trace.append(row.id, span_of(i * 10, 4, i % 4 == 0 ? Meaning::Loss : Meaning::Matrix));
  const auto rects = lod(row.track(), 0, 10000, 10);
  ASSERT_EQ(rects.size(), 10u);
  for (const LodRect& rect : rects) {
    EXPECT_EQ(rect.count, 100u);
    EXPECT_NEAR(rect.busy, 0.4, 0.01);
    EXPECT_EQ(rect.meaning, Meaning::Matrix);
  }
}

TEST(Lod, AllocationWinsTies) {
  Row row;
  for (int i = 0; i < 100; ++i)
    row.trace.append(row.id, span_of(i * 10, 4, i % 2 ? Meaning::Allocation : Meaning::Matrix));
  EXPECT_EQ(lod(row.track(), 0, 1000, 1).at(0).meaning, Meaning::Allocation);
}

TEST(Lod, WideSpansStandAlone) {
  Row row;
  row.trace.append(row.id, span_of(0, 400));
  row.trace.append(row.id, span_of(500, 500));
  const auto rects = lod(row.track(), 0, 1000, 10);
  ASSERT_EQ(rects.size(), 2u);
  EXPECT_EQ(rects[0].count, 1u);
  EXPECT_FLOAT_EQ(rects[0].x1, 4);
  EXPECT_FLOAT_EQ(rects[1].x0, 5);
  EXPECT_FLOAT_EQ(rects[1].x1, 10);
}

TEST(Lod, ASpanFromBeforeTheRangeIsClipped) {
  Row row;
  row.trace.append(row.id, span_of(0, 1000));
  const auto rects = lod(row.track(), 400, 600, 20);
  ASSERT_EQ(rects.size(), 1u);
  EXPECT_FLOAT_EQ(rects[0].x0, 0);
  EXPECT_FLOAT_EQ(rects[0].x1, 20);
}

TEST(Lod, EvictedBlocksKeepTheirCountAndShare) {
  Row row = random_row(50000, 5);
  const TimeNs last = row.trace.last_time();
  size_t before = 0, after = 0;
  for (const LodRect& rect : lod(row.track(), 0, last, 300)) before += rect.count;
  row.trace.evict(200 * 1024);
  const auto rects = lod(row.track(), 0, last, 300);
  expect_one_per_column(rects, 300);
  for (const LodRect& rect : rects) after += rect.count;
  EXPECT_EQ(before, after);
}

TEST(Lod, CountersKeepTheirExtremes) {
  CounterTrack counter{"memory", "B", {}};
  for (int i = 0; i < 1000; ++i) counter.points.push_back({i, i == 333 ? 1e6 : i});
  const auto points = lod(counter, 0, 1000, 10);
  ASSERT_EQ(points.size(), 10u);
  EXPECT_EQ(points[3].max, 1e6);
  EXPECT_EQ(points[3].min, 300);
  EXPECT_EQ(points[3].last, 399);
}

TEST(Lod, FindsSpansByName) {
  const Row row = random_row(5000, 9);
  const Track& track = row.track();
  for (size_t i : {0u, 17u, 1000u}) {
    const Span& span = track.blocks[i / 1000].spans[i % 1000];
    const Span* next = next_named(track, span.name, span.start);
    ASSERT_NE(next, nullptr);
    EXPECT_GT(next->start, span.start);
    EXPECT_EQ(next->name, span.name);
    EXPECT_EQ(previous_named(track, span.name, next->start)->start, span.start);
  }
}

TEST(Lod, SumsAreClippedToTheRange) {
  Row row;
  row.trace.append(row.id, span_of(0, 100, Meaning::Matrix, 1));
  row.trace.append(row.id, span_of(100, 100, Meaning::Loss, 2));
  const auto sums = sum_by_name(row.track(), 50, 120);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].total_ns, 50);
  EXPECT_EQ(sums[1].total_ns, 20);
}

}  // namespace
}  // namespace ws::prof
