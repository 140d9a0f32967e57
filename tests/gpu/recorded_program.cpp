// A CUDA program that knows nothing of Warpscope, to be recorded: trains nothing, in steps.
//   recorded_program plain|fork|exit|none
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

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

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "plain";
  if (mode == "none") return 5;
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 9;
  if (mode == "fork") {
    const pid_t child = fork();
    if (child == 0) std::exit(0);  // runs the exit handlers of a process that has none of the threads
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) return 8;
  }
  train(stream);
  if (mode == "exit") _exit(3);  // without any clean-up
  return 0;
}
