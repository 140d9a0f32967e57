// Adds up the sizes of a program's memory pools. Sizes come from driver records, pool by pool, or from queries of all
// pools.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

namespace ws::prof {

struct PoolSize {
  uint64_t reserved = 0, used = 0;  // bytes
  bool operator==(const PoolSize&) const = default;
};

struct PoolAnswer {
  uint64_t pool = 0;  // handle
  PoolSize size;
};

// The driver decides whether records name a pool by its handle. Until one name occurs in both sources, their sums are
// kept apart, so nothing is counted twice.
class PoolSizes {
 public:
  PoolSize recorded(uint64_t pool, PoolSize size);  // a size from a record; returns the sum over all pools
  PoolSize destroyed(uint64_t pool);
  // Sizes from a query of all pools that the program is known to use. A pool with a newer record since the last query
  // keeps the size of the record: its time is exact, the answer comes later. Returns nullopt if there was such a record
  // or if there are no pools.
  std::optional<PoolSize> asked(std::span<const PoolAnswer> all);

 private:
  using Sizes = std::map<uint64_t, PoolSize>;
  static PoolSize sum(const Sizes& sizes);
  Sizes& current() { return same_names_ ? asked_ : recorded_; }

  Sizes recorded_, asked_;
  std::set<uint64_t> newly_recorded_;  // pools with records since the last query
  bool same_names_ = false;
};

}  // namespace ws::prof
