// Averages the gradients of ranks that are threads of this process. It adds in rank order, so the result is
// bit-identical each time.
#pragma once
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "engine/executor/rank_group.h"

namespace ws::cpu {

class HostRanks final : public RankGroup {
 public:
  explicit HostRanks(int ranks);
  ~HostRanks() override;
  HostRanks(const HostRanks&) = delete;
  HostRanks& operator=(const HostRanks&) = delete;

  // Every rank calls this with tensors of the same sizes. Each element becomes the sum over the ranks of share · value.
  template <class Real>
  void average(int rank, double share, const std::vector<std::span<Real>>& tensors);
  void abandon(const std::string& why) noexcept override;

 private:
  struct Seat {
    const void* tensors = nullptr;  // set while its rank is in average()
    double share = 0;
  };
  void meet();  // returns when every rank has called it

  std::vector<Seat> seats_;
  std::mutex mutex_;
  std::condition_variable wake_;
  size_t arrived_ = 0;
  int64_t meetings_ = 0;
  std::string abandoned_;  // the reason; empty: not abandoned
};

}  // namespace ws::cpu
