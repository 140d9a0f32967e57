// Finds an item of a list by its hash, so that a list which grows with a file is never searched linearly.
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace ws::prof {

inline uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}
inline uint64_t mixed(uint64_t hash, std::string_view text) { return mixed(hash, std::hash<std::string_view>{}(text)); }

class LookUp {
 public:
  // Returns the index for which `same(index)` is true, or -1 if there is none.
  template <class Same>
  int64_t find(uint64_t hash, Same same) const {
    for (auto [at, end] = places_.equal_range(hash); at != end; ++at)
      if (same(at->second)) return static_cast<int64_t>(at->second);
    return -1;
  }
  void add(uint64_t hash, size_t place) { places_.emplace(hash, place); }
  void clear() { places_.clear(); }

 private:
  std::unordered_multimap<uint64_t, size_t> places_;
};

}  // namespace ws::prof
