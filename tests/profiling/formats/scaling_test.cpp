// Twice the input takes at most two and a half times the work: nothing that a file can make long is searched from the
// front. Processor time, the least of some tries: other programs may run beside.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>

#include "profiling/analysis/trace_stats.h"
#include "profiling/formats/chrome_trace.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/nsys_sqlite.h"
#include "profiling/formats/scalars.h"
#include "profiling/run_file/run_file.h"
#include "profiling/run_file/sqlite.h"

namespace ws::prof {
namespace {

namespace fs = std::filesystem;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What is handed to the clock is ready made.
using Ready = std::function<std::function<void()>(int size)>;

// Four times as much takes four times as long, or somewhat more where it leaves a cache of the processor, which other
// programs use as well. Work that grows with the square takes sixteen times as long.
void expect_linear(const char* what, const Ready& ready, int size = 4'000) {
  constexpr double kMost = 8;
  constexpr int kTries = 6;
  const std::function<void()> few = ready(size), many = ready(4 * size);
  double less = 1e9, more = 1e9;
  for (int i = 0; i < kTries && (i == 0 || more > kMost * less); ++i) {
    const double begin = cpu_seconds();
    few();
    const double middle = cpu_seconds();
    many();
    less = std::min(less, middle - begin);
    more = std::min(more, cpu_seconds() - middle);
  }
  EXPECT_LE(more, kMost * less) << what << ": " << size << " take " << less << " s, four times as many " << more << " s";
}

class Scaling : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  const fs::path folder_ = fs::temp_directory_path() / ("warpscope-scaling-" + std::to_string(getpid()));
};

using Line = std::function<std::string(int i)>;

Ready chrome(const Line& line) {
  return [line](int size) -> std::function<void()> {
    std::string text = "{\"traceEvents\": [";
    for (int i = 0; i < size; ++i) text += (i ? ",{" : "{") + line(i) + "}";
    text += "]}";
    return [text = std::move(text)] { parse_chrome(text.data(), text.data() + text.size()); };
  };
}

std::string span(int i, const std::string& more) {
  return "\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 1, \"ts\": " + std::to_string(10 * i) + ", \"dur\": 5" + more;
}

TEST_F(Scaling, ChromeTraces) {
  const auto number = [](int i) { return std::to_string(i); };
  expect_linear("threads", chrome([&](int i) { return span(i, ", \"tid\": " + number(i)); }));
  expect_linear("named threads", chrome([&](int i) {
                  return "\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": " + number(i) +
                         ", \"args\": {\"name\": \"t" + number(i) + "\"}";
                }));
  expect_linear("streams", chrome([&](int i) {
                  return "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": " + number(i) +
                         ", \"ts\": 1, \"dur\": 1, \"args\": {\"stream\": " + number(i) + "}";
                }));
  expect_linear("names", chrome([&](int i) {
                  return "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k" + number(i) +
                         "\", \"pid\": 0, \"tid\": 7, \"ts\": " + number(i) + ", \"dur\": 1";
                }));
  expect_linear("counters", chrome([&](int i) {
                  return "\"ph\": \"C\", \"name\": \"c" + number(i) + "\", \"pid\": 1, \"ts\": 1, \"args\": {\"value\": 1}";
                }));
  expect_linear("counters backwards", chrome([&](int i) {
                  return "\"ph\": \"C\", \"name\": \"c\", \"pid\": 1, \"ts\": " + number(100'000'000 - i) +
                         ", \"args\": {\"value\": 1}";
                }), 10'000);
  expect_linear("spans backwards", chrome([&](int i) { return span(100'000'000 - i, ", \"tid\": 1"); }));
  expect_linear("spans in spans", chrome([&](int i) {
                  return "\"ph\": \"B\", \"name\": \"b\", \"pid\": 1, \"tid\": 1, \"ts\": " + number(i);
                }));
  expect_linear("memory", chrome([&](int i) {
                  return "\"ph\": \"i\", \"name\": \"[memory]\", \"ts\": " + number(i) +
                         ", \"args\": {\"Bytes\": 8, \"Addr\": " + number(i) + ", \"source\": \"s" + number(i % 300) + "\"}";
                }));
}

Ready csv(const Line& line) {
  return [line](int size) -> std::function<void()> {
    std::string text = "Wall time,Step,Value,Tag\n";
    for (int i = 0; i < size; ++i) text += line(i) + "\n";
    return [text = std::move(text)] { parse_scalars_csv(text); };
  };
}

TEST_F(Scaling, ScalarTables) {
  expect_linear("tags", csv([](int i) { return "1,1,1,tag" + std::to_string(i); }));
  expect_linear("steps backwards", csv([](int i) {
                  return std::to_string(100'000 - i) + "," + std::to_string(100'000 - i) + ",1,other";
                }), 10'000);
  expect_linear("losses", csv([](int i) { return std::to_string(i) + "," + std::to_string(i % 10) + ",1,loss"; }));
}

TEST_F(Scaling, NsightExports) {
  int made = 0;
  const auto streams = [&](int size) -> std::function<void()> {
    const std::string path = at(std::to_string(made++) + ".sqlite");
    Database db(path, Database::Mode::Create);
    db.exec("CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES(1, 'k'); CREATE TABLE "
            "CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, correlationId INT, demangledName INT)");
    db.exec(("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < " +
             std::to_string(size) + ") SELECT 10 * i, 10 * i + 5, 0, i, i, 1 FROM c")
                .c_str());
    return [path] { import_run(path); };
  };
  expect_linear("streams", streams);
}

TEST_F(Scaling, RunFiles) {
  int made = 0;
  const auto file = [&](const std::function<void(Trace&, int)>& fill) {
    return [this, &made, fill](int size) -> std::function<void()> {
      Trace trace;
      for (int i = 0; i < size; ++i) fill(trace, i);
      const std::string path = at(std::to_string(made++) + ".wsrun");
      RunFileWriter writer(path, {});
      writer.add(trace);
      writer.finish();
      return [path] { import_run(path); };
    };
  };
  const auto put = [](Trace& trace, TrackId track, const std::string& name, int i) {
    Span span;
    span.start = 10 * i, span.duration = 5, span.name = trace.intern(name);
    trace.append(track, span);
  };
  expect_linear("tracks", file([&](Trace& t, int i) {
                  put(t, t.track(TrackKind::Stream, "stream " + std::to_string(i), "GPU 0"), "k", i);
                }), 2'500);
  expect_linear("names", file([&](Trace& t, int i) {
                  put(t, t.track(TrackKind::Stream, "stream", "GPU 0"), "k" + std::to_string(i), i);
                }));
  expect_linear("counters", file([](Trace& t, int i) { t.append_counter(t.counter(std::to_string(i), ""), {i, 1}); }), 2'000);
}

// What is asked of a trace, and what is written of it.
TEST_F(Scaling, Tables) {
  const auto run_of = [](int size) {
    auto run = std::make_shared<RunData>();
    for (int i = 0; i < size; ++i) {
      Span span;
      span.start = 10 * i, span.duration = 5, span.name = run->trace.intern("kernel" + std::to_string(i));
      span.kind = static_cast<uint8_t>(SpanKind::Kernel);
      run->trace.append(run->trace.track(TrackKind::Stream, "stream " + std::to_string(i % 500), "GPU 0"), span);
    }
    return run;
  };
  expect_linear("stats", [&](int size) -> std::function<void()> {
    return [run = run_of(size)] { to_text(run_stats(*run, GroupBy::Name)); };
  });
  for (const char* name : {"x.json", "x.sqlite", "x.wsrun", "x_cuda_gpu_kern_sum.csv", "x_cuda_gpu_trace.csv"})
    expect_linear(name, [&](int size) -> std::function<void()> {
      return [run = run_of(size), path = at(name)] { export_run(*run, path); };
    }, 8'000);
}

// Many rows, and much to drop in one of them.
TEST_F(Scaling, Eviction) {
  expect_linear("tracks", [](int size) -> std::function<void()> {
    return [size] {
      Trace trace;
      for (int i = 0; i < size; ++i) {
        SpanBlock block;
        block.first = block.last = i, block.count = 1;
        trace.add_stub(trace.track(TrackKind::Stream, std::to_string(i), "GPU 0"), std::move(block));
      }
      const TrackId busy = trace.track(TrackKind::Stream, "busy", "GPU 0");
      for (int i = 0; i < 50 * size; ++i) trace.append(busy, Span{.start = i});
      trace.evict(0);
    };
  }, 2'000);
}

}  // namespace
}  // namespace ws::prof
