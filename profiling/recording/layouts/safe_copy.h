// Reads memory of this process that may no longer be valid, without a fault.
#pragma once
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ws::prof {

inline bool read_safely(const char* from, void* to, size_t bytes) {
  iovec here{to, bytes}, there{const_cast<char*>(from), bytes};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

// Copies with few calls of the system what stands close together, as the frames of a thread do: each time all of a page
// before the end of what is asked for.
class SafeCopy {
 public:
  static constexpr size_t kMost = 1024;  // bytes asked for at once
  // Valid until the next call; nullptr if the memory is not there. `from` may be any number.
  const char* at(const char* from, size_t bytes) {
    const auto asked = reinterpret_cast<uintptr_t>(from);
    if (asked - begin_ > size_ || bytes > size_ - (asked - begin_)) {
      const size_t before = asked % kPage;
      size_ = 0;
      if (!read_safely(from - before, copy_.data(), before + bytes)) return nullptr;
      begin_ = asked - before, size_ = before + bytes;
    }
    return copy_.data() + (asked - begin_);
  }

 private:
  static constexpr size_t kPage = 4096;
  std::array<char, kPage + kMost> copy_;
  uintptr_t begin_ = 0;
  size_t size_ = 0;
};

}  // namespace ws::prof
