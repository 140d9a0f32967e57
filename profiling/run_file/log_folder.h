// Folds the write-ahead log of a database into it from a thread of its own. That waits for the disk (fsync); the writer
// only ever waits for the page cache.
#pragma once
#include <string>
#include <thread>

namespace ws::prof {

class WalKeeper {
 public:
  explicit WalKeeper(const std::string& path);  // of the database; its writer must not fold by itself

 private:
  std::jthread thread_;
};

}  // namespace ws::prof
