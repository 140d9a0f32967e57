// What the memory pools of a program hold together: told pool by pool by the driver's records, or asked for all at
// once.
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
  uint64_t pool = 0;  // its handle
  PoolSize size;
};

// Whether records name a pool by its handle is for the driver to say. Until a name was seen in both, those who are told
// and those who were asked for stand for themselves, and nothing is counted twice.
class PoolSizes {
 public:
  PoolSize told(uint64_t pool, PoolSize size);  // returns the sum over all pools
  PoolSize destroyed(uint64_t pool);
  // Every pool that the program is known to use. A pool that records told of since the last time keeps their size: they
  // know the moment, an answer only comes some time later. Nothing to say where there was such a record, or no pool.
  std::optional<PoolSize> asked(std::span<const PoolAnswer> all);

 private:
  using Sizes = std::map<uint64_t, PoolSize>;
  static PoolSize sum(const Sizes& sizes);
  Sizes& current() { return same_names_ ? asked_ : told_; }

  Sizes told_, asked_;
  std::set<uint64_t> spoken_of_;  // since the last answers
  bool same_names_ = false;
};

}  // namespace ws::prof
