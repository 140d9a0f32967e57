// Rings as kernels of profiling/annotate/kernel_ranges.cuh leave them, written here by the host.
#include "profiling/collectors/ring_stamps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "profiling/collectors/stamp_spans.h"

namespace ws::prof {
namespace {

using warpsight::RangeSegment;
using warpsight::RangeStamp;

constexpr uint64_t kBegan = (uint64_t{7} << 32) - 500;  // the low half of the timer wraps around soon

// Does what the device code does.
class MadeRing {
 public:
  MadeRing(uint32_t segments, uint32_t stamps, std::vector<std::string> names = {"load", "gemm"}, bool by_warp = false)
      : about_(std::make_shared<StampRing>()),
        memory_(segments * (sizeof(RangeSegment) + stamps * sizeof(RangeStamp))) {
    about_->number = ++made_, about_->segments = segments, about_->stamps = stamps, about_->by_warp = by_warp;
    about_->names = std::move(names);
  }
  struct Writer {
    uint32_t block = 0, multiprocessor = 0, warp = 0, ticket = 0, written = 0, left = 0;
  };
  // `ns` since kBegan; the multiprocessor runs at 2 GHz.
  void stamp(Writer& writer, uint64_t ns, uint32_t what) {
    const uint64_t time = kBegan + ns;
    if (writer.left == 0) {
      writer.ticket = ++tickets_, writer.left = about_->stamps;
      write(segment(writer.ticket - 1), RangeSegment{time, static_cast<uint32_t>(2 * time), writer.ticket, writer.block,
                                                     writer.warp, writer.multiprocessor, writer.written});
    }
    write(segment(writer.ticket - 1) + sizeof(RangeSegment) + (about_->stamps - writer.left) * sizeof(RangeStamp),
          RangeStamp{static_cast<uint32_t>(2 * time), static_cast<uint32_t>(time / 32 * 32), writer.ticket, what});
    --writer.left, ++writer.written;
  }
  void begin(Writer& writer, uint64_t ns, uint32_t name) { stamp(writer, ns, 2 * name); }
  void end(Writer& writer, uint64_t ns, uint32_t name) { stamp(writer, ns, 2 * name + 1); }

  RingCopy copy(uint32_t first = 0) const {
    const uint32_t oldest = tickets_ > about_->segments ? tickets_ - about_->segments : 0;
    RingCopy made{about_, std::max(first, oldest), {}};
    for (uint32_t number = made.first; number < tickets_; ++number) {
      const std::byte* from = memory_.data() + segment(number);
      made.bytes.insert(made.bytes.end(), from, from + about_->segment_bytes());
    }
    return made;
  }
  const StampRing& about() const { return *about_; }
  std::vector<std::byte>& memory() { return memory_; }

 private:
  size_t segment(uint32_t number) const { return number % about_->segments * about_->segment_bytes(); }
  template <class Value>
  void write(size_t at, const Value& value) {
    std::memcpy(memory_.data() + at, &value, sizeof value);
  }
  static inline uint64_t made_ = 0;
  std::shared_ptr<StampRing> about_;
  std::vector<std::byte> memory_;
  uint32_t tickets_ = 0;
};

using Writer = MadeRing::Writer;
constexpr OpTag kFirst = 100;

// The timer counts in steps of 32 ns, the ranges take 50 ns each.
TEST(RingStamps, GiveTimesFinerThanTheTimer) {
  MadeRing ring(4, 64);
  Writer block{.block = 5, .multiprocessor = 131};
  ring.begin(block, 0, 1), ring.end(block, 200'000, 1);
  for (uint64_t i = 0; i < 20; ++i) ring.begin(block, 201'000 + 100 * i, 0), ring.end(block, 201'050 + 100 * i, 0);
  RingStamps stamps(ring.about(), kFirst);
  const auto parts = stamps.read(ring.copy());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].multiprocessor, 131u);
  ASSERT_EQ(parts[0].stamps.size(), 42u);
  for (size_t i = 2; i < 42; ++i) {
    EXPECT_EQ(parts[0].stamps[i].op, i % 2 == 0 ? kFirst : kNoOp);
    EXPECT_NEAR(static_cast<double>(parts[0].stamps[i].globaltimer - kBegan), 200'900 + 50.0 * static_cast<double>(i),
                32);
    if (i == 2) continue;
    EXPECT_NEAR(static_cast<double>(parts[0].stamps[i].globaltimer - parts[0].stamps[i - 1].globaltimer), 50, 2);
  }
}

TEST(RingStamps, AreReadOnceWhileTheKernelRuns) {
  MadeRing ring(4, 16);
  Writer block;
  RingStamps stamps(ring.about(), kFirst);
  ring.begin(block, 100, 0);
  EXPECT_TRUE(stamps.read(ring.copy()).empty()) << "the range is still open";
  ring.end(block, 400, 0), ring.begin(block, 500, 1);
  auto parts = stamps.read(ring.copy());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].stamps.front().op, kFirst);
  EXPECT_NEAR(static_cast<double>(parts[0].stamps.front().globaltimer - kBegan), 100, 32);
  EXPECT_TRUE(stamps.read(ring.copy()).empty()) << "nothing is new";
  ring.end(block, 700, 1);
  parts = stamps.read(ring.copy());
  ASSERT_EQ(parts.size(), 1u);
  ASSERT_EQ(parts[0].stamps.size(), 2u);
  EXPECT_EQ(parts[0].stamps[0].op, kFirst + 1);
  EXPECT_EQ(stamps.losses().unmatched + stamps.losses().overwritten + stamps.losses().invalid, 0u);
}

TEST(RingStamps, ARangeGoesOnInTheNextSegment) {
  MadeRing ring(8, 3);
  Writer block, other{.block = 1, .multiprocessor = 1};
  ring.begin(block, 100, 0), ring.end(block, 200, 0), ring.begin(block, 300, 1);
  ring.begin(other, 150, 0), ring.end(other, 160, 0);
  ring.end(block, 900, 1);  // in the third segment
  RingStamps stamps(ring.about(), kFirst);
  uint64_t gemm = 0;
  for (const RingPart& part : stamps.read(ring.copy()))
    for (size_t i = 0; i + 1 < part.stamps.size(); ++i)
      if (part.stamps[i].op == kFirst + 1) gemm += part.stamps[i + 1].globaltimer - part.stamps[i].globaltimer;
  EXPECT_NEAR(static_cast<double>(gemm), 600, 64);
  EXPECT_EQ(stamps.losses().unmatched, 0u);
}

TEST(RingStamps, TheNewestStayAndTheRestAreCounted) {
  MadeRing ring(4, 2);
  Writer block;
  RingStamps stamps(ring.about(), kFirst);
  for (uint64_t i = 0; i < 3; ++i) ring.begin(block, 100 * i, 0), ring.end(block, 100 * i + 50, 0);
  EXPECT_EQ(stamps.read(ring.copy()).size(), 3u);
  for (uint64_t i = 3; i < 13; ++i) ring.begin(block, 100 * i, 0), ring.end(block, 100 * i + 50, 0);
  const auto parts = stamps.read(ring.copy());
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_NEAR(static_cast<double>(parts[0].stamps[0].globaltimer - kBegan), 900, 32);
  EXPECT_EQ(stamps.losses().overwritten, 6u) << "segments 3 to 8";
}

// A block that keeps its old segment writes into one that belongs to another block by now.
TEST(RingStamps, OfAnEarlierOwnerAreIgnored) {
  MadeRing ring(1, 4);
  Writer old, fresh{.block = 1, .multiprocessor = 1};
  ring.begin(old, 100, 0);
  ring.begin(fresh, 200, 1), ring.end(fresh, 300, 1);
  ring.end(old, 400, 0);  // over the second stamp of the new owner
  RingStamps stamps(ring.about(), kFirst);
  EXPECT_TRUE(stamps.read(ring.copy(1)).empty());
}

TEST(RingStamps, ShowTheInnermostRange) {
  MadeRing ring(1, 8);
  Writer block;
  ring.begin(block, 100, 0), ring.begin(block, 200, 1), ring.end(block, 300, 1), ring.end(block, 400, 0);
  RingStamps stamps(ring.about(), kFirst);
  const auto parts = stamps.read(ring.copy());
  ASSERT_EQ(parts.size(), 1u);
  std::vector<OpTag> ops;
  for (const DeviceStamp& stamp : parts[0].stamps) ops.push_back(stamp.op);
  EXPECT_EQ(ops, (std::vector<OpTag>{kFirst, kFirst + 1, kFirst, kNoOp}));
}

TEST(RingStamps, CountBeginsAndEndsThatLackTheOther) {
  MadeRing ring(4, 8);
  Writer block;
  ring.end(block, 100, 0);
  ring.begin(block, 200, 0), ring.begin(block, 300, 1), ring.end(block, 400, 0);  // ends both
  ring.begin(block, 500, 1);
  RingStamps stamps(ring.about(), kFirst);
  stamps.read(ring.copy());
  EXPECT_EQ(stamps.losses().unmatched, 2u);
  EXPECT_EQ(stamps.open_ranges(), 1u);
  Writer again;  // the same block in the next launch
  ring.begin(again, 1000, 0), ring.end(again, 1100, 0);
  const auto parts = stamps.read(ring.copy());
  EXPECT_EQ(stamps.losses().unmatched, 3u);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].stamps.size(), 2u) << "the open range of the last launch is not drawn into this one";
}

TEST(RingStamps, ALongPauseKeepsTheTimersTimes) {
  MadeRing ring(1, 8);
  Writer block;
  ring.begin(block, 0, 0), ring.end(block, 3'000'000'000, 0);  // %clock wraps around twice
  RingStamps stamps(ring.about(), kFirst);
  const auto parts = stamps.read(ring.copy());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_NEAR(static_cast<double>(parts[0].stamps[1].globaltimer - parts[0].stamps[0].globaltimer), 3e9, 64);
}

TEST(RingStamps, WildNamesAndPlacesAreCounted) {
  MadeRing ring(4, 8);
  Writer block, far{.block = 1, .multiprocessor = 70'000};
  ring.begin(block, 100, 0), ring.begin(block, 200, 2), ring.stamp(block, 250, 0xffffffff), ring.end(block, 300, 0);
  ring.begin(far, 100, 0), ring.end(far, 200, 0);
  RingStamps stamps(ring.about(), kFirst);
  EXPECT_EQ(stamps.read(ring.copy()).size(), 1u);
  EXPECT_EQ(stamps.losses().invalid, 3u);
}

TEST(RingStamps, SurviveAnyContent) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    MadeRing ring(8, 16);
    std::array<Writer, 3> blocks{Writer{0, 0}, Writer{1, 1}, Writer{2, 1}};
    for (uint64_t i = 0; i < 80; ++i)
      ring.stamp(blocks[random() % 3], random() % 100'000, static_cast<uint32_t>(random() % 6));
    RingStamps stamps(ring.about(), kFirst);
    for (int times = 0; times < 40; ++times) ring.memory()[random() % ring.memory().size()] = std::byte(random() & 255);
    RingCopy copy = ring.copy();
    copy.first += static_cast<uint32_t>(round % 2 ? 0 : random());
    for (const RingPart& part : stamps.read(copy)) {
      EXPECT_TRUE(std::ranges::is_sorted(part.stamps, {}, &DeviceStamp::globaltimer));
      for (const DeviceStamp& stamp : part.stamps) EXPECT_TRUE(stamp.op == kNoOp || stamp.op < kFirst + 2);
    }
    copy.bytes.resize(random() % copy.bytes.size());
    stamps.read(copy);
  }
}

// Through the collector's part, onto rows.
struct Drawn : ::testing::Test {
  TraceContext context;
  StampSpans inner{context};
  Trace finish() {
    Trace trace;
    append(trace, context.batch.finish());
    return trace;
  }
  static std::vector<Span> spans(const Trace& trace, const std::string& row) {
    std::vector<Span> found;
    for (const Track& track : trace.tracks())
      if (track.kind == TrackKind::Inner && track.name == row && track.group == "GPU 0")
        for (const SpanBlock& block : track.blocks) found.insert(found.end(), block.spans.begin(), block.spans.end());
    return found;
  }
};

constexpr auto kKernel = static_cast<TimeNs>(kBegan);

TEST_F(Drawn, RangesAreLanesByMultiprocessor) {
  MadeRing ring(4, 8);
  Writer one{.block = 0, .multiprocessor = 7}, two{.block = 1, .multiprocessor = 12};
  for (Writer* block : {&one, &two})
    ring.begin(*block, 1000, 0), ring.end(*block, 3000, 0), ring.begin(*block, 3000, 1), ring.end(*block, 9000, 1);
  context.resident_kernels.push_back({kNoOp, 3, kKernel, kKernel + 10'000, 0});
  inner.draw_rings({ring.copy()}, false);
  const Trace trace = finish();
  for (const char* row : {"SM 007", "SM 012"}) {
    const auto found = spans(trace, row);
    ASSERT_EQ(found.size(), 2u) << row;
    EXPECT_EQ(trace.name(found[0].name), "load");
    EXPECT_EQ(trace.name(found[1].name), "gemm");
    EXPECT_EQ(found[1].meaning, static_cast<uint64_t>(Meaning::Matrix));
    EXPECT_NEAR(static_cast<double>(found[1].duration), 6000, 40);
    EXPECT_EQ(found[1].step, 3u);
    EXPECT_EQ(found[1].flags, kHelper) << "these ranges do not share out the kernel's time";
  }
  EXPECT_EQ(inner.ring_problems(), "");
}

TEST_F(Drawn, WarpsHaveLanesWhereTheyWrite) {
  MadeRing ring(4, 8, {"load"}, true);
  Writer one{.multiprocessor = 7, .warp = 0}, two{.multiprocessor = 7, .warp = 3};
  for (Writer* warp : {&one, &two}) ring.begin(*warp, 1000, 0), ring.end(*warp, 3000, 0);
  inner.draw_rings({ring.copy()}, true);
  const Trace trace = finish();
  EXPECT_EQ(spans(trace, "SM 007 warp 00").size(), 1u);
  EXPECT_EQ(spans(trace, "SM 007 warp 03").size(), 1u);
}

// The clocks were compared with an error of some µs: the kernel's record corrects it.
TEST_F(Drawn, StampsMoveIntoTheRecordOfTheirKernel) {
  MadeRing ring(4, 8);
  Writer block;
  ring.begin(block, 100, 0), ring.end(block, 49'900, 0);
  context.resident_kernels.push_back({kNoOp, 0, kKernel + 6'000, kKernel + 56'000, 0});
  context.resident_kernels.push_back({kNoOp, 0, kKernel + 56'500, kKernel + 58'000, 0});
  inner.draw_rings({ring.copy()}, false);
  const auto found = spans(finish(), "SM 000");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_GE(found[0].start, kKernel + 6'000);
  EXPECT_LE(found[0].end(), kKernel + 56'000);
  EXPECT_NEAR(static_cast<double>(found[0].duration), 49'800, 64);
  EXPECT_EQ(inner.ring_problems(), "");
}

TEST_F(Drawn, StampsWaitForTheRecordOfTheirKernel) {
  MadeRing ring(4, 8);
  Writer block;
  ring.begin(block, 100, 0), ring.end(block, 900, 0);
  inner.draw_rings({ring.copy()}, false);
  EXPECT_TRUE(finish().tracks().empty());
  context.resident_kernels.push_back({kNoOp, 0, kKernel, kKernel + 1'000, 0});
  inner.draw_rings({}, false);
  EXPECT_EQ(spans(finish(), "SM 000").size(), 1u);
}

TEST_F(Drawn, StampsOutsideOfEveryKernelAreSaid) {
  MadeRing ring(4, 8);
  Writer block;
  ring.begin(block, 100, 0), ring.end(block, 900, 0);
  context.resident_kernels.push_back({kNoOp, 0, kKernel + 1'000'000, kKernel + 1'001'000, 0});
  inner.draw_rings({ring.copy()}, false);
  EXPECT_TRUE(finish().tracks().empty()) << "the record may still come";
  inner.draw_rings({}, true);
  const auto found = spans(finish(), "SM 000");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].flags, kHelper | kEstimated);
  EXPECT_EQ(inner.ring_problems(),
            "2 stamps of kernels lie outside of every kernel record. Their times are estimated.");
}

TEST_F(Drawn, OverwrittenStampsAreLosses) {
  MadeRing ring(4, 8);
  Writer block;
  for (uint64_t i = 0; i < 48; ++i) ring.begin(block, 10 * i, 0), ring.end(block, 10 * i + 5, 0);
  context.resident_kernels.push_back({kNoOp, 0, kKernel, kKernel + 1'000, 0});
  inner.draw_rings({ring.copy()}, true);
  EXPECT_EQ(finish().losses.dropped_records, 8u);
  EXPECT_EQ(inner.ring_problems(),
            "8 groups of up to 8 stamps of kernels were overwritten before they were read. Give KernelRanges a larger "
            "capacity.");
}

}  // namespace
}  // namespace ws::prof
