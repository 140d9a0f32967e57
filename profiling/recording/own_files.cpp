#include "profiling/recording/own_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <semaphore>
#include <utility>

#include "profiling/base/file_identity.h"
#include "profiling/base/small_thread.h"
#include "profiling/recording/native_stacks.h"

namespace ws::prof {

int64_t worked_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

namespace {

const auto g_stderr = FileIdentity::of(STDERR_FILENO);  // as it was when this library was loaded

constexpr long kCloseRange = 436;  // older headers name neither
constexpr unsigned kInATableOfItsOwn = 2;

// Linux before 5.9 has no close_range(), and some containers forbid it. Their limit may be a billion descriptors, so only open ones
// are closed.
void close_each() {
  close(0);  // the list needs a descriptor
  const int list = open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0)  // there is no /proc
    for (int file = static_cast<int>(sysconf(_SC_OPEN_MAX)) - 1; file >= 0; --file) close(file);
  alignas(dirent64) char entries[4096];
  for (long bytes = 0; list >= 0 && (bytes = syscall(SYS_getdents64, list, entries, sizeof entries)) > 0;)
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (const int file = std::atoi(entry->d_name); file != list) close(file);
      at += entry->d_reclen;
    }
  if (list >= 0) close(list);
}

bool leave_descriptors() {
  if (syscall(kCloseRange, 0u, ~0u, kInATableOfItsOwn) == 0) return true;
  if (unshare(CLONE_FILES) != 0) return false;
  close_each();
  return true;
}

class FileThread {
 public:
  FileThread() : thread_([this] { run(); }) { ready_.acquire(); }

  bool usable() const { return apart_ && getpid() == process_ && !thread_.is_this_one(); }
  int64_t work(const std::function<void()>& work) {
    const std::lock_guard one(mutex_);
    work_ = &work;
    asked_.release();
    ready_.acquire();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return took_;
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), kOwnThread);
    apart_ = leave_descriptors();
    for (ready_.release(); apart_; ready_.release()) {
      asked_.acquire();
      const int64_t begin = worked_ns();
      try {
        (*work_)();
      } catch (...) {
        failure_ = std::current_exception();
      }
      took_ = worked_ns() - begin;
    }
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;  // one asks at a time
  std::binary_semaphore asked_{0}, ready_{0};
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr failure_;
  int64_t took_ = 0;
  bool apart_ = false;
  SmallThread thread_;  // the last: it uses what stands above
};

std::atomic<FileThread*> g_thread{nullptr};  // never destroyed, because the program may end in any way

}  // namespace

void close_descriptors() {
  if (syscall(kCloseRange, 0u, ~0u, 0u) != 0) close_each();
}

// All signals are blocked in the new thread: they belong to the program.
void begin_own_files() {
  if (g_thread.load()) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  g_thread.store(new FileThread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int64_t with_own_files(const std::function<void()>& work) {
  FileThread* const thread = g_thread.load(std::memory_order_acquire);
  if (thread && thread->usable()) return thread->work(work);
  work();
  return 0;
}

void report(const std::string& text) {
  if (g_stderr.known() && FileIdentity::of(STDERR_FILENO) == g_stderr) dprintf(STDERR_FILENO, "warpsight: %s\n", text.c_str());
}

std::string first_bytes(const std::string& path, size_t most) {
  constexpr size_t kPiece = 4096;
  std::string bytes;
  with_own_files([&] {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t got = 1;
    while (got > 0 && bytes.size() < most) {
      const size_t have = bytes.size(), wanted = std::min(most - have, std::max(have, kPiece));
      bytes.resize(have + wanted);
      got = read(file, bytes.data() + have, wanted);
      bytes.resize(have + static_cast<size_t>(got > 0 ? got : 0));
    }
    close(file);
  });
  return bytes;
}

}  // namespace ws::prof
