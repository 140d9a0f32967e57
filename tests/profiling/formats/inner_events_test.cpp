// What the profilers of Triton (Proton) and FlashInfer write about the inside of kernels opens as lanes.
#include <gtest/gtest.h>

#include "profiling/formats/trace_formats.h"
#include "profiling/formats/inner_events.h"
#include "profiling/trace/span_walk.h"
#include "tests/profiling/formats/perfetto_message.h"

namespace ws::prof {
namespace {

RunData parsed(const std::string& events) {
  const std::string text = R"({"displayTimeUnit": "ns", "traceEvents": [)" + events + "]}";
  return parse_chrome(text);
}

std::map<std::string, std::vector<Span>> lanes(const Trace& trace) {
  std::map<std::string, std::vector<Span>> found;
  for (const Track& track : trace.tracks())
    if (track.kind == TrackKind::Inner)
      each_span(track, -kAlways, kAlways,
                [&](const Span& span) { found[track.group + " " + track.name].push_back(span); });
  return found;
}

// Written as Proton's instrumentation backend writes them; older versions add a remark about the unit.
std::string proton(const std::string& process, const std::string& name, double ts, double dur, int warp = 0) {
  return R"x({"args": {"Finalization Time (ns)": 3520, "Frequency (MHz)": 1000.0, "call_stack": ["ROOT"]},)x"
         R"x( "cat": "matmul_kernel", "cname": "cq_build_running", "dur": )x" +
         std::to_string(dur) + R"x(, "name": ")x" + name + R"x(", "ph": "X", "pid": ")x" + process +
         R"x(", "tid": "warp )x" + std::to_string(warp) + R"x( (line 0)", "ts": )x" + std::to_string(ts) + "}";
}

constexpr const char* kCycles = "Proton counts clock cycles. They are shown as if the clock ran at 1 GHz.";

TEST(InnerEvents, ProtonHasALaneForEachWarp) {
  const RunData run = parsed(
      proton("matmul_kernel Core7 CTA12", "load", 1.5, 2.25) + "," + proton("matmul_kernel Core7 CTA12", "gemm", 4, 8) +
      "," + proton("matmul_kernel Core131 CTA3 [measure in clock cycle (assume 1GHz)]", "load", 2, 1, 5));
  const auto found = lanes(run.trace);
  ASSERT_EQ(found.size(), 2u);
  const auto& first = found.at("GPU 0 SM 007 CTA 12 warp 0");
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].start, 1500);
  EXPECT_EQ(first[0].duration, 2250u);
  EXPECT_EQ(run.trace.name(first[0].name), "load");
  EXPECT_EQ(run.trace.ops[first[0].op].detail, "matmul_kernel");
  EXPECT_EQ(first[1].meaning, static_cast<uint64_t>(Meaning::Matrix));
  EXPECT_EQ(found.at("GPU 0 SM 131 CTA 3 warp 5").size(), 1u);
  EXPECT_EQ(run.problems, std::vector<std::string>{kCycles});
}

std::string named(const char* what, int process, int thread, const std::string& name) {
  return R"({"ph": "M", "name": ")" + std::string(what) + R"(", "pid": )" + std::to_string(process) + R"(, "tid": )" +
         std::to_string(thread) + R"(, "args": {"name": ")" + name + R"("}})";
}
std::string mark(const char* phase, int process, int thread, const std::string& name, double ts) {
  return R"({"ph": ")" + std::string(phase) + R"(", "pid": )" + std::to_string(process) + R"(, "tid": )" +
         std::to_string(thread) + R"(, "name": ")" + name + R"(", "ts": )" + std::to_string(ts) + "}";
}

// Its Perfetto file, as Perfetto's traceconv turns it into JSON.
TEST(InnerEvents, FlashInferHasALaneForEachGroup) {
  const RunData run =
      parsed(named("process_name", 1, 0, "SM_007") + "," + named("thread_name", 1, 2, "blk12_g1") + "," +
             mark("B", 1, 2, "issue-load-q", 10) + "," + mark("E", 1, 2, "", 12.5) + "," +
             named("process_name", 9, 0, "python") + "," + mark("B", 9, 1, "main", 1) + "," + mark("E", 9, 1, "", 20));
  const auto found = lanes(run.trace);
  ASSERT_EQ(found.size(), 1u) << "the other process is a program";
  const auto& spans = found.at("GPU 0 SM 007 CTA 12 group 1");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(run.trace.name(spans[0].name), "issue-load-q");
  EXPECT_EQ(spans[0].duration, 2500u);
  EXPECT_TRUE(run.problems.empty());
}

Message flashinfer() {
  Message trace;
  trace.message(1, perfetto_track(1234567, 0, "SM_007")).message(1, perfetto_track(1234568, 1234567, "blk12_g1"));
  Message first = perfetto_event(10'000, 1, 1234568, 1);
  first.message(12, Message().message(2, Message().number(1, 1).text(2, "issue-load-q")));
  return trace.message(1, first).message(1, perfetto_event(12'500, 2, 1234568, 0)).message(1, perfetto_event(13'000, 3, 1234568, 1));
}

TEST(InnerEvents, FlashInfersPerfettoFileOpens) {
  const RunData run = parse_perfetto(flashinfer().bytes(), "mla.perfetto-trace");
  const auto found = lanes(run.trace);
  ASSERT_EQ(found.size(), 1u);
  const auto& spans = found.at("GPU 0 SM 007 CTA 12 group 1");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(run.trace.name(spans[0].name), "issue-load-q");
  EXPECT_EQ(spans[0].duration, 2500u);
}

TEST(InnerEvents, ADamagedPerfettoFileIsRefused) {
  const std::string whole = flashinfer().bytes();
  EXPECT_THROW(parse_perfetto(std::string_view(whole).substr(0, whole.size() - 3), "x"), Failure);
  try {
    parse_perfetto("\x0f", "x.pftrace");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "x.pftrace: holds no Perfetto trace (byte 1)");
  }
}

TEST(InnerEvents, TimesAreCheckedAgainstTheKernelAround) {
  const std::string kernel =
      R"({"ph": "X", "cat": "kernel", "name": "matmul_kernel", "pid": 0, "tid": 7, "ts": 100, "dur": 50})";
  const std::string inside = proton("matmul_kernel Core7 CTA12", "load", 101, 40);
  EXPECT_EQ(parsed(kernel + "," + inside).problems, std::vector<std::string>{kCycles});
  const RunData run = parsed(kernel + "," + inside + "," + proton("matmul_kernel Core7 CTA12", "store", 145, 20) + "," +
                             proton("matmul_kernel Core8 CTA13", "load", 10, 20));
  ASSERT_EQ(run.problems.size(), 2u);
  EXPECT_EQ(
      run.problems[0],
      "2 of 3 spans inside kernels lie outside of every kernel of this file. Their times come from another clock.");
}

TEST(InnerEvents, OtherNamesAreNoPlaces) {
  for (const char* process :
       {"kernel", "kernel Core", "kernel Core7", "kernel Core7 CTA", "kernel CoreX CTA1", "7", ""})
    EXPECT_FALSE(inner_place(process, "warp 1 (line 0)")) << process;
  EXPECT_FALSE(inner_place("kernel Core7 CTA1", "thread 5"));
  EXPECT_FALSE(inner_place("kernel Core99999999999 CTA1", "warp 1"));
  EXPECT_FALSE(inner_place("SM_007", "blk1"));
  EXPECT_FALSE(is_multiprocessor("SM_007 and more"));
  EXPECT_TRUE(is_multiprocessor("SM_132"));
}

}  // namespace
}  // namespace ws::prof
