// Copies this program to another machine: the server, the libraries that are missing there, and the shipped files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/core/remote/remote_address.h"

namespace ws::app {

class ServerCopy {
 public:
  // Looks at the machine: its kind, its free space, its libraries. Throws Failure if a copy would not run there.
  ServerCopy(RemoteAddress to, const std::string& program);  // program: warpsight
  uint64_t bytes() const { return bytes_; }
  std::string note() const;      // what to know before: that kernels are compiled there first; mostly empty
  std::string question() const;  // "Copy 12 MB to ~/… on gpu7? …"
  // Copies, checks each file by its hash there, and only then moves the copy into place. Throws Failure.
  void copy() const;

 private:
  struct File {
    std::string from, to;
  };
  void add(const std::string& from, const std::string& to);
  void add_libraries(const std::vector<std::string>& known_there);
  RemoteAddress to_;
  std::vector<File> files_;
  uint64_t bytes_ = 0;
  std::string compute_;  // of the GPU there, such as "9.0"; empty if unknown
};

}  // namespace ws::app
