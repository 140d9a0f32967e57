// One process at a time writes a file or fills a folder. A claim ends with the process that made it, however that ends.
#pragma once
#include <sys/types.h>

#include <string>

namespace ws {

inline constexpr const char* kWriter = "owner";
inline constexpr const char* kMaker = "maker";  // of a file that another process, or a later step, will write

class Ownership {
 public:
  // Claims a file by a lock beside it, a folder by one inside. Throws Failure naming the process that has it already.
  explicit Ownership(const std::string& path, const char* kind = kWriter);
  ~Ownership();
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;

 private:
  std::string lock_;
  int file_ = -1;
  pid_t process_ = 0;
};

// What a path leads to through symbolic links; also where nothing is there yet.
std::string link_target(const std::string& path);
// The process that owns a file or folder, "1234 (warpscope-cli)"; empty: nobody does.
std::string owner_of(const std::string& path, const char* kind = kWriter);
// The path, or the first of name-2, name-3 … that nobody makes or writes.
std::string unowned(const std::string& path);

}  // namespace ws
