// A folder of one piece of work, deleted with all its files at the end.
#pragma once
#include <filesystem>

namespace ws {

class TemporaryFolder {
 public:
  TemporaryFolder();  // throws Failure if it cannot be made
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ws
