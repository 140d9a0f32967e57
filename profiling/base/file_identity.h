// Which file a path or a descriptor leads to: another file may have taken the path, and another open file the descriptor.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace ws {

struct FileIdentity {
  dev_t device = 0;
  ino_t file = 0;  // 0: there is none

  static FileIdentity of(const std::string& path) {  // follows links
    struct stat about {};
    return stat(path.c_str(), &about) == 0 ? FileIdentity{about.st_dev, about.st_ino} : FileIdentity{};
  }
  static FileIdentity of(int descriptor) {
    struct stat about {};
    return fstat(descriptor, &about) == 0 ? FileIdentity{about.st_dev, about.st_ino} : FileIdentity{};
  }
  bool known() const { return file != 0; }
  bool operator==(const FileIdentity&) const = default;
};

// The file that has a name at the beginning of long work. Only this one is replaced at the end. A file that takes the name later
// may have the number of a removed one, but not its time of birth.
struct FoundFile {
  FileIdentity identity;
  int64_t born_ns = 0;  // 0: the file system keeps none

  static FoundFile at(const std::string& path) {
    FoundFile found{FileIdentity::of(path)};
    struct statx about {};
    if (found.identity.known() && statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &about) == 0)
      found.born_ns = about.stx_btime.tv_sec * 1'000'000'000 + about.stx_btime.tv_nsec;
    return found;
  }
  bool operator==(const FoundFile&) const = default;
};

}  // namespace ws
