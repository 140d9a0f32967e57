#include "engine/cpu/host_ranks.h"

#include <algorithm>

#include "profiling/base/failure.h"

namespace ws::cpu {

HostRanks::HostRanks(int ranks, std::optional<std::chrono::milliseconds> patience)
    : seats_(static_cast<size_t>(ranks)), patience_(patience) {}

template <class Real>
void HostRanks::average_all(int rank, double share, const Tensors<Real>& tensors) {
  const auto me = static_cast<size_t>(rank);
  seats_[me].tensors = &tensors, seats_[me].share = share;
  meet(me);
  // Each rank averages one part of every tensor and writes that part to all ranks.
  const auto tensors_of = [&](size_t r) -> const Tensors<Real>& {
    return *static_cast<const Tensors<Real>*>(seats_[r].tensors);
  };
  for (size_t t = 0; t < tensors.size(); ++t) {
    const size_t n = tensors[t].size(), end = n * (me + 1) / seats_.size();
    for (size_t i = n * me / seats_.size(); i < end; ++i) {
      Real sum = 0;
      for (size_t r = 0; r < seats_.size(); ++r) sum += static_cast<Real>(seats_[r].share) * tensors_of(r)[t][i];
      for (size_t r = 0; r < seats_.size(); ++r) tensors_of(r)[t][i] = sum;
    }
  }
  meet(me);
}

void HostRanks::meet(size_t rank) {
  std::unique_lock lock(mutex_);
  const int64_t mine = ++seats_[rank].meetings;
  if (std::ranges::all_of(seats_, [mine](const Seat& seat) { return seat.meetings >= mine; })) {
    meetings_ = mine;
    wake_.notify_all();
  }
  const auto over = [&] { return meetings_ >= mine || !abandoned_.empty(); };
  if (!patience_) {
    wake_.wait(lock, over);
  } else if (!wait_awake(*patience_, [&](auto slice) { return wake_.wait_for(lock, slice, over); })) {
    abandoned_ = late_ranks_text(missing(), *patience_);
    wake_.notify_all();
  }
  if (meetings_ < mine) throw Failure(abandoned_);
}

std::string HostRanks::missing() const {
  std::string ranks;
  for (size_t i = 0; i < seats_.size(); ++i)
    if (seats_[i].meetings == meetings_) ranks += (ranks.empty() ? "" : ", ") + std::to_string(i);
  return ranks;
}

void HostRanks::abandon(const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (abandoned_.empty()) abandoned_ = why;
  wake_.notify_all();
}

}  // namespace ws::cpu
