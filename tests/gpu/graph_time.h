// Times launches as a training runs them: inside of one CUDA graph.
#pragma once
#include "tests/gpu/kernel_support.h"

namespace ws::cuda::test {

using TimingEvent = Handle<cudaEvent_t, cudaEventDestroy>;

// Microseconds of one of `count` calls inside one graph.
inline double graph_time(int count, bool overlap, const std::function<void(Queue, int)>& call) {
  const Stream stream = make_stream();
  Graph graph;
  GraphExec exec;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (int i = 0; i < count; ++i) call(Queue(stream, overlap), i);
  CUDA_CHECK(cudaStreamEndCapture(stream, graph.out()));
  CUDA_CHECK(cudaGraphInstantiate(exec.out(), graph, 0));
  TimingEvent begin, end;
  CUDA_CHECK(cudaEventCreate(begin.out()));
  CUDA_CHECK(cudaEventCreate(end.out()));
  for (int i = 0; i < 3; ++i) CUDA_CHECK(cudaGraphLaunch(exec, stream));
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    CUDA_CHECK(cudaEventRecord(begin, stream));
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaEventRecord(end, stream));
    CUDA_CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    times.push_back(1000.0 * ms / count);
  }
  std::sort(times.begin(), times.end());
  return times[3];
}

}  // namespace ws::cuda::test
