#include "profiling/base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/base/sqlite_log.h"

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPart = ".part-";
constexpr const char* kOld = "-old";

std::string part_of(const std::string& path) {
  const fs::path target(path);
  return (target.parent_path() / (kPart + target.filename().string())).string();
}

void remove_part(const std::string& part) {
  remove_database(part);
  remove_log(part + kOld);
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Failure(path + ": cannot be written: " + why);
}

void write_all(const std::string& path, std::string_view text) {
  SyncedFile file(path);
  file.write(text);
  file.close();
}

// Makes the new file name durable. Some file systems do not support this for folders.
void sync_folder(const std::string& path) {
  const int handle = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

// Moves away the SQLite log of a database that is replaced: the new database must not find the old log. Moves it back
// if the replacement fails.
class OldLog {
 public:
  OldLog(const std::string& path, const std::string& part) : path_(path), part_(part) { move_log(path_, part_ + kOld); }
  ~OldLog() { kept_ ? move_log(part_ + kOld, path_) : remove_part(part_); }
  OldLog(const OldLog&) = delete;
  OldLog& operator=(const OldLog&) = delete;
  void forget() { kept_ = false; }

 private:
  const std::string &path_, &part_;
  bool kept_ = true;
};

void must_be_found(const std::string& path, const std::optional<FoundFile>& found) {
  if (found && FoundFile::at(path) != *found) fail(path, "another file took this name meanwhile, and stays; choose another name");
}

bool is_special(const std::string& path) {
  std::error_code none;
  const fs::file_status found = fs::status(path, none);
  return fs::exists(found) && !fs::is_regular_file(found) && !fs::is_directory(found);
}

void write_to(int handle, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(handle, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(path, std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
}

void write_through(const std::string& path, std::string_view text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "we"), fclose);
  if (!file) fail(path, std::strerror(errno));
  write_to(fileno(file.get()), path, text);
}

}  // namespace

SyncedFile::SyncedFile(std::string path, Begin begin)
    : path_(std::move(path)),
      handle_(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (begin == Begin::Anew ? O_TRUNC : O_APPEND), 0644)) {
  if (handle_ < 0) throw Failure(path_ + ": cannot be created: " + std::strerror(errno));
}

SyncedFile::~SyncedFile() {
  if (handle_ >= 0) ::close(handle_);
}

void SyncedFile::write(std::string_view bytes) { write_to(handle_, path_, bytes); }

void SyncedFile::sync() {
  if (fsync(handle_) != 0) fail(path_, std::strerror(errno));
}

void SyncedFile::close() {
  sync();
  ::close(std::exchange(handle_, -1));
}

std::string file_to_write(const std::string& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) fail(path, "it is a folder");
  if (is_special(path)) fail(path, "it is a device or a pipe, not a file; choose another name");
  return link_target(path);
}

void check_writable(const std::string& path) {
  if (is_special(path)) return access(path.c_str(), W_OK) == 0 ? void() : fail(path, std::strerror(errno));
  const std::string target = file_to_write(path);
  const fs::path folder = fs::path(target).parent_path();
  for (const std::string& needed : {folder.empty() ? std::string(".") : folder.string(), target})
    if (access(needed.c_str(), W_OK) != 0 && (errno != ENOENT || needed != target)) fail(path, std::strerror(errno));
}

bool is_part(const std::string& path) { return fs::path(path).filename().string().starts_with(kPart); }

void replace_file(const std::string& path, const std::function<void(const std::string& part)>& write, const std::optional<FoundFile>& found) {
  const std::string part = part_of(path);
  remove_part(part);
  try {
    must_be_found(path, found);  // before the work, and again after it
    write(part);
    // Otherwise a power cut could leave the name with an empty file.
    SyncedFile(part, SyncedFile::Begin::AtEnd).close();
    must_be_found(path, found);
  } catch (const std::exception& problem) {
    remove_part(part);
    std::string said = problem.what();
    if (const size_t at = said.find(part); at != said.npos) said.replace(at, part.size(), path);
    throw Failure(said.find(path) != said.npos ? said : path + ": " + said);
  }
  std::error_code error;
  {
    OldLog log(path, part);
    fs::rename(part, path, error);
    if (!error) log.forget();
  }
  if (!error) return sync_folder(fs::absolute(path).parent_path().string());
  remove_part(part);
  fail(path, error.message());
}

void write_whole_file(const std::string& path, const std::function<void(const std::string& part)>& write, const std::optional<FoundFile>& found) {
  const std::string target = file_to_write(path);
  const Ownership owned(target);
  replace_file(target, write, found);
}

void remove_part_of(const std::string& path) { remove_part(part_of(link_target(path))); }

std::string whole_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_whole(const std::string& path, std::string_view text) {
  if (is_special(path)) return write_through(path, text);
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
