// Loaded into a program (LD_PRELOAD), this keeps a log of what it does to the files of one folder: what was written, what
// was synced, which names were given and taken. power_test.cpp replays it up to a power failure.
//   WARPSIGHT_WRITES_OF=FOLDER   WARPSIGHT_WRITES_LOG=FILE
#include "tests/support/logged_writes.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>

#include "tests/support/interposed.h"

namespace {

using ws::test::WriteEvent;

std::recursive_mutex mutex;  // an event and its place in the log are one

const std::string& folder() {
  static const std::string name = getenv("WARPSIGHT_WRITES_OF") ? getenv("WARPSIGHT_WRITES_OF") : "";
  return name;
}

std::string absolute(const char* path) {
  if (path[0] == '/') return path;
  char here[PATH_MAX];
  return getcwd(here, sizeof here) ? std::string(here) + "/" + path : path;
}

bool is_watched(const std::string& path) { return !folder().empty() && path.starts_with(folder() + "/"); }

void put(WriteEvent event, const std::string& name, const void* bytes = nullptr) {
  static const int log = [] {
    static const auto real = ws::test::next<decltype(&open)>("open");
    return real(getenv("WARPSIGHT_WRITES_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }();
  static const auto real = ws::test::next<decltype(&writev)>("writev");
  event.name_bytes = name.size();
  iovec pieces[] = {{&event, sizeof event},
                    {const_cast<char*>(name.data()), name.size()},
                    {const_cast<void*>(bytes), bytes ? static_cast<size_t>(event.size) : 0}};
  if (real(log, pieces, 3) < 0) abort();
}

std::string path_of(int file) {
  char name[PATH_MAX];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), name, sizeof name);
  return size > 0 ? std::string(name, static_cast<size_t>(size)) : std::string();
}

uint64_t number_of(int file) {
  struct stat found {};
  return fstat(file, &found) == 0 ? found.st_ino : 0;
}

bool is_file(int file) {
  struct stat found {};
  return fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

int opened(int file, const char* path, int flags) {
  const int error = errno;
  if (const std::string name = absolute(path); file >= 0 && is_file(file) && is_watched(name)) {
    put({WriteEvent::Open, number_of(file)}, name);
    if ((flags & O_TRUNC) != 0) put({WriteEvent::Truncate, number_of(file)}, "");
  }
  errno = error;
  return file;
}

FILE* opened(FILE* (*open)(const char*, const char*), const char* path, const char* how) {
  const std::lock_guard lock(mutex);
  FILE* file = open(path, how);
  if (file) opened(fileno(file), path, how[0] == 'w' ? O_TRUNC : 0);
  return file;
}

void wrote(int file, uint64_t offset, const void* bytes, ssize_t count) {
  const int error = errno;
  if (count > 0 && is_watched(path_of(file)))
    put({WriteEvent::Write, number_of(file), offset, static_cast<uint64_t>(count)}, "", bytes);
  errno = error;
}

uint64_t place_of(int file) {
  static const auto real = ws::test::next<decltype(&fcntl64)>("fcntl64");
  struct stat found {};
  if ((real(file, F_GETFL) & O_APPEND) != 0 && fstat(file, &found) == 0) return static_cast<uint64_t>(found.st_size);
  const off_t at = lseek(file, 0, SEEK_CUR);
  return at < 0 ? 0 : static_cast<uint64_t>(at);
}

int resized(int done, int file, uint64_t size) {
  if (done == 0 && is_watched(path_of(file))) put({WriteEvent::Truncate, number_of(file), size}, "");
  return done;
}

int synced(int done, int file) {
  const std::string path = path_of(file);
  if (done == 0 && (is_watched(path) || path == folder())) put({WriteEvent::Sync, number_of(file)}, "");
  return done;
}

int unnamed(int done, const char* path) {
  if (const std::string name = absolute(path); done == 0 && is_watched(name)) put({WriteEvent::Unlink}, name);
  return done;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  const std::lock_guard lock(mutex);
  REAL(open);
  return opened(real(path, flags, mode), path, flags);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  const std::lock_guard lock(mutex);
  REAL(open64);
  return opened(real(path, flags, mode), path, flags);
}
FILE* fopen64(const char* path, const char* how) {
  REAL(fopen64);
  return opened(real, path, how);
}
FILE* fopen(const char* path, const char* how) {
  REAL(fopen);
  return opened(real, path, how);
}
ssize_t write(int file, const void* bytes, size_t count) {
  const std::lock_guard lock(mutex);
  REAL(write);
  const uint64_t offset = place_of(file);
  const ssize_t done = real(file, bytes, count);
  wrote(file, offset, bytes, done);
  return done;
}
ssize_t writev(int file, const iovec* pieces, int count) {
  const std::lock_guard lock(mutex);
  REAL(writev);
  const uint64_t offset = place_of(file);
  const ssize_t done = real(file, pieces, count);
  std::string all;
  for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  wrote(file, offset, all.data(), done);
  return done;
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
  const std::lock_guard lock(mutex);
  REAL(pwrite64);
  const ssize_t done = real(file, bytes, count, offset);
  wrote(file, static_cast<uint64_t>(offset), bytes, done);
  return done;
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) { return pwrite64(file, bytes, count, offset); }
int ftruncate64(int file, off64_t size) noexcept {
  const std::lock_guard lock(mutex);
  REAL(ftruncate64);
  return resized(real(file, size), file, static_cast<uint64_t>(size));
}
int ftruncate(int file, off_t size) noexcept { return ftruncate64(file, size); }
int fsync(int file) {
  const std::lock_guard lock(mutex);
  REAL(fsync);
  return synced(real(file), file);
}
int fdatasync(int file) {
  const std::lock_guard lock(mutex);
  REAL(fdatasync);
  return synced(real(file), file);
}
int rename(const char* from, const char* to) noexcept {
  const std::lock_guard lock(mutex);
  REAL(rename);
  const int done = real(from, to);
  if (const std::string name = absolute(to); done == 0 && is_watched(name))
    put({WriteEvent::Rename, 0, 0, name.size()}, absolute(from), name.data());
  return done;
}
int unlink(const char* path) noexcept {
  const std::lock_guard lock(mutex);
  REAL(unlink);
  return unnamed(real(path), path);
}
int remove(const char* path) noexcept {
  const std::lock_guard lock(mutex);
  REAL(remove);
  return unnamed(real(path), path);
}

}  // extern "C"
