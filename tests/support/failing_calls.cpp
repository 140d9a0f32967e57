// Loaded into a program before its other libraries (LD_PRELOAD), this makes one call fail as the system would. The
// program under test is the one that ships.
//   WARPSIGHT_FAIL=KIND:N     the N-th call of that kind fails; KIND:N+: all calls from it on; "count": none does
//   WARPSIGHT_FAIL_LOG=FILE   gets "failed N CALL PATH" when a call fails, and "calls N KIND" at the end of each process
// Calls before main() do not count.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tests/support/interposed.h"
#include "tests/support/sanitizers.h"

namespace {

enum Kind { Open, Write, Sync, Rename, Remove, Map, Memory, Thread, Database, Kinds };
constexpr const char* kNames[Kinds] = {"open", "write", "sync", "rename", "remove", "mmap", "memory", "thread", "database"};
constexpr int kErrors[Kinds] = {EMFILE, ENOSPC, EIO, EIO, EIO, ENOMEM, ENOMEM, EAGAIN, EIO};
constexpr size_t kLargeBytes = 1 << 20;

std::atomic<int> chosen{Kinds};
std::atomic<bool> counting{false}, lasting{false};
std::atomic<long> at{0}, calls[Kinds];

// No memory, no stream: this may stand in for malloc().
void log_line(const char* what, long number, const char* call, const char* path) {
  const char* name = getenv("WARPSIGHT_FAIL_LOG");
  if (!name) return;
  char line[512];
  const int size = snprintf(line, sizeof line, "%s %ld %s %s\n", what, number, call, path);
  const long file = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  syscall(SYS_write, file, line, static_cast<size_t>(size) < sizeof line ? size : sizeof line - 1);
  syscall(SYS_close, file);
}

bool fails(Kind kind, const char* call, const char* path = "") {
  if (chosen.load(std::memory_order_relaxed) != kind && !counting.load(std::memory_order_relaxed)) return false;
  const long number = ++calls[kind];
  if (counting || number < at || (number > at && !lasting)) return false;
  if (number == at) log_line("failed", number, call, path);
  errno = kErrors[kind];
  return true;
}

void choose(const char* kind, size_t length, long number) {
  at = number;
  for (int k = 0; k < Kinds; ++k)
    if (strlen(kNames[k]) == length && strncmp(kind, kNames[k], length) == 0) chosen = k;
}

// After the constructors of all libraries that this one was loaded before.
__attribute__((constructor)) void begin() {
  const char* wanted = getenv("WARPSIGHT_FAIL");
  counting = wanted && strcmp(wanted, "count") == 0;
  const char* colon = wanted ? strchr(wanted, ':') : nullptr;
  lasting = colon && wanted[strlen(wanted) - 1] == '+';
  if (colon) choose(wanted, static_cast<size_t>(colon - wanted), atol(colon + 1));
}

__attribute__((destructor)) void end() {
  for (int kind = 0; kind < Kinds; ++kind)
    if (counting) log_line("calls", calls[kind], kNames[kind], "");
}

bool is_lock(int command) { return command == F_SETLK || command == F_SETLKW; }

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  REAL(open);
  return fails(Open, "open", path) ? -1 : real(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  REAL(open64);
  return fails(Open, "open64", path) ? -1 : real(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  REAL(openat);
  return fails(Open, "openat", path) ? -1 : real(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  REAL(openat64);
  return fails(Open, "openat64", path) ? -1 : real(folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* how) {
  REAL(fopen);
  return fails(Open, "fopen", path) ? nullptr : real(path, how);
}
FILE* fopen64(const char* path, const char* how) {
  REAL(fopen64);
  return fails(Open, "fopen64", path) ? nullptr : real(path, how);
}
DIR* opendir(const char* path) {
  REAL(opendir);
  return fails(Open, "opendir", path) ? nullptr : real(path);
}

ssize_t write(int file, const void* bytes, size_t count) {
  REAL(write);
  return fails(Write, "write") ? -1 : real(file, bytes, count);
}
ssize_t writev(int file, const iovec* pieces, int count) {
  REAL(writev);
  return fails(Write, "writev") ? -1 : real(file, pieces, count);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  REAL(pwrite);
  return fails(Write, "pwrite") || fails(Database, "pwrite") ? -1 : real(file, bytes, count, offset);
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
  REAL(pwrite64);
  return fails(Write, "pwrite64") || fails(Database, "pwrite64") ? -1 : real(file, bytes, count, offset);
}
ssize_t pread64(int file, void* bytes, size_t count, off64_t offset) {
  REAL(pread64);
  return fails(Database, "pread64") ? -1 : real(file, bytes, count, offset);
}
// Qt and the C++ library copy files inside the kernel.
ssize_t sendfile(int to, int from, off_t* offset, size_t count) noexcept {
  REAL(sendfile);
  return fails(Write, "sendfile") ? -1 : real(to, from, offset, count);
}
ssize_t sendfile64(int to, int from, off64_t* offset, size_t count) noexcept {
  REAL(sendfile64);
  return fails(Write, "sendfile64") ? -1 : real(to, from, offset, count);
}
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t count, unsigned flags) {
  REAL(copy_file_range);
  return fails(Write, "copy_file_range") ? -1 : real(from, from_at, to, to_at, count, flags);
}
int ftruncate(int file, off_t size) noexcept {
  REAL(ftruncate);
  return fails(Write, "ftruncate") || fails(Database, "ftruncate") ? -1 : real(file, size);
}
int ftruncate64(int file, off64_t size) noexcept {
  REAL(ftruncate64);
  return fails(Write, "ftruncate64") || fails(Database, "ftruncate64") ? -1 : real(file, size);
}

int fsync(int file) {
  REAL(fsync);
  return fails(Sync, "fsync") || fails(Database, "fsync") ? -1 : real(file);
}
int fdatasync(int file) {
  REAL(fdatasync);
  return fails(Sync, "fdatasync") || fails(Database, "fdatasync") ? -1 : real(file);
}

int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  return fails(Rename, "rename", to) ? -1 : real(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  REAL(renameat2);
  return fails(Rename, "renameat2", to) ? -1 : real(from_folder, from, to_folder, to, flags);
}
int unlink(const char* path) noexcept {
  REAL(unlink);
  return fails(Remove, "unlink", path) || fails(Database, "unlink", path) ? -1 : real(path);
}
int remove(const char* path) noexcept {
  REAL(remove);
  return fails(Remove, "remove", path) ? -1 : real(path);
}
int fcntl64(int file, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  REAL(fcntl64);
  return is_lock(command) && fails(Database, "fcntl64") ? -1 : real(file, command, argument);
}

void* mmap(void* address, size_t size, int rights, int flags, int file, off_t offset) noexcept {
  REAL(mmap);
  return fails(Map, "mmap") ? MAP_FAILED : real(address, size, rights, flags, file, offset);
}
void* mmap64(void* address, size_t size, int rights, int flags, int file, off64_t offset) noexcept {
  REAL(mmap64);
  return fails(Map, "mmap64") ? MAP_FAILED : real(address, size, rights, flags, file, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*work)(void*), void* argument) noexcept {
  REAL(pthread_create);
  return fails(Thread, "pthread_create") ? EAGAIN : real(thread, how, work, argument);
}

#if !WARPSIGHT_ADDRESS_SANITIZER && !WARPSIGHT_THREAD_SANITIZER  // these have an allocator of their own
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  return size >= kLargeBytes && fails(Memory, "malloc") ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return size != 0 && count >= kLargeBytes / size && count * size >= kLargeBytes && fails(Memory, "calloc")
             ? nullptr
             : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return size >= kLargeBytes && fails(Memory, "realloc") ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return size >= kLargeBytes && fails(Memory, "aligned_alloc") ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  if (size >= kLargeBytes && fails(Memory, "posix_memalign")) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}
#endif

}  // extern "C"
