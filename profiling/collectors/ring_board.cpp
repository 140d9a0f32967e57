#include "profiling/collectors/ring_board.h"

#include <utility>

namespace ws::prof {

RingBoard& RingBoard::instance() {
  static auto* board = new RingBoard;  // never destroyed: the program may end while it is filled
  return *board;
}

void RingBoard::add(RingCopy copy) {
  constexpr size_t kMost = size_t{256} << 20;
  const std::lock_guard lock(mutex_);
  if (bytes_ + copy.bytes.size() > kMost) return;  // its segments then count as overwritten
  bytes_ += copy.bytes.size();
  copies_.push_back(std::move(copy));
}

std::vector<RingCopy> RingBoard::take() {
  const std::lock_guard lock(mutex_);
  bytes_ = 0;
  return std::exchange(copies_, {});
}

}  // namespace ws::prof
