// Ensures that only one process at a time writes a file or fills a folder. A claim ends with its process, even after a
// crash. The next claim in the same folder removes the lock file that such a process left, unless what it said is still needed:
// a database that was being written has a log beside it.
#pragma once
#include <sys/types.h>

#include <string>

namespace ws {

inline constexpr const char* kWriter = "owner";
inline constexpr const char* kMaker = "maker";  // for a file that another process, or a later step, will write

class Ownership {
 public:
  // Claims a file with a lock file beside it, or a folder with one inside. Throws Failure that names the current owner.
  // `name`: what others read, "1234 python3"; empty: this process.
  explicit Ownership(const std::string& path, const char* kind = kWriter, const std::string& name = "");
  ~Ownership();
  // Describes what the owner writes, for whoever finds the lock file after a crash; see said_by_owner().
  void say(const std::string& text);
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;

 private:
  std::string lock_;
  std::string name_;
  int file_ = -1;
  pid_t process_ = 0;
};

// Follows symbolic links, even if the target does not exist yet.
std::string link_target(const std::string& path);
// Returns the process that owns a file or folder, "1234 (warpsight)", or "" if no process does. A recorded program owns its
// run file, although another process writes it.
std::string owner_of(const std::string& path, const char* kind = kWriter);
// What the owner of a file said last, also after it was killed; empty: nothing.
std::string said_by_owner(const std::string& path, const char* kind = kWriter);
// Returns the path, or the first of name-2, name-3 … that no process has claimed.
std::string unowned(const std::string& path);
// The same, and no file has that name.
std::string unused_name(const std::string& path);

}  // namespace ws
