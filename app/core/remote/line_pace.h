// How many bytes may be in flight on a line. The window grows while the line is fast and shrinks when bytes begin to
// queue, so that urgent data never waits behind seconds of other data.
#pragma once
#include <cstdint>
#include <deque>

namespace ws::app {

class LinePace {
 public:
  void sent(uint64_t bytes, int64_t now_ns);
  void received(uint64_t all, int64_t now_ns);  // total bytes that the other side has
  uint64_t space_left() const { return sent_ - received_ < window_ ? window_ - (sent_ - received_) : 0; }

 private:
  struct Mark {
    uint64_t sent;
    int64_t time_ns;
  };
  std::deque<Mark> marks_;
  uint64_t sent_ = 0, received_ = 0, window_ = 64u << 10;
  int64_t least_ns_ = INT64_MAX, shrunk_ns_ = 0;
  bool found_ = false;  // True once the speed of the line was found
};

}  // namespace ws::app
