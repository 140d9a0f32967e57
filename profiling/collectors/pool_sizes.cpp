#include "profiling/collectors/pool_sizes.h"

#include <utility>

namespace ws::prof {

PoolSize PoolSizes::sum(const Sizes& sizes) {
  PoolSize all;
  for (const auto& [pool, size] : sizes) all.reserved += size.reserved, all.used += size.used;
  return all;
}

PoolSize PoolSizes::told(uint64_t pool, PoolSize size) {
  same_names_ = same_names_ || asked_.contains(pool);
  spoken_of_.insert(pool);
  current()[pool] = size;
  return sum(current());
}

PoolSize PoolSizes::destroyed(uint64_t pool) {
  spoken_of_.insert(pool);
  told_.erase(pool);
  asked_.erase(pool);
  return sum(current());
}

std::optional<PoolSize> PoolSizes::asked(std::span<const PoolAnswer> all) {
  const std::set<uint64_t> spoken_of = std::exchange(spoken_of_, {});
  if (all.empty()) return std::nullopt;
  const auto stays = [&](const auto& known) { return same_names_ && spoken_of.contains(known.first); };
  std::erase_if(asked_, [&](const auto& known) { return !stays(known); });
  for (const PoolAnswer& answer : all)
    if (!same_names_ || !spoken_of.contains(answer.pool)) asked_[answer.pool] = answer.size;
  return spoken_of.empty() ? std::optional(sum(asked_)) : std::nullopt;
}

}  // namespace ws::prof
