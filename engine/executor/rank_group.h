// The ranks of one training: each works on its share of a batch, then they average gradients.
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

namespace ws {

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  // Reports that a rank has failed. Ranks that wait for it, now or later, throw a Failure with this sentence.
  virtual void abandon(const std::string& why) noexcept = 0;
  // How long ranks wait for one that does not finish its steps. nullopt: as long as it takes.
  virtual std::optional<std::chrono::milliseconds> patience() const { return std::nullopt; }
};

// Waits in short slices until wait(slice) returns true, or returns false after so much time. Time in which this process
// is stopped does not count: a cluster may suspend all ranks of a job together.
template <class Wait>
bool wait_awake(std::chrono::milliseconds most, Wait wait) {
  constexpr std::chrono::milliseconds kSlice{100};
  for (auto left = most; left.count() > 0; left -= kSlice)
    if (wait(std::min(left, kSlice))) return true;
  return false;
}

// `ranks`: the ranks that all have waited for, "1" or "1, 2".
std::string late_ranks_text(const std::string& ranks, std::chrono::milliseconds waited);

}  // namespace ws
