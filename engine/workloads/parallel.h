// Runs a loop on all cores.
#pragma once
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace ws::lab {

// Splits [0, n) over the cores. Work with less than two grains stays on this thread, because starting threads costs
// more.
template <class Work>
void in_parallel(int64_t n, int64_t grain, const Work& work) {
  const auto threads = std::min<int64_t>(std::max(1u, std::thread::hardware_concurrency()), n / grain);
  if (threads <= 1) return work(0, n);
  std::vector<std::jthread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back(
        [&work, n, t, threads] { work(n / threads * t, t + 1 == threads ? n : n / threads * (t + 1)); });
  work(0, n / threads);
}

}  // namespace ws::lab
