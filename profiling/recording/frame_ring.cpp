#include "profiling/recording/frame_ring.h"

#include <sys/ipc.h>
#include <sys/shm.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "profiling/base/failure.h"

namespace ws::prof {
namespace {

void make_shared_lock(pthread_mutex_t& lock) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lock, &kind);
  pthread_mutexattr_destroy(&kind);
}

}  // namespace

// The number is taken away at once, so that nothing stays behind: Linux still lets the writer attach until the program detaches.
FrameRing::FrameRing() : number_(shmget(IPC_PRIVATE, sizeof(Shared), IPC_CREAT | 0600)) {
  if (number_ < 0) throw Failure(std::string("no shared memory can be made: ") + std::strerror(errno));
  try {
    attach();
  } catch (const Failure&) {
    shmctl(number_, IPC_RMID, nullptr);
    throw;
  }
  shmctl(number_, IPC_RMID, nullptr);
  make_shared_lock((new (shared_) Shared)->held);
}

FrameRing::FrameRing(int number) : number_(number) {
  shmid_ds about{};
  if (shmctl(number_, IPC_STAT, &about) != 0 || about.shm_segsz != sizeof(Shared)) throw Failure("There is no such shared memory.");
  attach();
  if (shared_->magic != kMagic) throw Failure("The shared memory is of another program.");
}

void FrameRing::attach() {
  void* const memory = shmat(number_, nullptr, 0);
  if (memory == reinterpret_cast<void*>(-1)) throw Failure(std::string("shared memory cannot be mapped: ") + std::strerror(errno));
  shared_ = static_cast<Shared*>(memory);
}

FrameRing::~FrameRing() {
  if (shared_) shmdt(shared_);
}

// Calls copy(place in the ring, offset, bytes) for the one or two parts of a stretch.
template <class Copy>
void FrameRing::copy_parts(uint64_t at, size_t size, const Copy& copy) const {
  const size_t begin = at % kBytes, first = std::min(size, kBytes - begin);
  copy(shared_->bytes + begin, size_t{0}, first);
  if (first < size) copy(shared_->bytes, first, size - first);
}

size_t FrameRing::put(std::string_view bytes) {
  const uint64_t written = shared_->written.load(std::memory_order_relaxed);
  const size_t size = std::min(bytes.size(), kBytes - std::min(waiting(), kBytes));
  copy_parts(written, size, [&](char* to, size_t from, size_t part) { std::memcpy(to, bytes.data() + from, part); });
  shared_->written.store(written + size, std::memory_order_release);
  return size;
}

size_t FrameRing::waiting() const {
  return shared_->written.load(std::memory_order_relaxed) - shared_->read.load(std::memory_order_acquire);
}

// The other side may be a damaged program: its counts are checked, and bytes are copied before they are looked at.
bool FrameRing::take(std::string& to) {
  const uint64_t read = shared_->read.load(std::memory_order_relaxed);
  const uint64_t size = shared_->written.load(std::memory_order_acquire) - read;
  if (size == 0) return false;
  if (size > kBytes) throw Failure("The recorded program sent damaged data.");
  copy_parts(read, size, [&](const char* from, size_t, size_t part) { to.append(from, part); });
  shared_->read.store(read + size, std::memory_order_release);
  return true;
}

void FrameRing::hold() {
  if (pthread_mutex_lock(&shared_->held) == EOWNERDEAD) pthread_mutex_consistent(&shared_->held);  // the program was killed in writer_died()
}

void FrameRing::release() { pthread_mutex_unlock(&shared_->held); }

bool FrameRing::writer_died() const {
  const int code = pthread_mutex_trylock(&shared_->held);
  if (code == 0 || code == EOWNERDEAD) pthread_mutex_unlock(&shared_->held);
  return code == EOWNERDEAD || code == ENOTRECOVERABLE;
}

std::string FrameRing::trouble() const {
  const size_t size = std::min<size_t>(shared_->trouble_bytes.load(std::memory_order_acquire), Shared::kTrouble);
  return {shared_->trouble, size};
}

void FrameRing::report(std::string_view trouble) {
  if (shared_->trouble_bytes.load(std::memory_order_relaxed) != 0 || trouble.empty()) return;
  const size_t size = std::min(trouble.size(), Shared::kTrouble);
  std::memcpy(shared_->trouble, trouble.data(), size);
  shared_->trouble_bytes.store(static_cast<uint32_t>(size), std::memory_order_release);
}

}  // namespace ws::prof
