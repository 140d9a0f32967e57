#include "engine/passes/lifetimes.h"

#include <algorithm>

namespace ws {

std::vector<Lifetime> lifetimes(const Plan& plan) {
  std::vector<Lifetime> lives(plan.buffers.size());
  for (int i = 0; i < static_cast<int>(plan.ops.size()); ++i) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (is_bookkeeping(op.kind)) continue;
    for (const auto* ids : {&op.in, &op.out})
      for (BufferId id : *ids) {
        if (!lives_in_step(plan.buffer(id))) continue;
        Lifetime& life = lives[index(id)];
        if (life.first < 0) life.first = i;
        life.last = i;
      }
  }
  return lives;
}

int64_t live_lower_bound(const Plan& plan) {
  const auto lives = lifetimes(plan);
  int64_t most = 0;
  for (int i = 0; i < static_cast<int>(plan.ops.size()); ++i) {
    int64_t sum = 0;
    for (size_t b = 0; b < lives.size(); ++b)
      if (lives[b].first >= 0 && lives[b].first <= i && i <= lives[b].last) sum += plan.buffers[b].bytes();
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace ws
