// A stretch of time that is traced, again and again: for programs whose steps are not known while they run.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ws::prof {

struct ClockWindow {
  int64_t open_ns = 0, every_ns = 0;  // every_ns 0: always open

  bool always() const { return every_ns == 0; }
  bool open(int64_t since_begin) const { return always() || since_begin % every_ns < open_ns; }
  // Until it opens or closes; it has to be one that does.
  int64_t until_change(int64_t since_begin) const {
    const int64_t at = since_begin % every_ns;
    return (at < open_ns ? open_ns : every_ns) - at;
  }
};

// "200ms/5s"; units are ms, s and min. Throws Failure.
ClockWindow clock_window(std::string_view text);
std::string to_text(const ClockWindow& window);  // "200 ms of every 5 s"

}  // namespace ws::prof
