// Advice from samples: the reason with its line and share, nothing without samples or where no reason stands out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/core/insights/run_insights.h"
#include "app/core/insights/trace_insights.h"
#include "tests/support/made_stalls.h"

namespace ws::app {
namespace {

using prof::Stall;
using testing::HasSubstr;

struct Made {
  prof::Trace trace;
  void add(const char* kernel, int line, Stall reason, uint64_t count, uint32_t offset = 0) {
    prof::SampledInstruction one{.module = 1, .offset = offset, .line = line, .function = trace.intern(kernel), .file = trace.intern(line > 0 ? "/home/my.cu" : "")};
    one.samples[static_cast<size_t>(reason)] = count;
    trace.stalls.add(one);
  }
};

void run_kernel(prof::Trace& trace, const char* kernel, const char* op, prof::TimeNs length) {
  trace.ops.push_back({.name = op});
  prof::Span span;
  span.duration = static_cast<uint64_t>(length), span.kind = static_cast<uint64_t>(prof::SpanKind::Kernel), span.name = trace.intern(kernel);
  span.op = static_cast<prof::OpTag>(trace.ops.size() - 1), span.meaning = static_cast<uint64_t>(prof::Meaning::Pointwise);
  trace.append(trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0"), span);
}

TEST(StallInsights, NameTheOpTheReasonTheLineAndTheShare) {
  Made made;
  run_kernel(made.trace, "bias_relu(float*)", "fc1", 4000);
  made.add("bias_relu(float*)", 14, Stall::GlobalMemory, 720);
  made.add("bias_relu(float*)", 14, Stall::Issued, 80, 16);
  made.add("bias_relu(float*)", 15, Stall::FixedLatency, 200, 32);
  const std::vector<Insight> found = stall_insights(made.trace, false);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].headline, "72 % of fc1's samples wait for global memory at my.cu:14");
  EXPECT_THAT(found[0].how, HasSubstr("four values at once"));
  EXPECT_NEAR(found[0].cost_ns, 0.72 * 4000, 1);
  ASSERT_TRUE(found[0].place);
  EXPECT_EQ(found[0].look_at, prof::Meaning::Pointwise);
}

struct Rule {
  Stall reason;
  const char *rule, *advice;
};

TEST(StallInsights, EachReasonHasItsAdvice) {
  for (const Rule& rule : {Rule{Stall::GlobalMemory, "global memory", "float4"}, {Stall::SharedMemory, "shared memory", "pad each row"}, {Stall::SharedQueue, "shared memory queue", "pad each row"},
                           {Stall::Barrier, "barrier", "__syncwarp"}, {Stall::Branch, "branch", "goes one way"}, {Stall::MathPipe, "busy math unit", "fast forms"},
                           {Stall::FixedLatency, "dependency chain", "independent sums"}, {Stall::GlobalQueue, "global memory queue", "16 bytes"}}) {
    Made made;
    made.add("k", 3, rule.reason, 500);
    made.add("k", 4, Stall::Issued, 500, 16);
    const std::vector<Insight> found = stall_insights(made.trace, false);
    ASSERT_EQ(found.size(), 1u) << rule.rule;
    EXPECT_EQ(found[0].rule, rule.rule);
    EXPECT_THAT(found[0].headline, HasSubstr("50 % of k's samples"));
    EXPECT_THAT(found[0].headline, HasSubstr("my.cu:3"));
    EXPECT_THAT(found[0].how, HasSubstr(rule.advice));
  }
}

TEST(StallInsights, SayNothingWithoutEnoughSamples) {
  EXPECT_TRUE(stall_insights(prof::Trace(), false).empty());
  Made few;
  few.add("k", 3, Stall::GlobalMemory, 99);
  EXPECT_TRUE(stall_insights(few.trace, false).empty());
  Made busy;
  busy.add("k", 3, Stall::Issued, 5000);
  busy.add("k", 4, Stall::TensorCores, 5000, 16);
  EXPECT_TRUE(stall_insights(busy.trace, false).empty()) << "a kernel that computes does not wait";
  Made spread;
  for (uint32_t line = 1; line <= 10; ++line) spread.add("k", static_cast<int>(line), Stall::GlobalMemory, 200, line * 16);
  EXPECT_TRUE(stall_insights(spread.trace, false).empty()) << "no line stands out";
}

TEST(StallInsights, CodeWithoutLinesShowsHowToGetThem) {
  Made made;
  made.add("gemm", 0, Stall::GlobalMemory, 900);
  const std::vector<Insight> found = stall_insights(made.trace, false);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].headline, "100 % of gemm's samples wait for global memory");
  EXPECT_THAT(found[0].why, HasSubstr("-lineinfo"));
  EXPECT_THAT(stall_insights(made.trace, true).at(0).why, HasSubstr("built in"));
}

TEST(StallInsights, AreAmongAllAdvice) {
  const prof::MadeStalls made;
  const std::vector<Insight> all = run_insights(made.run).found;
  EXPECT_TRUE(std::ranges::any_of(all, [](const Insight& one) { return one.headline.find("my.cu:18") != std::string::npos; }));
  const std::vector<Insight> stalls = stall_insights(made.run.trace, false);
  ASSERT_EQ(stalls.size(), 3u);
  EXPECT_EQ(stalls[0].rule, "global memory") << "most samples first";
}

}  // namespace
}  // namespace ws::app
