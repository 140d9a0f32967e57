#include "profiling/base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

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
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail(path, std::strerror(errno));
  ssize_t wrote = 0;
  while (!text.empty() && ((wrote = write(file, text.data(), text.size())) > 0 || errno == EINTR))
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(wrote, 0)));
  const bool good = text.empty() && fsync(file) == 0;
  const int problem = errno;
  close(file);
  if (!good) fail(path, std::strerror(problem));
}

}  // namespace

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
  if (!error) return;
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
