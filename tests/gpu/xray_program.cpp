// Launches the planted kernels for some seconds: xray_program SECONDS. For `warpsight record --xray`.
#include <chrono>
#include <cstdlib>

#include "tests/gpu/xray_kernels.h"

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 1;
  ws::xray::prepare();
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    for (const ws::xray::Planted& one : ws::xray::planted()) one.launch(nullptr, 64);
    cudaDeviceSynchronize();
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
