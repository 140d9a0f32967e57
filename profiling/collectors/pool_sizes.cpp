#include "profiling/collectors/pool_sizes.h"

namespace ws::prof {

PoolSize PoolSizes::sum(const Sizes& sizes) {
  PoolSize all;
  for (const auto& [pool, size] : sizes) all.reserved += size.reserved, all.used += size.used;
  return all;
}

PoolSize PoolSizes::told(uint64_t pool, PoolSize size) {
  same_names_ = same_names_ || asked_.contains(pool);
  spoke_ = true;
  current()[pool] = size;
  return sum(current());
}

PoolSize PoolSizes::destroyed(uint64_t pool) {
  spoke_ = true;
  told_.erase(pool);
  asked_.erase(pool);
  return sum(current());
}

std::optional<PoolSize> PoolSizes::asked(std::span<const PoolAnswer> all) {
  const bool quiet = !spoke_;
  spoke_ = false;
  if (!quiet || all.empty()) return std::nullopt;
  asked_.clear();
  for (const PoolAnswer& answer : all) asked_[answer.pool] = answer.size;
  return sum(asked_);
}

}  // namespace ws::prof
