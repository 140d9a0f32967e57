// Work on many independent items with one thread per core.
#pragma once
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace ws {

// Calls body(first, last) on parts of 0..count. A part has `least` items or more.
template <class Body>
void in_parallel(int64_t count, int64_t least, const Body& body) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t pieces = std::clamp<int64_t>(count / least, 1, cores);
  std::vector<std::jthread> helpers;
  for (int64_t p = 1; p < pieces; ++p)
    helpers.emplace_back([&body, p, count, pieces] { body(count * p / pieces, count * (p + 1) / pieces); });
  body(0, count / pieces);
}

}  // namespace ws
