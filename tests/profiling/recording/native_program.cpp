// A program without Python that is busy in two threads. It starts its recording as the CUDA driver would.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace busy {

using Clock = std::chrono::steady_clock;

__attribute__((noinline)) uint64_t count(uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    sum += i * (sum ^ n);
    __asm__ volatile("" : "+r"(sum));
  }
  return sum;
}

__attribute__((noinline)) uint64_t prepare(Clock::time_point end) {
  uint64_t sum = 0;
  while (Clock::now() < end) sum += count(100'000);
  return sum + 1;
}

__attribute__((noinline)) uint64_t help(Clock::time_point end) { return prepare(end) + 1; }

}  // namespace busy

int main() {
  void* library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  auto* initialize = library ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr;
  if (!initialize || initialize() != 1) return 3;
  const auto end = busy::Clock::now() + std::chrono::milliseconds(700);
  std::thread other([end] { busy::help(end); });
  const bool over = busy::prepare(end) > 0;
  other.join();
  return over ? 5 : 4;
}
