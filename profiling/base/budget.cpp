#include "profiling/base/budget.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>

#include "profiling/base/failure.h"

namespace ws {
namespace {

std::atomic<int64_t> chosen_limit{0};

// A container may have less memory than its machine. Negative: no limit.
int64_t free_in_container() {
  int64_t most = -1, used = 0;
  if (!(std::ifstream("/sys/fs/cgroup/memory.max") >> most)) return -1;  // the file may also contain "max"
  std::ifstream("/sys/fs/cgroup/memory.current") >> used;
  return std::max<int64_t>(0, most - used);
}

}  // namespace

std::optional<int64_t> free_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:")) return std::stoll(line.substr(13)) * 1024;
  return std::nullopt;
}

int64_t memory_limit() {
  if (const int64_t chosen = chosen_limit; chosen > 0) return chosen;
  int64_t free = free_memory().value_or(0);
  if (const int64_t here = free_in_container(); here >= 0) free = std::min(free, here);
  return std::max(limits::kLeastMemory, static_cast<int64_t>(limits::kShareOfFree * static_cast<double>(free)));
}

void set_memory_limit(int64_t bytes) { chosen_limit = bytes; }

std::string Budget::spent_text() const {
  char size[32];
  std::snprintf(size, sizeof size, "%.1f GiB", static_cast<double>(bytes_) / (1 << 30));
  return std::string("It takes more than ") + size + " of memory, the limit here; --limit allows more";
}

void Budget::refuse() const { throw Failure(spent_text()); }

}  // namespace ws
