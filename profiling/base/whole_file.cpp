#include "profiling/base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "profiling/base/failure.h"

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

std::string part_of(const std::string& path) {
  const fs::path target(path);
  return (target.parent_path() / (".part-" + target.filename().string())).string();
}

void remove_part(const std::string& part) {
  std::error_code ignored;
  for (const char* name : {"", ".new"})  // a run file begins under a name of its own
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(part + name + suffix, ignored);
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Failure(path + ": cannot be written: " + why);
}

void write_all(const std::string& path, std::string_view text) {
  SyncedFile file(path);
  file.write(text);
  file.close();
}

void sync_folder_of(const std::string& path) {
  const int folder = open(fs::absolute(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

}  // namespace

SyncedFile::SyncedFile(std::string path)
    : path_(std::move(path)), handle_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (handle_ < 0) throw Failure(path_ + ": cannot be created: " + std::strerror(errno));
}

SyncedFile::~SyncedFile() {
  if (handle_ >= 0) ::close(handle_);
}

void SyncedFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(handle_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(path_, std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
}

void SyncedFile::close() {
  if (fsync(handle_) != 0) fail(path_, std::strerror(errno));
  ::close(std::exchange(handle_, -1));
}

void write_whole_file(const std::string& path, const std::function<void(const std::string& part)>& write) {
  const std::string part = part_of(path);
  remove_part(part);
  try {
    write(part);
  } catch (const std::exception& problem) {
    remove_part(part);
    std::string said = problem.what();
    if (const size_t at = said.find(part); at != said.npos) said.replace(at, part.size(), path);
    throw Failure(said.find(path) != said.npos ? said : path + ": " + said);
  }
  std::error_code error, ignored;
  for (const char* suffix : {"-wal", "-shm"}) fs::remove(path + suffix, ignored);  // of the database that it replaces
  fs::rename(part, path, error);
  if (!error) return sync_folder_of(path);
  remove_part(part);
  fail(path, error.message());
}

void remove_part_of(const std::string& path) { remove_part(part_of(path)); }

void write_whole(const std::string& path, std::string_view text) {
  write_whole_file(path, [text](const std::string& part) { write_all(part, text); });
}

bool write_shared(const std::string& path, std::string_view bytes) {
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  const std::string part = path + "." + std::to_string(getpid());
  try {
    write_all(part, bytes);
    fs::rename(part, path);
    return true;
  } catch (const std::exception&) {
    fs::remove(part, failed);
    return false;
  }
}

}  // namespace ws::prof
