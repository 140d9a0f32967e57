// One event of a Chrome trace, as read from the file.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "profiling/trace/track_names.h"

namespace ws::prof {

// The content of one entry of traceEvents. Times are in ns.
struct ChromeEvent {
  std::string phase, category, name, process, thread;
  int64_t time = 0, duration = 0;
  bool has_duration = false;
  std::string stack;  // its innermost frame
  int64_t step = -1;  // step of a scalar; only in our files
  double epoch = 0;
  double wall_s = std::numeric_limits<double>::quiet_NaN();  // training time until then; only in our files
  std::map<std::string, std::string> texts;                  // args
  std::map<std::string, double> numbers;
  std::map<std::string, int64_t> integers;
  std::map<std::string, std::array<int64_t, 3>> triples;

  // Approximate memory use. A map entry takes about twice the size of its content.
  size_t bytes() const {
    size_t sum = sizeof *this + phase.size() + category.size() + name.size() + process.size() + thread.size() + stack.size();
    for (const auto& [key, value] : texts) sum += 160 + key.size() + value.size();
    return sum + 100 * (numbers.size() + integers.size() + triples.size());
  }
  // No profiler writes so many keys.
  bool full() const { return texts.size() + numbers.size() + triples.size() >= 256; }

  int64_t integer(const char* key, int64_t otherwise = 0) const {
    if (const auto at = integers.find(key); at != integers.end()) return at->second;
    if (const auto at = texts.find(key); at != texts.end()) return number_in(at->second, otherwise);
    return otherwise;
  }
  std::string text(const char* key) const {
    const auto at = texts.find(key);
    return at == texts.end() ? std::string() : at->second;
  }
};

}  // namespace ws::prof
