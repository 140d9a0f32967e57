// A CUDA program that knows nothing of Warpsight, to be recorded: trains nothing, in steps.
//   recorded_program plain|fork|exit|none|nvtx|ahead|counted|captured|second
//   recorded_program long|graphs [MS]      for 1500 ms
//   recorded_program launches turns        as many launches as each line says that it reads
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "tests/gpu/profiling_kernels.h"

namespace t = ws::prof::testing;

namespace {

// A step: an allocation, seven launches, a free, a wait. 100 steps.
void train(cudaStream_t stream) {
  for (int step = 0; step < 100; ++step) {
    float* p = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&p), 4096);
    for (int layer = 0; layer < 3; ++layer) {
      t::launch_fill(stream, p, 1024);
      t::launch_empty(stream);
    }
    t::launch_other(stream);
    cudaStreamSynchronize(stream);
    cudaFree(p);
  }
}

// Two of five times, it asks a profiler to record. In each of these a thread of its own launches, too.
void train_in_ranges(cudaStream_t stream) {
  for (int time = 0; time < 5; ++time) {
    if (time % 2 == 1) cudaProfilerStart();
    train(stream);
    std::thread([] {
      cudaStream_t own = nullptr;
      cudaStreamCreate(&own);
      t::launch_other(own);
      cudaStreamSynchronize(own);
      cudaStreamDestroy(own);
    }).join();
    if (time % 2 == 1) cudaProfilerStop();
  }
}

// Steps of kernels that take 40 µs each: launched one by one, or as a graph that is made while the program runs. The
// GPU lags behind, as it does in real programs. Returns how many steps there were.
int work(cudaStream_t stream, bool graphs, std::chrono::milliseconds time) {
  constexpr int kKernels = 5;
  constexpr uint64_t kNs = 40'000;
  const auto step = [stream] {
    for (int k = 0; k + 1 < kKernels; ++k) t::launch_spin(stream, kNs);
    t::launch_other(stream);
  };
  cudaGraphExec_t exec = nullptr;
  if (graphs) {
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    step();
    cudaStreamEndCapture(stream, &graph);
    if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return 0;
    cudaGraphDestroy(graph);
  }
  int steps = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < time) {
    void* p = nullptr;
    if (++steps % 100 == 0 && cudaMalloc(&p, 4096) == cudaSuccess) cudaFree(p);
    exec ? void(cudaGraphLaunch(exec, stream)) : step();
    if (steps % 20 == 0) cudaStreamSynchronize(stream);
  }
  cudaStreamSynchronize(stream);
  if (exec) cudaGraphExecDestroy(exec);
  return steps;
}

// Launches as often as each line says, and says what one took.
void take_turns(cudaStream_t stream) {
  using us = std::chrono::duration<double, std::micro>;
  long all = 0;
  for (int i = 0; i < 1000; ++i) t::launch_empty(stream);  // the first ones take longer
  cudaStreamSynchronize(stream);
  for (std::string line; std::getline(std::cin, line);) {
    const long launches = std::atol(line.c_str());
    if (launches <= 0) break;
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < launches; ++i) t::launch_empty(stream);
    cudaStreamSynchronize(stream);
    std::cout << R"({"us": )" << us(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(launches) << "}" << std::endl;
    all += launches;
  }
  std::cout << R"({"steps": )" << all << R"(, "loss": 0})" << std::endl;
}

// 60 steps that name themselves, with two parts each; in the first part ranges of two layers.
void train_with_ranges(cudaStream_t stream) {
  for (int step = 0; step < 60; ++step) {
    nvtxRangePushA(("training step " + std::to_string(step)).c_str());
    nvtxRangePushA("forward");
    for (const char* layer : {"first layer", "second layer"}) {
      nvtxRangePushA(layer);
      t::launch_empty(stream);
      nvtxRangePop();
    }
    nvtxRangePop();
    nvtxRangePushA("backward");
    t::launch_other(stream);
    cudaStreamSynchronize(stream);
    nvtxRangePop();
    nvtxRangePop();
  }
}

// 60 steps that name themselves, each with other kernels than the one before, and all launched before the first is
// over.
void train_ahead(cudaStream_t stream) {
  for (int step = 0; step < 60; ++step) {
    nvtxRangePushA(("training step " + std::to_string(step)).c_str());
    t::launch_spin(stream, 200'000);
    for (int i = 0; i <= step % 3; ++i) t::launch_other(stream);
    nvtxRangePop();
  }
  t::launch_empty(stream);  // of no step
  cudaStreamSynchronize(stream);
}

// True if this process has begun to use the first device.
bool first_device_is_used() {
  using Ask = int (*)(int device, unsigned* flags, int* active);
  void* ask = nullptr;
  cudaDriverEntryPointQueryResult found{};
  cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &ask, 7000, cudaEnableDefault, &found);
  unsigned flags = 0;
  int active = 0;
  return !ask || reinterpret_cast<Ask>(ask)(0, &flags, &active) != 0 || active != 0;
}

// Nothing of it is for the first device, whoever watches.
bool use_second_device() {
  cudaStream_t stream = nullptr;
  void* memory = nullptr;
  if (cudaSetDevice(1) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess) return false;
  if (cudaMallocAsync(&memory, 1 << 20, stream) != cudaSuccess) return false;
  for (int i = 0; i < 8; ++i) {
    t::launch_spin(stream, 100'000'000);
    cudaStreamSynchronize(stream);
  }
  cudaFreeAsync(memory, stream);
  return cudaStreamSynchronize(stream) == cudaSuccess && !first_device_is_used();
}

// A graph whose nodes are asked for by kind, launched so many times. Says what the GPU had to do by that.
bool count_graph(cudaStream_t stream) {
  constexpr int kLaunches = 250;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  float* data = nullptr;
  if (cudaMalloc(reinterpret_cast<void**>(&data), 4096) != cudaSuccess) return false;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMemsetAsync(data, 0, 4096, stream);
  for (int layer = 0; layer < 3; ++layer) {
    t::launch_fill(stream, data, 1024);
    t::launch_empty(stream);
    cudaMemcpyAsync(data + 512, data, 1024, cudaMemcpyDeviceToDevice, stream);
  }
  t::launch_other(stream);
  cudaStreamEndCapture(stream, &graph);
  std::array<cudaGraphNode_t, 64> nodes{};
  size_t count = nodes.size();
  if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return false;
  int kernels = 0, copies = 0, memsets = 0;
  for (size_t i = 0; i < count; ++i) {
    cudaGraphNodeType type{};
    cudaGraphNodeGetType(nodes[i], &type);
    kernels += type == cudaGraphNodeTypeKernel, copies += type == cudaGraphNodeTypeMemcpy;
    memsets += type == cudaGraphNodeTypeMemset;
  }
  if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return false;
  for (int i = 0; i < kLaunches; ++i) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  std::printf("%d launches of %d kernels, %d copies, %d memsets\n", kLaunches, kernels, copies, memsets);
  if (const char* file = std::getenv("COUNTED_FILE"))
    std::ofstream(file) << kLaunches << ' ' << kernels << ' ' << copies << ' ' << memsets << '\n';
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  return cudaFree(data) == cudaSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "plain";
  if (mode == "none") return 5;
  if (mode == "second") return use_second_device() ? 0 : 4;
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 9;
  if (mode == "fork") {
    const pid_t child = fork();
    if (child == 0) std::exit(0);  // runs the exit handlers of a process that has none of the threads
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) return 8;
  }
  if (mode == "long" || mode == "graphs") {
    const int steps = work(stream, mode == "graphs", std::chrono::milliseconds(argc > 2 ? std::atoi(argv[2]) : 1500));
    std::printf("%d steps\n", steps);
    return cudaGetLastError() == cudaSuccess && steps > 0 ? 0 : 7;
  }
  if (mode == "launches") {
    take_turns(stream);
    return 0;
  }
  if (mode == "counted") return count_graph(stream) ? 0 : 6;
  if (mode == "captured")
    train_in_ranges(stream);
  else
    mode == "nvtx" ? train_with_ranges(stream) : mode == "ahead" ? train_ahead(stream) : train(stream);
  if (mode == "exit") _exit(3);  // without any clean-up
  return 0;
}
