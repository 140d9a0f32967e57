#include "engine/cpu/host_ranks.h"

#include "engine/cpu/cpu_ops.h"
#include "profiling/base/failure.h"

namespace ws::cpu {

// Ranks already share the processor. A product on several threads would only make them wait for each other.
HostRanks::HostRanks(int ranks) : seats_(static_cast<size_t>(ranks)) { products_on_one_thread(true); }
HostRanks::~HostRanks() { products_on_one_thread(false); }

template <class Real>
void HostRanks::average(int rank, double share, const std::vector<std::span<Real>>& tensors) {
  using Tensors = std::vector<std::span<Real>>;
  const auto me = static_cast<size_t>(rank);
  seats_[me] = {&tensors, share};
  meet();
  // Each rank averages one part of every tensor and writes that part to all ranks.
  const auto tensors_of = [&](size_t r) -> const Tensors& { return *static_cast<const Tensors*>(seats_[r].tensors); };
  for (size_t t = 0; t < tensors.size(); ++t) {
    const size_t n = tensors[t].size(), end = n * (me + 1) / seats_.size();
    for (size_t i = n * me / seats_.size(); i < end; ++i) {
      Real sum = 0;
      for (size_t r = 0; r < seats_.size(); ++r) sum += static_cast<Real>(seats_[r].share) * tensors_of(r)[t][i];
      for (size_t r = 0; r < seats_.size(); ++r) tensors_of(r)[t][i] = sum;
    }
  }
  meet();
}
template void HostRanks::average(int, double, const std::vector<std::span<float>>&);
template void HostRanks::average(int, double, const std::vector<std::span<double>>&);

void HostRanks::meet() {
  std::unique_lock lock(mutex_);
  const int64_t mine = meetings_;
  if (++arrived_ == seats_.size()) {
    arrived_ = 0;
    ++meetings_;
    wake_.notify_all();
  }
  wake_.wait(lock, [&] { return meetings_ != mine || !abandoned_.empty(); });
  if (meetings_ == mine) throw Failure(abandoned_);
}

void HostRanks::abandon(const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (abandoned_.empty()) abandoned_ = why;
  wake_.notify_all();
}

}  // namespace ws::cpu
