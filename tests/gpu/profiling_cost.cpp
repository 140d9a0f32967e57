// What tracing costs: the same loops untraced, under bare CUPTI and under the collector, each in a process of its own.
//   profiling_cost one HOW        one process: prints a JSON object of µs by loop
//   profiling_cost all OUT.json   all of them, several times in turn; medians and their spread
//   profiling_cost long N         N million kernels of graphs, read as a live view reads them
#include <cuda_runtime_api.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "profiling/base/clock.h"
#include "profiling/collectors/collector.h"
#include "profiling/cupti/gpu_source.h"
#include "tests/gpu/bare_cupti.h"
#include "tests/gpu/profiling_kernels.h"

using nlohmann::json;
using namespace ws::prof;
using namespace ws::prof::testing;

namespace {

const std::vector<std::string> kHows{"untraced",  "bare-graph", "graph", "bare-records",   "bare-joined",  "kernels",
                                     "bare-full", "full",       "steps", "untraced-again", "after-kernels"};

OpTag test_ops() {
  static const OpTag first = register_ops(std::vector<OpInfo>(256, {"op", "", "fc1", "forward", Meaning::Pointwise}));
  return first;
}

double seconds(const std::function<void()>& work) {
  const int64_t begin = steady_ns();
  work();
  return static_cast<double>(steady_ns() - begin) * 1e-9;
}

double eager_us(cudaStream_t stream, int steps) {
  const OpTag first = test_ops();
  const double s = seconds([&] {
    for (int step = 0; step < steps; ++step) {
      const StepScope scope(step);
      for (int i = 0; i < 20; ++i) {
        const OpScope op(static_cast<OpTag>(first + i));
        launch_empty(stream);
      }
    }
    cudaStreamSynchronize(stream);
  });
  return s * 1e6 / (steps * 20.0);
}

cudaGraphExec_t capture(cudaStream_t stream, int nodes, uint64_t ns) {
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < nodes; ++i) {
    const OpScope scope(static_cast<OpTag>(test_ops() + i));
    if (ns)
      launch_spin(stream, ns);
    else
      launch_empty(stream);
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  return exec;
}

void launch(cudaGraphExec_t exec, cudaStream_t stream, int64_t step) {
  if (auto* l = listener()) l->steps_launched(step, 1);
  const StepScope scope(step);
  cudaGraphLaunch(exec, stream);
}

double graph_us(cudaStream_t stream, int nodes, uint64_t ns, int launches) {
  cudaGraphExec_t exec = capture(stream, nodes, ns);
  for (int i = 0; i < 10; ++i) launch(exec, stream, i);
  cudaStreamSynchronize(stream);
  const double s = seconds([&] {
    for (int i = 0; i < launches; ++i) launch(exec, stream, i);
    cudaStreamSynchronize(stream);
  });
  cudaGraphExecDestroy(exec);
  return s * 1e6 / (static_cast<double>(launches) * nodes);
}

double allocate_us(cudaStream_t stream, int times) {
  const OpTag first = test_ops();
  const double s = seconds([&] {
    for (int i = 0; i < times; ++i) {
      const OpScope scope(first);
      void* p = nullptr;
      cudaMalloc(&p, 1 << 20);
      launch_empty(stream);
      cudaFree(p);
    }
  });
  return s * 1e6 / times;
}

json measure() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  eager_us(stream, 500);
  json result;
  result["eager empty kernel"] = eager_us(stream, 10'000);
  result["graph of 200 kernels of 2 us"] = graph_us(stream, 200, 1'500, 1'000);
  result["graph of 200 empty kernels"] = graph_us(stream, 200, 0, 2'000);
  result["graph of 16 kernels of 3 us"] = graph_us(stream, 16, 2'400, 8'000);
  result["cudaMalloc, kernel, cudaFree"] = allocate_us(stream, 10'000);
  cudaStreamDestroy(stream);
  return result;
}

// Takes batches away as a live view does.
class Reader {
 public:
  explicit Reader(Collector& collector)
      : thread_([this, &collector] {
          while (!stop_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(33));
            count(collector);
          }
        }) {}
  void finish(Collector& collector) {
    stop_ = true;
    thread_.join();
    collector.stop();
    count(collector);
  }
  uint64_t kernels = 0;

 private:
  void count(Collector& collector) {
    for (TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) {
      for (const BatchTrack& track : batch.tracks) kernels += track.kind == TrackKind::Stream ? track.spans.size() : 0;
    }
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

json one(const std::string& how) {
  if (how == "untraced") return measure();
  if (how == "untraced-again") {  // the second time in a process differs by itself: what "after" is to be compared with
    measure();
    return measure();
  }
  if (how.starts_with("bare-")) {
    bare_start(bare_kinds(how));
    json result = measure();
    bare_stop();
    return result;
  }
  Collector collector;
  const bool after = how == "after-kernels";
  collector.start({.gpu = cupti_gpu_source(), .level = trace_level(after ? "kernels" : how)});
  Reader reader(collector);
  json result = measure();
  const CollectorStatus status = collector.status();
  reader.finish(collector);
  if (after) result = measure();
  result["lost"] = status.losses.dropped_records + status.losses.invalid_records + status.losses.unjoined_kernels;
  return result;
}

json run_process(const std::string& program, const std::string& how) {
  FILE* pipe = popen((program + " one " + how).c_str(), "r");
  std::string text;
  for (char buffer[4096]; size_t n = fread(buffer, 1, sizeof buffer, pipe);) text.append(buffer, n);
  pclose(pipe);
  return json::parse(text);
}

json machine() {
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, 0);
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return {{"gpu", properties.name}, {"cuda_driver", driver}, {"cuda_runtime", runtime}};
}

int all(const std::string& program, const std::string& path, int rounds) {
  std::map<std::string, std::map<std::string, std::vector<double>>> values;
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& how : kHows) {
      const json measured = run_process(program, how);
      for (const auto& [loop, us] : measured.items()) values[loop][how].push_back(us);
    }
  }
  json result{{"machine", machine()}, {"unit", "us per kernel (or per allocation)"}, {"rounds", rounds}};
  for (auto& [loop, by_how] : values) {
    for (auto& [how, list] : by_how) {
      std::ranges::sort(list);
      result["loops"][loop][how] = {{"median", list[list.size() / 2]}, {"low", list.front()}, {"high", list.back()}};
    }
  }
  std::ofstream(path) << result.dump(1) << "\n";
  std::cout << result.dump(1) << "\n";
  return 0;
}

int long_run(int millions) {
  cudaStream_t stream = nullptr;
  Collector collector;
  const auto start = collector.start({.gpu = cupti_gpu_source(), .level = TraceLevel::Kernels});
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Reader reader(collector);
  cudaGraphExec_t exec = capture(stream, 200, 0);
  const int64_t launches = int64_t{millions} * 1'000'000 / 200;
  std::vector<double> fifths;
  for (int part = 0; part < 5; ++part) {
    fifths.push_back(seconds([&] {
      for (int64_t i = part * launches / 5; i < (part + 1) * launches / 5; ++i) launch(exec, stream, i);
      cudaStreamSynchronize(stream);
    }));
  }
  reader.finish(collector);
  const CollectorStatus status = collector.status();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  json result{{"sentence", start.sentence},
              {"launched", launches * 200},
              {"kernels", reader.kernels},
              {"dropped", status.losses.dropped_records},
              {"missing", launches * 200 - static_cast<int64_t>(reader.kernels + status.losses.dropped_records)},
              {"invalid", status.losses.invalid_records},
              {"unjoined", status.losses.unjoined_kernels},
              {"seconds_by_fifth", fifths},
              {"buffers_peak_mib", status.buffers_peak},
              {"peak_memory_mib", usage.ru_maxrss / 1024}};
  std::cout << result.dump() << "\n";
  return reader.kernels == static_cast<uint64_t>(launches * 200) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "", what = argc > 2 ? argv[2] : "";
  if (verb == "one") {
    std::cout << one(what).dump() << "\n";
    return 0;
  }
  if (verb == "all") return all(argv[0], what, argc > 3 ? std::atoi(argv[3]) : 3);
  if (verb == "long") return long_run(std::atoi(what.c_str()));
  std::cerr << "profiling_cost one HOW | all OUT.json [ROUNDS] | long MILLIONS\n";
  return 2;
}
