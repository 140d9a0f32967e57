#include "profiling/base/ownership.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "profiling/base/failure.h"
#include "profiling/base/file_identity.h"
#include "profiling/base/process.h"

namespace ws {
namespace {

namespace fs = std::filesystem;

std::string lock_of(const std::string& path, const char* kind) {
  std::error_code none;
  const fs::path target = link_target(path);
  if (fs::is_directory(target, none)) return (target / ("." + std::string(kind))).string();
  return (target.parent_path() / ("." + target.filename().string() + "." + kind)).string();
}

std::string host() {
  utsname name{};
  uname(&name);
  return name.nodename;
}

// The content of a lock file: the owner's mark, host and name.
struct Mark {
  std::string mark, host, name, said;

  static std::string mine(const std::string& name, const std::string& said = "") {
    return process_mark() + "\n" + ws::host() + "\n" + (name.empty() ? this_process() : name) + "\n" + said + "\n";
  }
  static Mark of(const std::string& lock) {
    Mark mark;
    std::ifstream in(lock);
    std::getline(in, mark.mark), std::getline(in, mark.host), std::getline(in, mark.name), std::getline(in, mark.said);
    return mark;
  }
  // "1234 (warpsight)"
  std::string text() const {
    const size_t space = name.find(' ');
    if (space == std::string::npos) return "another process";
    return name.substr(0, space) + " (" + name.substr(space + 1) + ")" + (is_elsewhere() ? " on " + host : "");
  }
  bool is_elsewhere() const { return !host.empty() && host != ws::host(); }
  // Without locks nobody here can tell whether a process on another machine lives.
  bool may_live() const { return is_elsewhere() || is_alive(mark); }
};

struct flock whole_file(short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  return lock;
}

enum class Lock { Taken, Held, Unknown };

// Locks belong to the open file, not to the process: closing another descriptor of the file does not drop them.
Lock try_lock(int file) {
  auto lock = whole_file(F_WRLCK);
  if (fcntl(file, F_OFD_SETLK, &lock) == 0) return Lock::Taken;
  return errno == EAGAIN || errno == EACCES ? Lock::Held : Lock::Unknown;
}

Lock look_at_lock(int file) {
  auto lock = whole_file(F_WRLCK);
  if (fcntl(file, F_OFD_GETLK, &lock) != 0) return Lock::Unknown;
  return lock.l_type == F_UNLCK ? Lock::Taken : Lock::Held;
}

bool same_file(int file, const std::string& path) {
  struct stat named {};
  return lstat(path.c_str(), &named) == 0 && FileIdentity::of(file) == FileIdentity{named.st_dev, named.st_ino};
}

// A child made by fork() without exec() would keep our locks after we end. So it closes them. Code that shares our process may
// have closed our descriptor, and use its number for a file of its own.
struct Held {
  std::atomic<int> file{0};  // descriptor + 1; 0: free slot
  FileIdentity identity;
};
std::array<Held, 256> held_files;

void close_held() {
  for (Held& held : held_files)
    if (const int file = held.file.exchange(0) - 1; file >= 0 && FileIdentity::of(file) == held.identity) close(file);
}

void remember(int file) {
  static const int once = pthread_atfork(nullptr, nullptr, close_held);
  static_cast<void>(once);
  for (Held& held : held_files) {
    int none = 0;
    constexpr int kBusy = -1;  // until the identity is there
    if (!held.file.compare_exchange_strong(none, kBusy)) continue;
    held.identity = FileIdentity::of(file);
    held.file = file + 1;
    return;
  }
}

void forget(int file) {
  for (Held& held : held_files) {
    int ours = file + 1;
    if (held.file.compare_exchange_strong(ours, 0)) return;
  }
}

// True if the log of a killed writer is there: its reader must know of which file it is.
bool is_needed(const fs::path& lock, const Mark& owner) {
  const std::string name = lock.filename().string();
  std::error_code none;
  return !owner.said.empty() && name.ends_with(std::string(".") + kWriter) &&
         fs::exists(lock.parent_path() / (name.substr(1, name.size() - std::strlen(kWriter) - 2) + "-wal"), none);
}

// Removes the lock files that killed processes of this machine left in a folder.
void remove_dead_locks(const fs::path& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string(), lock = entry.path().string();
    if (!name.starts_with('.') || !(name.ends_with(std::string(".") + kWriter) || name.ends_with(std::string(".") + kMaker))) continue;
    const int file = open(lock.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (try_lock(file) == Lock::Taken && same_file(file, lock)) {
      const Mark owner = Mark::of(lock);
      if (!owner.name.empty() && !owner.may_live() && !is_needed(entry.path(), owner)) unlink(lock.c_str());
    }
    close(file);
  }
}

[[noreturn]] void refuse(const std::string& path, const Mark& owner, const std::string& uncertain_lock) {
  throw Failure(path + " is being written by process " + owner.text() + ". Stop it first, or choose another name." +
                (uncertain_lock.empty() ? "" : " If it no longer runs, delete " + uncertain_lock + "."));
}

}  // namespace

std::string link_target(const std::string& path) {
  constexpr int kMostLinks = 40;
  fs::path target(path);
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(target, none); ++i)
    // operator/ lets an absolute link replace the whole path
    target = target.parent_path() / fs::read_symlink(target, none);
  return target.string();
}

Ownership::Ownership(const std::string& path, const char* kind, const std::string& name) : lock_(lock_of(path, kind)), name_(name), process_(getpid()) {
  for (int tries = 0;; ++tries) {
    const int file = open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) throw Failure(path + ": cannot be written: " + std::strerror(errno));
    const Lock lock = try_lock(file);
    const Mark owner = Mark::of(lock_);
    if (lock == Lock::Held || (lock == Lock::Unknown && owner.may_live())) {
      close(file);
      // Who holds it has not written its mark yet, or is about to remove it.
      constexpr int kMostTries = 20;
      if (lock == Lock::Held && !owner.may_live() && tries < kMostTries) {
        usleep(10'000);
        continue;
      }
      refuse(path, owner, lock == Lock::Unknown && owner.is_elsewhere() ? lock_ : "");
    }
    if (same_file(file, lock_)) {
      file_ = file;
      break;
    }
    close(file);  // its owner has just removed it
  }
  remember(file_);
  say("");
  remove_dead_locks(fs::path(lock_).parent_path());
}

void Ownership::say(const std::string& text) {
  const std::string line = Mark::mine(name_, text);
  if (ftruncate(file_, 0) != 0 || pwrite(file_, line.data(), line.size(), 0) < 0) {
    // On a full disk the lock has no owner's name.
  }
}

std::string said_by_owner(const std::string& path, const char* kind) { return Mark::of(lock_of(path, kind)).said; }

Ownership::~Ownership() {
  if (getpid() != process_) return;  // in a child made by fork(): the claim belongs to its parent
  constexpr int kTries = 2;  // a network file system may refuse once
  for (int i = 0; i < kTries && same_file(file_, lock_); ++i) unlink(lock_.c_str());
  forget(file_);
  close(file_);
}

std::string owner_of(const std::string& path, const char* kind) {
  const std::string lock = lock_of(path, kind);
  const int file = open(lock.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return {};
  const Lock state = look_at_lock(file);
  close(file);
  const Mark owner = Mark::of(lock);
  return state == Lock::Held || (state == Lock::Unknown && owner.may_live()) ? owner.text() : std::string();
}

namespace {

std::string first_name(const std::string& path, const std::function<bool(const std::string& name)>& taken) {
  const fs::path wanted(path);
  std::string name = path;
  for (int i = 2; taken(name); ++i)
    name = (wanted.parent_path() / (wanted.stem().string() + "-" + std::to_string(i) + wanted.extension().string())).string();
  return name;
}

bool owned(const std::string& path) { return !owner_of(path, kWriter).empty() || !owner_of(path, kMaker).empty(); }

}  // namespace

std::string unowned(const std::string& path) { return first_name(path, owned); }

std::string unused_name(const std::string& path) {
  std::error_code none;
  return first_name(path, [&](const std::string& name) { return owned(name) || fs::exists(fs::symlink_status(name, none)); });
}

}  // namespace ws
