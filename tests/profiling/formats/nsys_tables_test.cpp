// The tables of nsys stats: read by Python's csv, whole in every row, and summing to what the trace holds.
#include "profiling/formats/nsys_tables.h"
#include "profiling/base/failure.h"
#include "profiling/formats/convert.h"
#include "tests/profiling/formats/interop_support.h"

namespace ws::prof {
namespace {

using NsysTables = Interop;

// "columns rows total": the sum of the first column that is called a total, else of the durations.
constexpr const char* kRead = R"py(
import csv, sys
rows = list(csv.reader(open(sys.argv[1])))
head, rows = rows[0], rows[1:]
assert all(len(row) == len(head) for row in rows), [row for row in rows if len(row) != len(head)][0]
total = next(c for c in ("Total Time (ns)", "Total (MB)", "Duration (ns)") if c in head)
print(len(head), len(rows), round(sum(float(row[head.index(total)]) for row in rows), 3))
shares = [float(row[0]) for row in rows] if head[0] == "Time (%)" else [100]
assert abs(sum(shares) - 100) < 0.1 * len(shares), shares
)py";

TEST_F(NsysTables, EachReportIsWholeAndSumsToTheTrace) {
  int64_t kernels = 0, copies = 0, calls = 0, steps = 0, copied = 0, on_gpu_spans = 0;
  for (const Track& track : run.trace.tracks())
    for (const Span& span : spans_of(track)) {
      const auto ns = static_cast<int64_t>(span.duration);
      if (span.span_kind() == SpanKind::Kernel) kernels += ns;
      if (span.span_kind() == SpanKind::Copy) copies += ns, copied += 4096;
      if (span.span_kind() == SpanKind::Api) calls += ns;
      if (span.span_kind() == SpanKind::Step) steps += ns;
      on_gpu_spans += span.span_kind() == SpanKind::Kernel || span.span_kind() == SpanKind::Copy;
    }
  ASSERT_GT(copies, 0);
  const auto expect = [&](const char* report, int columns, int64_t rows, const std::string& total) {
    const std::string file = path((std::string("run_") + report + ".csv").c_str());
    ASSERT_EQ(nsys_report_of(file), report);
    export_run(run, file);
    EXPECT_EQ(python(kRead, file), std::to_string(columns) + " " + std::to_string(rows) + " " + total + "\n") << report;
  };
  const auto ns = [](int64_t value) { return std::to_string(value) + ".0"; };
  expect("cuda_gpu_kern_sum", 9, 20, ns(kernels));
  expect("cuda_gpu_kern_gb_sum", 11, 20, ns(kernels));
  expect("cuda_api_sum", 9, 1, ns(calls));
  expect("cuda_gpu_mem_time_sum", 9, 1, ns(copies));
  expect("cuda_gpu_mem_size_sum", 8, 1, "0.819");  // 200 copies of 4,096 bytes, to the thousandth
  expect("cuda_gpu_trace", 19, on_gpu_spans, ns(kernels + copies));
  expect("nvtx_pushpop_sum", 9, 1, ns(steps));
  EXPECT_EQ(copied, 200 * 4096);
  EXPECT_EQ(nsys_reports().size(), 7u);
}

TEST_F(NsysTables, OperationsAndPlacesHaveNsysNames) {
  export_run(run, path("run_cuda_gpu_trace.csv"));
  const std::string text = python(R"py(
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
copy = next(row for row in rows if row["Name"].startswith("[CUDA"))
kernel = next(row for row in rows if row["Name"] == "kernel_3")
print(copy["Name"], copy["SrcMemKd"], copy["DstMemKd"], copy["Bytes (MB)"], copy["GrdX"] == "", kernel["GrdX"], kernel["BlkX"],
      kernel["Reg/Trd"], kernel["Strm"], kernel["Device"])
assert [float(row["Start (ns)"]) for row in rows] == sorted(float(row["Start (ns)"]) for row in rows)
)py",
                                  path("run_cuda_gpu_trace.csv"));
  EXPECT_EQ(text, "[CUDA memcpy Host-to-Device] Pageable Device 0.004 True 4 128 32 7 NVIDIA H200 (0)\n");
}

// Any other name gives the kernels, as before there were more.
TEST_F(NsysTables, OtherNamesGiveTheKernels) {
  EXPECT_EQ(nsys_report_of("a.csv"), "cuda_gpu_kern_sum");
  for (const char* typo : {"cuda_gpu_kernel_sum.csv", "a_cuda_gpus_trace.csv"}) EXPECT_THROW(nsys_report_of(typo), Failure) << typo;
  EXPECT_EQ(nsys_report_of("cuda_api_sum.csv"), "cuda_api_sum");
  EXPECT_THROW(export_nsys_table(run, path("a.csv"), "no_such_table"), Failure);
}

}  // namespace
}  // namespace ws::prof
