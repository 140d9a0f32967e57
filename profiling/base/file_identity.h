// Which file a path or a descriptor leads to: another file may have taken the path, and another open file the descriptor.
#pragma once
#include <sys/stat.h>

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

}  // namespace ws
