// What a trace of any program shows: each rule finds its own fault with the span that shows it, and says nothing of a
// GPU that is busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/core/insights/run_insights.h"
#include "app/core/insights/trace_insights.h"
#include "profiling/formats/join_ranks.h"

namespace ws::app {
namespace {

using namespace prof;
constexpr TimeNs kUs = 1000, kMs = 1000 * kUs;

// A program that does everything wrong, in steps of 60 µs.
class SlowProgram {
 public:
  SlowProgram() {
    for (int i = 0; i < 400; ++i) step();
    now_ += 30 * kMs;  // it reads a file
    add(stream_, SpanKind::Kernel, Meaning::Matrix, "after the file", 2 * kUs);
    for (int i = 0; i < 20; ++i) add(stream_, SpanKind::Copy, Meaning::Copy, "HtoD", i == 7 ? 900 * kUs : 500 * kUs);
    for (int i = 0; i < 30; ++i) add(api_, SpanKind::Alloc, Meaning::Allocation, "cudaMalloc", i == 3 ? 700 * kUs : 300 * kUs);
  }
  Trace trace;

 private:
  void add(TrackId track, SpanKind kind, Meaning meaning, const char* name, TimeNs length) {
    last_ = Span{};
    last_.start = now_, last_.duration = static_cast<uint64_t>(length), last_.kind = static_cast<uint64_t>(kind);
    last_.meaning = static_cast<uint64_t>(meaning), last_.name = trace.intern(name);
    trace.append(track, last_);
    now_ += length;
  }
  void step() {
    add(stream_, SpanKind::Kernel, Meaning::Pointwise, "tiny", 2 * kUs);
    add(api_, SpanKind::Sync, Meaning::Sync, "cudaStreamSynchronize", 30 * kUs);
    now_ += 28 * kUs;
  }
  TrackId stream_ = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  TrackId api_ = trace.track(TrackKind::Api, "CUDA API", "CPU");
  Span last_;
  TimeNs now_ = 0;
};

const Insight* insight_of(const std::vector<Insight>& all, const std::string& rule) {
  for (const Insight& i : all)
    if (i.rule == rule) return &i;
  return nullptr;
}

TEST(TraceInsights, EachFaultIsFoundWithTheSpanThatShowsIt) {
  const SlowProgram program;
  const TraceLook look = look_of(program.trace);
  const std::vector<Insight> all = trace_insights(look);
  const auto span_of = [&](const char* rule) {
    const Insight* found = insight_of(all, rule);
    EXPECT_TRUE(found && found->place) << rule;
    if (!found || !found->place) return Span{};
    EXPECT_LT(found->around.begin, found->place->span.start) << rule;
    EXPECT_GT(found->around.end, found->place->span.end()) << rule;
    EXPECT_TRUE(found->change.empty()) << rule << ": the settings of another program are not known";
    return found->place->span;
  };
  EXPECT_EQ(program.trace.name(span_of("slowest gap").name), "after the file");
  EXPECT_EQ(program.trace.name(span_of("idle GPU").name), "after the file");
  EXPECT_EQ(program.trace.name(span_of("tiny kernels").name), "tiny");
  EXPECT_EQ(span_of("syncs").span_kind(), SpanKind::Sync);
  EXPECT_EQ(span_of("unoverlapped copies").duration, 900u * kUs);
  EXPECT_EQ(span_of("allocator traffic").duration, 700u * kUs);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i - 1].cost_ns, all[i].cost_ns);
  EXPECT_THAT(insight_of(all, "syncs")->more, testing::HasSubstr("400 syncs"));
  EXPECT_THAT(insight_of(all, "tiny kernels")->headline, testing::StartsWith("401 kernels run"));
}

// One graph: not before the waits are gone, which cannot be captured, and not where the loader sets the pace.
TEST(TraceInsights, OneGraphIsPredictedOnlyWhereItCanBe) {
  const auto edits_for = [](const std::string& run) {
    const RunInsights all = run_insights(prof::import_ranks({WARPSIGHT_SOURCE_DIR "/resources/recorded/" + run}));
    const auto tiny = std::ranges::find(all.found, "tiny kernels", &Insight::rule);
    return tiny == all.found.end() ? "not found" : tiny->edits;
  };
  EXPECT_EQ(edits_for("pytorch-cnn.wsrun"), "no sync; one graph launch");
  EXPECT_EQ(edits_for("pytorch-slow-loader.wsrun"), "");
}

// Many tiny kernels make the launch gaps in which the GPU is idle: the card has the words and the place of both.
TEST(TraceInsights, FindingsAboutOnePartOfTheSplitAreOneCard) {
  const RunInsights all = run_insights(prof::import_ranks({WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-cnn.wsrun"}));
  EXPECT_EQ(std::ranges::count(all.found, Meaning::Launch, &Insight::look_at), 1);
  const Insight* tiny = insight_of(all.found, "tiny kernels");
  ASSERT_TRUE(tiny && tiny->saves_us.known());
  ASSERT_EQ(tiny->same_part.size(), 1u);
  EXPECT_EQ(tiny->same_part[0].rule, "idle GPU");
  EXPECT_TRUE(tiny->same_part[0].place && tiny->same_part[0].shows_gap);
  EXPECT_THAT(tiny->more, testing::HasSubstr("The GPU is idle for 90 % of the median step."));
}

// No graph can hold a sync: the sync is no small advice of its own, but a part of the graph's, which names its call.
TEST(TraceInsights, ASyncThatLargerAdviceRemovesBelongsToIt) {
  const RunInsights all = run_insights(prof::import_ranks({WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-cnn.wsrun"}));
  EXPECT_EQ(insight_of(all.found, "sync at this line"), nullptr);
  const Insight* tiny = insight_of(all.found, "tiny kernels");
  ASSERT_TRUE(tiny);
  ASSERT_EQ(tiny->includes.size(), 1u);
  EXPECT_TRUE(tiny->includes[0].rule == "sync at this line" && tiny->includes[0].changes_little && tiny->includes[0].place);
  EXPECT_THAT(tiny->more, testing::HasSubstr("Part of it: cnn.py:42 in "));
  EXPECT_THAT(tiny->how, testing::StartsWith("Remove the sync at cnn.py:42: `.item()` in each step → in every hundredth step. Until then, keep the value on the GPU. `model` → `torch.compile(model, mode="));
  EXPECT_THAT(to_json(all.found, Trace{}), testing::HasSubstr("\"includes\""));
  // Another advice of the ranks does not remove this sync.
  const RunInsights ranks = run_insights(prof::import_ranks({WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-gpt-2-ranks.wsrun"}));
  ASSERT_TRUE(insight_of(ranks.found, "sync at this line"));
  EXPECT_TRUE(insight_of(ranks.found, "sync at this line")->changes_little);
}

TEST(TraceInsights, ABusyGpuIsLeftAlone) {
  Trace trace;
  const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  for (int i = 0; i < 500; ++i) {
    Span span;
    span.start = i * 100 * kUs, span.duration = 98 * kUs, span.kind = static_cast<uint64_t>(SpanKind::Kernel);
    span.name = trace.intern("gemm");
    trace.append(stream, span);
  }
  EXPECT_TRUE(trace_insights(look_of(trace)).empty());
  EXPECT_TRUE(trace_insights(look_of(Trace{})).empty());
}

// An evaluation of 100 ms, in which the GPU is idle, lies between steps of 1 ms.
TEST(TraceInsights, APauseBetweenStepsIsInNoShare) {
  Trace trace;
  const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0"), steps = trace.track(TrackKind::Steps, "step", "CPU");
  TimeNs now = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    Span step, kernel;
    step.start = kernel.start = now, step.duration = static_cast<uint64_t>(kMs), kernel.duration = static_cast<uint64_t>(900 * kUs);
    step.step = kernel.step = i, step.kind = static_cast<uint64_t>(SpanKind::Step), kernel.kind = static_cast<uint64_t>(SpanKind::Kernel);
    kernel.meaning = static_cast<uint64_t>(Meaning::Matrix), kernel.name = trace.intern("gemm");
    trace.append(steps, step), trace.append(stream, kernel);
    now += i == 50 ? 101 * kMs : kMs;
  }
  const TraceLook part = judged_part(look_of(trace));
  const StepSample sample = StepsOfRun::of(trace).sample();
  EXPECT_EQ(part.begin, sample.all.begin) << "the steps that Details and stats measure";
  EXPECT_EQ(part.end, sample.all.end);
  EXPECT_EQ(part.steps.count, sample.which.count);
  const RunFacts facts = facts_of(part);
  EXPECT_EQ(facts.steps.count, sample.which.count);
  EXPECT_NEAR(facts.part(Meaning::Matrix) / facts.step_us, 0.9, 0.01);
  EXPECT_LE(facts.step_us, 100e3);
  const std::vector<Insight> all = trace_insights(look_of(trace));
  ASSERT_EQ(all.size(), 1u) << "the GPU is busy in the steps";
  EXPECT_EQ(all[0].headline, "the longest gap on the GPU lasts 100.10 ms, in a pause between steps");
}

}  // namespace
}  // namespace ws::app
