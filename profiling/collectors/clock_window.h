// A tracing window that opens periodically by the clock, for programs whose steps are not known while they run.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace ws::prof {

struct ClockWindow {
  int64_t open_ns = 0, every_ns = 0;  // every_ns 0: always open

  bool always() const { return every_ns == 0; }
  bool open(int64_t since_begin) const { return always() || since_begin % every_ns < open_ns; }
  // Time until the window opens or closes. Only for a window that is not always open.
  int64_t until_change(int64_t since_begin) const {
    const int64_t at = since_begin % every_ns;
    return (at < open_ns ? open_ns : every_ns) - at;
  }
};

// "200ms"; units are ms, s and min. Returns 0 if the text is not a time.
int64_t clock_time(std::string_view text);
std::string clock_time_text(int64_t ns);  // "200 ms"

// "200ms/5s". Throws Failure.
ClockWindow clock_window(std::string_view text);
std::string to_text(const ClockWindow& window);  // "200 ms of every 5 s"

// Remembers when a window was closed. One thread writes; another reads records, which arrive up to some seconds late, and
// asks.
class ClosedTimes {
 public:
  void close(int64_t now);
  void open(int64_t now);
  bool at(int64_t time) const { return ever_.load(std::memory_order_relaxed) && among(time); }

 private:
  struct Stretch {
    int64_t begin, end;
  };
  bool among(int64_t time) const;

  std::atomic<bool> ever_{false};
  mutable std::mutex mutex_;
  std::deque<Stretch> stretches_;  // the newest ones
};

// Times in steady clock.
struct GapTimes {
  ClosedTimes clock;       // between clock windows
  ClosedTimes uncaptured;  // outside of capture ranges
};

}  // namespace ws::prof
