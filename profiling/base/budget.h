// Limits on the memory and work that reading a file may cost, whatever the file claims. All of them are defined here.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace ws {

namespace limits {
inline constexpr int64_t kLeastMemory = int64_t{256} << 20;    // bytes; allowed even if less is free
inline constexpr double kShareOfFree = 0.5;                    // share of the free memory when reading begins
inline constexpr uint64_t kMostUnpacked = uint64_t{4} << 30;     // bytes of text in a packed file
inline constexpr uint64_t kUnpackedAlways = uint64_t{16} << 20;  // allowed for every file, however small; as JSON it takes 350 MB
inline constexpr uint64_t kMostGrowth = 64;                      // times the packed size; traces have 10 to 30
inline constexpr int64_t kDatabaseRowBytes = 4;                // a database row takes at least this many
inline constexpr int64_t kDatabaseStart = 100'000'000;         // instructions of SQLite allowed for any query
inline constexpr int64_t kDatabaseWork = 400;                  // and this many more for each byte of the file
inline constexpr int64_t kMostTables = 2000;
inline constexpr size_t kMostColumns = 100'000;  // of a table of text

constexpr uint64_t unpacked_bytes(uint64_t packed) {
  return packed > kMostUnpacked / kMostGrowth ? kMostUnpacked : std::max(kUnpackedAlways, packed * kMostGrowth);
}

// A column of words becomes one 0/1 number for each different word.
inline constexpr uint64_t kWordsAlways = uint64_t{256} << 20;
constexpr uint64_t most_of_words(uint64_t table) { return std::max(kWordsAlways, table * kMostGrowth); }
}  // namespace limits

// Bytes that the system could provide, with caches that it would free. nullopt: not known.
std::optional<int64_t> free_memory();
// Memory limit of one reader in bytes: the value of set_memory_limit(), or a share of the free memory if none was set.
int64_t memory_limit();
void set_memory_limit(int64_t bytes);  // for this process; 0: back to the share

class Budget {
 public:
  explicit Budget(int64_t bytes = memory_limit()) : bytes_(bytes), left_(bytes) {}
  // Call this before the allocation. Throws Failure if the budget is too small.
  void take(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(left_)) refuse();
    left_ -= static_cast<int64_t>(bytes);
  }
  bool has(uint64_t bytes) const { return bytes <= static_cast<uint64_t>(left_); }
  std::string spent_text() const;  // "It takes more than 3.2 GiB of memory …"

 private:
  [[noreturn]] void refuse() const;

  int64_t bytes_, left_;
};

}  // namespace ws
