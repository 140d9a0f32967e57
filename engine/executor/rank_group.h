// The ranks of one training in this process: each works on its share of a batch, then they average gradients.
#pragma once
#include <string>

namespace ws {

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  // Reports that a rank has failed. Ranks that wait for it, now or later, throw a Failure with this sentence.
  virtual void abandon(const std::string& why) noexcept = 0;
};

}  // namespace ws
