// Four times the input takes about four times the work: nothing that a file can make long is searched from the front.
// Measures processor time, because other programs may run beside.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>

#include "profiling/analysis/launch_stacks.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/formats/scalars.h"
#include "profiling/run_file/run_file.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"
#include "tests/profiling/analysis/made_inside.h"
#include "tests/profiling/analysis/made_ranks.h"
#include "tests/profiling/formats/perfetto_message.h"
#include "tests/support/machine.h"

namespace ws::prof {
namespace {

namespace fs = std::filesystem;

using Work = std::function<void()>;

// Prepares the work of one size; only the work is timed. Files lie in `folder`.
struct Subject {
  std::string name;
  std::function<Work(int size, const fs::path& folder)> prepare;
};

std::string file_in(const fs::path& folder, const char* ending) {
  static int made = 0;
  return (folder / (std::to_string(made++) + ending)).string();
}
std::string number(int64_t i) { return std::to_string(i); }

// --- what importers read

using Line = std::function<std::string(int i)>;

Subject chrome(const char* name, const Line& line) {
  return {std::string("chrome_") + name, [line](int size, const fs::path&) -> Work {
            std::string text = "{\"traceEvents\": [";
            for (int i = 0; i < size; ++i) text += (i ? ",{" : "{") + line(i) + "}";
            text += "]}";
            return [text = std::move(text)] { parse_chrome(text); };
          }};
}

std::string event(const char* phase, const std::string& name, const std::string& more) {
  return "\"ph\": \"" + std::string(phase) + "\", \"name\": \"" + name + "\", \"pid\": 1, " + more;
}
std::string span(const char* category, const std::string& name, int64_t at, const std::string& more) {
  return event("X", name, "\"cat\": \"" + std::string(category) + "\", \"ts\": " + number(at) + ", \"dur\": 5, " + more);
}

// An op of PyTorch, its call and its kernel, as Kineto writes them.
std::string kineto(int i) {
  const std::string ids = "\"args\": {\"External id\": " + number(i / 3 + 1) + ", \"correlation\": " + number(i / 3 + 1) + "}";
  if (i % 3 == 0) return span("cpu_op", "aten::op" + number(i % 999), 10 * i, "\"tid\": 1, " + ids);
  if (i % 3 == 1) return span("cuda_runtime", "cudaLaunchKernel", 10 * i - 9, "\"tid\": 1, " + ids);
  return span("kernel", "k" + number(i % 999), 10 * i, "\"tid\": 7, " + ids);
}

std::vector<Subject> chrome_subjects() {
  return {
      chrome("threads", [](int i) { return span("cpu_op", "a", 10 * i, "\"tid\": " + number(i)); }),
      chrome("named_threads", [](int i) {
        return event("M", "thread_name", "\"tid\": " + number(i) + ", \"args\": {\"name\": \"t" + number(i) + "\"}");
      }),
      chrome("streams", [](int i) {
        return span("kernel", "k", 1, "\"tid\": " + number(i) + ", \"args\": {\"stream\": " + number(i) + "}");
      }),
      chrome("names", [](int i) { return span("kernel", "k" + number(i), 10 * i, "\"tid\": 7"); }),
      chrome("overlapping_kernels", [](int i) { return span("kernel", "k", i, "\"tid\": 7"); }),
      chrome("counters", [](int i) { return event("C", "c" + number(i), "\"ts\": 1, \"args\": {\"value\": 1}"); }),
      chrome("counters_backwards", [](int i) {
        return event("C", "c", "\"ts\": " + number(100'000'000 - i) + ", \"args\": {\"value\": 1}");
      }),
      chrome("losses", [](int i) {
        return event("C", i % 2 ? "loss" : "test loss", "\"ts\": " + number(i) + ", \"step\": " + number(i) +
                                                            ", \"args\": {\"" + (i % 2 ? "loss" : "test loss") + "\": 1}");
      }),
      chrome("spans_backwards", [](int i) { return span("cpu_op", "a", 100'000'000 - i, "\"tid\": 1"); }),
      chrome("open_spans", [](int i) { return event("B", "b", "\"tid\": " + number(i % 50) + ", \"ts\": " + number(i)); }),
      chrome("spans_in_two_events", [](int i) { return event(i % 2 ? "E" : "B", "b", "\"tid\": 1, \"ts\": " + number(i)); }),
      chrome("ends_without_a_begin", [](int i) { return event("E", "e", "\"tid\": " + number(i) + ", \"ts\": 1"); }),
      chrome("memory", [](int i) {
        return event("i", "[memory]", "\"ts\": " + number(i) + ", \"args\": {\"Bytes\": 8, \"Addr\": " + number(i) +
                                          ", \"source\": \"s" + number(i % 300) + "\"}");
      }),
      chrome("changes", [](int i) { return event("i", "lr", "\"cat\": \"change\", \"ts\": 1, \"step\": " + number(i)); }),
      chrome("kineto_ops", kineto),
      chrome("kineto_steps", [](int i) {
        return i % 10 ? kineto(i) : span("user_annotation", "ProfilerStep#" + number(i), 10 * i, "\"tid\": 1");
      }),
      chrome("kineto_optimizer", [](int i) {
        return i % 10 ? kineto(i) : span("user_annotation", "Optimizer.step#Adam.step", 10 * i, "\"tid\": 1");
      }),
      chrome("kineto_python", [](int i) {
        return span("python_function", "net.py(" + number(i % 999) + "): f", 10 * (i / 50) + i % 50, "\"tid\": 1");
      }),
      chrome("kineto_shapes", [](int i) {
        return span("kernel", "k", 10 * i, "\"tid\": 7, \"args\": {\"grid\": [" + number(i) + ",1,1], \"block\": [64,1,1]}");
      }),
      chrome("our_ops", [](int i) {
        return span("kernel", "k", 10 * i, "\"tid\": 7, \"args\": {\"op\": \"o" + number(i) + "\", \"layer\": \"l\", \"line\": \"a.py:1\"}");
      }),
  };
}

Subject csv(const char* name, const Line& line) {
  return {std::string("scalars_") + name, [line](int size, const fs::path&) -> Work {
            std::string text = "Wall time,Step,Value,Tag\n";
            for (int i = 0; i < size; ++i) text += line(i) + "\n";
            return [text = std::move(text)] { parse_scalars_csv(text); };
          }};
}

std::vector<Subject> scalar_subjects() {
  return {csv("tags", [](int i) { return "1,1,1,tag" + number(i); }),
          csv("backwards", [](int i) { return number(100'000'000 - i) + "," + number(100'000'000 - i) + ",1,other"; }),
          csv("losses", [](int i) { return number(i) + "," + number(i % 10) + ",1,loss"; }),
          csv("losses_and_accuracies", [](int i) { return number(i) + "," + number(i / 2) + ",1," + (i % 2 ? "loss" : "test/acc"); })};
}

// `rows`: SQL that fills tables from the numbers `i` of the table `c`.
Subject nsys(const char* name, const std::string& tables, const std::string& rows) {
  return {std::string("nsys_") + name, [=](int size, const fs::path& folder) -> Work {
            const std::string path = file_in(folder, ".sqlite");
            Database db(path, Database::Mode::Create);
            db.exec("CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES(1, 'k')");
            db.exec(tables.c_str());
            db.exec(("CREATE TEMP TABLE c AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < " +
                     number(size) + ") SELECT i FROM c").c_str());
            db.exec(rows.c_str());
            return [path] { import_nsys(path); };
          }};
}

std::vector<Subject> nsys_subjects() {
  const std::string kernels =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, correlationId INT, demangledName INT);";
  const std::string calls =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT);";
  const std::string launches = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 10 * i, 10 * i + 2, 5, i, 1 FROM c;";
  const std::string work = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10 * i, 10 * i + 5, 0, 7, i, 1 FROM c;";
  return {
      nsys("streams", kernels, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10 * i, 10 * i + 5, 0, i, i, 1 FROM c"),
      nsys("names", kernels, "INSERT INTO StringIds SELECT i + 1, 'name ' || i FROM c; INSERT INTO "
                             "CUPTI_ACTIVITY_KIND_KERNEL SELECT 10 * i, 10 * i + 5, 0, 7, i, i + 1 FROM c"),
      nsys("calls", kernels + calls, launches + work),
      nsys("threads", calls, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 10 * i, 10 * i + 2, i, i, 1 FROM c"),
      nsys("ranges", calls + "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, globalTid INT, text TEXT);",
           launches + "INSERT INTO NVTX_EVENTS SELECT 10 * i, 10 * i + 9, 59, 5, 'range ' || i FROM c"),
      nsys("memory", "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INT, address INT, bytes INT, memoryOperationType INT, name TEXT);",
           "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT i, i, 8, i % 2, 'pool ' || i % 200 FROM c"),
      nsys("copies", "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, streamId INT, correlationId INT, "
                     "bytes INT, copyKind INT);",
           "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT 10 * i, 10 * i + 5, 0, i % 100, i, i, 1 FROM c"),
  };
}

// A pickle of plain data.
namespace pickled {
std::string bytes_of(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}
std::string text(const std::string& value) { return "X" + bytes_of(value.size(), 4) + value; }
std::string whole(int64_t value) { return "\x8a\x08" + bytes_of(static_cast<uint64_t>(value), 8); }
std::string list(const std::string& values) { return "](" + values + "e"; }
std::string dict(const std::string& values) { return "}(" + values + "u"; }
}  // namespace pickled

Subject snapshot(const char* name, const std::function<int(int)>& address, const std::function<int(int)>& line) {
  return {std::string("snapshot_") + name, [=](int size, const fs::path&) -> Work {
            using namespace pickled;
            std::string events, segments;
            for (int i = 0; i < size; ++i) {
              const std::string frame = dict(text("filename") + text("/home/a/train.py") + text("line") + whole(line(i)) + text("name") + text("f"));
              events += dict(text("action") + text(i % 3 == 2 ? "free_requested" : "alloc") + text("addr") + whole(address(i)) + text("size") +
                             whole(512) + text("time_us") + whole(i) + text("frames") + list(frame));
              segments += dict(text("address") + whole(address(i)) + text("total_size") + whole(512) + text("device") + whole(0));
            }
            const std::string bytes =
                "\x80\x02" + dict(text("segments") + list(segments) + text("device_traces") + list(list(events))) + ".";
            return [bytes] { parse_memory_snapshot(bytes, "a.pickle"); };
          }};
}

std::vector<Subject> snapshot_subjects() {
  return {snapshot("blocks", [](int i) { return i; }, [](int) { return 3; }),
          snapshot("lines", [](int i) { return i % 100; }, [](int i) { return i; })};
}

Subject perfetto(const char* name, int tracks, int names) {
  return {std::string("perfetto_") + name, [=](int size, const fs::path&) -> Work {
            Message trace;
            const auto of = [](int i, int most) { return static_cast<uint64_t>(i % most + 1); };
            for (int i = 0; i < std::min(size, tracks); ++i) trace.message(1, perfetto_track(of(i, tracks), 0, "lane " + number(i)));
            for (int i = 0; i < size; ++i) {
              Message begin = perfetto_event(10 * i, 1, of(i, tracks), of(i, names));
              if (i < names) begin.message(12, Message().message(2, Message().number(1, of(i, names)).text(2, "k" + number(i))));
              trace.message(1, begin).message(1, perfetto_event(10 * i + 5, 2, of(i, tracks), 0));
            }
            return [bytes = trace.bytes()] { parse_perfetto(bytes, "made"); };
          }};
}

std::vector<Subject> perfetto_subjects() {
  constexpr int kAll = 1 << 30;
  return {perfetto("slices", 1, 1), perfetto("tracks", kAll, 1), perfetto("names", 1, kAll)};
}

// --- runs

using Fill = std::function<void(RunData& run, int i)>;

std::shared_ptr<const RunData> run_of(const Fill& fill, int size) {
  auto run = std::make_shared<RunData>();
  for (int i = 0; i < size; ++i) fill(*run, i);
  return run;
}

void put(Trace& trace, TrackKind kind, const std::string& row, SpanKind what, const std::string& name, int i, OpTag op = kNoOp) {
  Span span;
  span.start = 10 * i, span.duration = 5, span.name = trace.intern(name), span.op = op;
  span.kind = static_cast<uint8_t>(what), span.correlation = static_cast<uint32_t>(i + 1), span.step = static_cast<uint32_t>(i / 10 + 1);
  trace.append(trace.track(kind, row, runs_on_gpu(kind) ? "GPU 0" : "CPU"), span);
}
void kernel(RunData& run, int i) {
  put(run.trace, TrackKind::Stream, "stream " + number(i % 500), SpanKind::Kernel, "kernel" + number(i), i);
}
// A kernel, its call and a range around it, with an op of its own as far as there are numbers for ops.
void kernel_of_op(RunData& run, int i) {
  constexpr int kOps = 60'000;
  if (i < kOps)
    run.trace.ops.push_back({"op" + number(i), "", "layer" + number(i % 999) + "." + number(i), i % 2 ? "forward" : "backward",
                             Meaning::Matrix, 0, 0, stack_from_text("net.py:" + number(i) + " in f < train.py:" + number(i % 99) + " in main")});
  const auto op = static_cast<OpTag>(1 + i % kOps);
  put(run.trace, TrackKind::Api, "CUDA API", SpanKind::Api, "cudaLaunchKernel", i);
  put(run.trace, TrackKind::Ranges, "thread 1 ranges", SpanKind::Phase, "range " + number(i), i, op);
  put(run.trace, TrackKind::Stream, "stream 7", SpanKind::Kernel, "kernel" + number(i), i, op);
}
void range_on_the_cpu(RunData& run, int i) {
  put(run.trace, TrackKind::Ranges, "thread 1 ranges", SpanKind::Phase, "range " + number(i), i);
}
void thread(RunData& run, int i) {
  put(run.trace, TrackKind::CpuThread, "thread " + number(i), SpanKind::Op, "op", i);
}
void stack(RunData& run, int i) {
  put(run.trace, TrackKind::Samples, "samples of MainThread", SpanKind::Other, "f" + number(i) + " (a.py:" + number(i) + ") < main (a.py:9)", i);
  if (i % 10 == 0) kernel(run, i);
}
// Samples that all go on until the end.
void long_stack(RunData& run, int i) {
  stack(run, i);
  Span span;
  span.start = 10 * i, span.duration = 10'000'000, span.name = run.trace.intern("main (a.py:9)");
  run.trace.append(run.trace.track(TrackKind::Samples, "samples of worker", "CPU"), span);
}
// Each launch below as many calls as are kept, in 100 different ways.
void deep_stack(RunData& run, int i) {
  kernel_of_op(run, i);
  if (i >= 100) return;
  CodeStack stack;
  for (int k = 0; k < static_cast<int>(kMostStackFrames); ++k) stack.frames.push_back({"lib.py", k / 10 * 10 + i % 10 + 1, "g" + number(k * i % 977)});
  run.trace.ops.back().stack = std::make_shared<CodeStack>(std::move(stack));
}
void memory_event(RunData& run, int i) {
  auto& sources = run.trace.memory_sources;
  if (sources.empty()) sources = {"cudaMalloc", "caching"};
  run.trace.append_memory({10 * i, static_cast<uint64_t>(i / 2), 512, static_cast<uint32_t>(i / 10 + 1), kNoOp,
                           i % 2 ? MemoryAction::Free : MemoryAction::Allocate, static_cast<uint8_t>(i / 2 % 2)});
}
// Blocks that stay, each of an op with a line of its own.
void block_of_op(RunData& run, int i) {
  kernel_of_op(run, i);
  run.trace.append_memory({10 * i, static_cast<uint64_t>(i), 512, static_cast<uint32_t>(i / 10 + 1),
                           static_cast<OpTag>(1 + i % 60'000), MemoryAction::Allocate, 0});
  if (run.trace.memory_sources.empty()) run.trace.memory_sources = {"caching"};
}
void step(RunData& run, int i) {
  put(run.trace, TrackKind::Steps, "steps", SpanKind::Step, "step", i);
  kernel(run, i);
}
void loss(RunData& run, int i) { run.metrics.push_back({i, 0.1 * i, 1.0 / (i + 1), 0.5}); }

Subject run_file(const char* name, const Fill& fill) {
  return {std::string("run_file_") + name, [fill](int size, const fs::path& folder) -> Work {
            const std::string path = file_in(folder, ".wsrun");
            export_run(*run_of(fill, size), path);
            return [path] { import_run(path); };
          }};
}

std::vector<Subject> run_file_subjects() {
  return {run_file("tracks", [](RunData& run, int i) { put(run.trace, TrackKind::Stream, "stream " + number(i), SpanKind::Kernel, "k", i); }),
          run_file("names", [](RunData& run, int i) { put(run.trace, TrackKind::Stream, "stream", SpanKind::Kernel, "k" + number(i), i); }),
          run_file("counters", [](RunData& run, int i) { run.trace.append_counter(run.trace.counter(number(i), ""), {i, 1}); }),
          run_file("points", [](RunData& run, int i) { run.trace.append_counter(run.trace.counter("c", ""), {i, 1}); }),
          run_file("memory", memory_event),
          run_file("losses", loss),
          run_file("evaluations", [](RunData& run, int i) { run.evaluations.push_back({i, 0.1 * i, 0.1 * i, 0.5, 0.5}); }),
          run_file("marks", [](RunData& run, int i) { run.marks.push_back({i, 0.1 * i, "lr " + number(i)}); }),
          run_file("step_windows", [](RunData& run, int i) { run.step_windows.push_back({i, 1, 10 * i, 10 * i + 9, {}, 0, 0}); })};
}

// What is asked of a run, and what is written of it.
Subject table(const std::string& name, const Fill& fill, const std::function<void(const RunData&)>& ask) {
  return {"table_" + name, [=](int size, const fs::path&) -> Work {
            return [run = run_of(fill, size), ask] { ask(*run); };
          }};
}

std::vector<Subject> table_subjects() {
  const auto stats = [](GroupBy by) { return [by](const RunData& run) { EXPECT_FALSE(to_text(run_stats(run, by)).empty()); }; };
  const auto host = [](bool gaps) {
    return [gaps](const RunData& run) { host_text(host_stacks(run.trace, {.gaps_only = gaps})); };
  };
  const auto launches = [](const RunData& run) { launch_text(launch_stacks(run.trace, TimeRange{-kAlways, kAlways})); };
  return {table("name", kernel, stats(GroupBy::Name)),
          table("op", kernel_of_op, stats(GroupBy::Op)),
          table("layer", kernel_of_op, stats(GroupBy::Layer)),
          table("phase", kernel_of_op, stats(GroupBy::Phase)),
          table("shape", kernel_of_op, stats(GroupBy::Shape)),
          table("line", kernel_of_op, stats(GroupBy::Line)),
          table("ranges_on_the_cpu", range_on_the_cpu, stats(GroupBy::Name)),
          table("allocations", memory_event, stats(GroupBy::Name)),
          table("steps", step, stats(GroupBy::Name)),
          table("json", kernel, [](const RunData& run) { to_json(run_stats(run)); }),
          table("module", kernel_of_op, [](const RunData& run) { to_text(module_tree(run.trace), CountedSteps{.steps = 10}); }),
          table("host", stack, host(false)),
          table("gaps", stack, host(true)),
          table("gaps_of_long_samples", long_stack, host(true)),
          table("stack", kernel_of_op, launches),
          table("deep_stack", deep_stack, launches),
          table("line_of_deep_stack", deep_stack, stats(GroupBy::Line)),
          table("peak", block_of_op, stats(GroupBy::Line))};
}

// What joins and compares the ranks of a program, and the multiprocessors of a kernel.
std::vector<Subject> rank_subjects() {
  const auto report = [](const char* name, const std::function<Trace(int size)>& trace_of) {
    return Subject{name, [=](int size, const fs::path&) -> Work {
                     return [trace = std::make_shared<Trace>(trace_of(size))] { to_text(rank_report(*trace)); };
                   }};
  };
  const auto made = [](int ranks, int steps) { return MadeRanks{.ranks = ranks, .steps = steps}; };
  return {report("rank_steps", [=](int size) { return made(4, size / 10).joined(); }),
          report("ranks", [=](int size) { return made(size / 10, 4).joined(); }),
          {"join_ranks",
           [=](int size, const fs::path&) -> Work {
             return [=] {
               std::vector<RunData> all;
               for (Trace& trace : made(size / 100, 40).apart()) {
                 RunData& run = all.emplace_back();
                 run.trace = std::move(trace);
                 keep_rank(run.summary, static_cast<int>(all.size()) - 1, size / 100);
               }
               join_ranks(std::move(all));
             };
           }},
          {"multiprocessors", [](int size, const fs::path&) -> Work {
             return [trace = std::make_shared<Trace>(MadeInside{.steps = size / 100}.trace())] {
               to_text(multiprocessor_report(*trace));
             };
           }}};
}

Subject written(const std::string& ending, const Fill& fill, const std::string& what = "") {
  std::string name = what + ending;
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return {"written" + name, [=](int size, const fs::path& folder) -> Work {
            return [run = run_of(fill, size), path = (folder / ("x" + ending)).string()] { export_run(*run, path); };
          }};
}

std::vector<Subject> written_subjects() {
  return {written(".json", kernel_of_op), written(".wsrun", kernel_of_op), written(".collapsed", stack),
          written(".speedscope.json", stack), written(".json", thread, "_threads")};
}

// Many rows, and much to drop in one of them.
Subject eviction() {
  return {"eviction", [](int size, const fs::path&) -> Work {
            return [rows = size / 4] {
              Trace trace;
              for (int i = 0; i < rows; ++i) {
                SpanBlock block;
                block.first = block.last = i, block.count = 1;
                trace.add_stub(trace.track(TrackKind::Stream, number(i), "GPU 0"), std::move(block));
              }
              const TrackId busy = trace.track(TrackKind::Stream, "busy", "GPU 0");
              for (int i = 0; i < 50 * rows; ++i) trace.append(busy, Span{.start = i});
              trace.evict(0);
            };
          }};
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> all{eviction()};
  for (const auto& some : {chrome_subjects(), scalar_subjects(), nsys_subjects(), snapshot_subjects(), perfetto_subjects(),
                           run_file_subjects(), table_subjects(), rank_subjects(), written_subjects()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

class Scaling : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / ("warpsight-scaling-" + std::to_string(getpid()));
};

double seconds_of(const Work& work, int times = 1) {
  const double begin = test::cpu_seconds();
  for (int i = 0; i < times; ++i) work();
  return test::cpu_seconds() - begin;
}

constexpr int kTimesLarger = 4;

struct Times {
  double small = 1e9, large = 1e9;  // seconds, the least of some tries
  double grows() const { return test::growth(small, large, kTimesLarger); }
  bool linear() const { return grows() <= 1.5; }  // 1.4 where the larger one leaves the caches, with neighbours
  bool plainly_linear() const { return grows() <= 1.1; }
};

Times measured(const Subject& subject, int size, int times, int most_tries, const fs::path& folder) {
  constexpr int kLeastTries = 2;  // unless the first is plain: a disturbed one may look linear
  const Work small = subject.prepare(size, folder), large = subject.prepare(kTimesLarger * size, folder);
  Times least;
  for (int tries = 0; tries < kLeastTries || (tries < most_tries && !least.linear()); ++tries) {
    least.small = std::min(least.small, seconds_of(small, times));
    least.large = std::min(least.large, seconds_of(large, times));
    if (least.plainly_linear()) break;
  }
  return least;
}

TEST_P(Scaling, FourTimesAsMuchTakesFourTimesAsLong) {
  constexpr double kEnough = 0.03;  // seconds; shorter times are noise
  constexpr int kSmallest = 1'000, kLargest = 8'000;
  int size = kSmallest;
  double took = seconds_of(GetParam().prepare(size, folder_));
  while (took < kEnough && size < kLargest) took = seconds_of(GetParam().prepare(size *= 2, folder_));
  const int times = std::max(1, static_cast<int>(kEnough / took));
  // One of two sizes may just fit into a cache. Work that grows with the square does so at every size.
  Times last;
  for (const int larger : {1, 2, 4, 4})  // the largest again, for a neighbour that takes the caches
    if (last = measured(GetParam(), larger * size, times, larger < 4 ? 2 : 5, folder_); last.linear()) return;
  ADD_FAILURE() << 4 * size << " take " << last.small << " s, " << kTimesLarger << " times as many " << last.large << " s";
}

INSTANTIATE_TEST_SUITE_P(All, Scaling, testing::ValuesIn(all_subjects()),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace ws::prof
