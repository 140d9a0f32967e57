// Moves the write-ahead log of a database into the database, on its own thread. This thread waits for the disk (fsync),
// so the writer waits only for the page cache.
#pragma once
#include <string>
#include <thread>

namespace ws::prof {

class WalKeeper {
 public:
  explicit WalKeeper(const std::string& path);  // path of the database; its writer must not checkpoint itself

 private:
  std::jthread thread_;
};

}  // namespace ws::prof
