#include "engine/cuda/runtime/faults.h"

#include <mutex>

namespace ws::cuda::faults {
namespace {

std::atomic<int64_t> g_calls{0}, g_fail_at{0};
std::atomic<cudaError_t> g_error{cudaErrorUnknown};
std::mutex g_mutex;
std::string g_last_hit;

}  // namespace

void fail_at(int64_t n, cudaError_t error) {
  std::lock_guard lock(g_mutex);
  g_error = error;
  g_calls = 0;
  g_last_hit.clear();
  g_fail_at = n;
  detail::counting = true;
}

int64_t calls() { return g_calls; }

std::string last_hit() {
  std::lock_guard lock(g_mutex);
  return g_last_hit;
}

bool detail::count(const char* call) {
  const int64_t n = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (n != g_fail_at.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(g_mutex);
  g_last_hit = call;
  return true;
}

cudaError_t error() { return g_error; }

}  // namespace ws::cuda::faults
