#include "profiling/collectors/pool_sizes.h"

#include <utility>

namespace ws::prof {

PoolSize PoolSizes::sum(const Sizes& sizes) {
  PoolSize all;
  for (const auto& [pool, size] : sizes) all.reserved += size.reserved, all.used += size.used;
  return all;
}

PoolSize PoolSizes::recorded(uint64_t pool, PoolSize size) {
  same_names_ = same_names_ || asked_.contains(pool);
  newly_recorded_.insert(pool);
  current()[pool] = size;
  return sum(current());
}

PoolSize PoolSizes::destroyed(uint64_t pool) {
  newly_recorded_.insert(pool);
  recorded_.erase(pool);
  asked_.erase(pool);
  return sum(current());
}

std::optional<PoolSize> PoolSizes::asked(std::span<const PoolAnswer> all) {
  const std::set<uint64_t> newly_recorded = std::exchange(newly_recorded_, {});
  if (all.empty()) return std::nullopt;
  const auto stays = [&](const auto& known) { return same_names_ && newly_recorded.contains(known.first); };
  std::erase_if(asked_, [&](const auto& known) { return !stays(known); });
  for (const PoolAnswer& answer : all)
    if (!same_names_ || !newly_recorded.contains(answer.pool)) asked_[answer.pool] = answer.size;
  return newly_recorded.empty() ? std::optional(sum(asked_)) : std::nullopt;
}

}  // namespace ws::prof
