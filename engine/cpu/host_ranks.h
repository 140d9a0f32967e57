// Averages the gradients of ranks that are threads of this process. It adds in rank order, so the result is
// bit-identical each time.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "engine/cpu/rank_average.h"
#include "engine/executor/rank_group.h"

namespace ws::cpu {

class HostRanks final : public RankGroup, public RankAverage {
 public:
  // `patience`: how long ranks wait for one that does not come.
  explicit HostRanks(int ranks, std::optional<std::chrono::milliseconds> patience = std::nullopt);

  void average(int rank, double share, const Tensors<float>& tensors) override { average_all(rank, share, tensors); }
  void average(int rank, double share, const Tensors<double>& tensors) override { average_all(rank, share, tensors); }
  void abandon(const std::string& why) noexcept override;

 private:
  struct Seat {
    const void* tensors = nullptr;  // set while its rank is in average()
    double share = 0;
    int64_t meetings = 0;  // how often its rank has arrived
  };
  template <class Real>
  void average_all(int rank, double share, const Tensors<Real>& tensors);
  void meet(size_t rank);  // returns when every rank has called it
  std::string missing() const;

  std::vector<Seat> seats_;
  std::optional<std::chrono::milliseconds> patience_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int64_t meetings_ = 0;   // complete ones
  std::string abandoned_;  // the reason; empty: not abandoned
};

}  // namespace ws::cpu
