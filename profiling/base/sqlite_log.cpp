#include "profiling/base/sqlite_log.h"

#include <filesystem>
#include <utility>

namespace ws::prof {

namespace fs = std::filesystem;

int64_t bytes_of_log(const std::string& path) {
  std::error_code none;
  const auto bytes = fs::file_size(path + kLogEndings[0], none);
  return none ? 0 : static_cast<int64_t>(bytes);
}

LogFile::LogFile(std::string path) : path_(std::move(path) + kLogEndings[0]), file_(FileIdentity::of(path_)) {}

bool LogFile::is_there() const { return file_.known() && FileIdentity::of(path_) == file_; }

void remove_log(const std::string& path) {
  std::error_code none;
  for (const char* ending : kLogEndings) fs::remove(path + ending, none);
}

void move_log(const std::string& from, const std::string& to) {
  std::error_code none;
  for (const char* ending : kLogEndings) fs::rename(from + ending, to + ending, none);
}

void remove_database(const std::string& path) {
  std::error_code none;
  fs::remove(path, none);
  remove_log(path);
  fs::remove(path + "-journal", none);  // as programs leave it that keep no log
}

void move_database(const std::string& from, const std::string& to) {
  std::error_code none;
  fs::rename(from, to, none);
  move_log(from, to);
}

}  // namespace ws::prof
