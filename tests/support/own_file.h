// A file of this test process: two that run at once share none. All of them are removed at its end.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

namespace ws::test {

// Programs that were just ended may still take their files out of the folder.
inline void remove_folder(const std::filesystem::path& folder) {
  std::error_code gone;
  for (int i = 0; i < 20 && std::filesystem::exists(folder, gone); ++i) std::filesystem::remove_all(folder, gone);
}

class OwnFolder {
 public:
  OwnFolder() { std::filesystem::create_directories(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder() {
    if (getpid() == process_) remove_folder(path_);  // not in a forked child
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  pid_t process_ = getpid();
  std::filesystem::path path_ = std::filesystem::temp_directory_path() / ("warpsight-test-" + std::to_string(process_));
};

inline std::string own_file(const std::string& name) {
  static const OwnFolder folder;
  return (folder.path() / name).string();
}

}  // namespace ws::test
