// Shared memory through which a recorded program sends frames to the process that writes its run file. It has a number and no
// descriptor: whatever the program closes, duplicates or exhausts, it meets no descriptor of ours, and we none of its files. A
// limit on the size of files does not concern it. What was sent before the program is killed stays readable.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ws::prof {

enum class WriterState : uint32_t { Starting, Writing, Finished, Failed };

class FrameRing {
 public:
  static constexpr size_t kBytes = size_t{16} << 20;

  FrameRing();                     // makes the memory, in the program; throws Failure
  explicit FrameRing(int number);  // the writer's; throws Failure
  ~FrameRing();
  FrameRing(const FrameRing&) = delete;
  FrameRing& operator=(const FrameRing&) = delete;

  // The program's side. One thread at a time.
  int number() const { return number_; }
  size_t put(std::string_view bytes);     // returns how many bytes fitted
  size_t waiting() const;                 // bytes that the writer has not read
  WriterState state() const { return shared_->state.load(std::memory_order_acquire); }
  std::string trouble() const;            // why writing has stopped; empty: it has not
  bool writer_died() const;               // true if it ended without release(), even where nobody reaps ended processes

  // The writer's side. hold() and release() are calls of one thread, which writes between them.
  void hold();
  void release();
  bool take(std::string& to);  // appends what is there; returns false if there is nothing
  void set_state(WriterState state) { shared_->state.store(state, std::memory_order_release); }
  void report(std::string_view trouble);  // only the first sentence counts

 private:
  struct Shared {
    static constexpr size_t kTrouble = 1000;
    uint64_t magic = kMagic;
    std::atomic<WriterState> state{WriterState::Starting};
    std::atomic<uint32_t> trouble_bytes{0};
    char trouble[kTrouble] = {};
    pthread_mutex_t held{};  // by the writer. The kernel releases it when the writer ends, and marks it.
    alignas(64) std::atomic<uint64_t> written{0};  // bytes since the beginning
    alignas(64) std::atomic<uint64_t> read{0};
    alignas(64) char bytes[kBytes];
  };
  static constexpr uint64_t kMagic = 0x7761727073696e67;
  void attach();
  template <class Copy>
  void copy_parts(uint64_t at, size_t size, const Copy& copy) const;

  int number_ = -1;
  Shared* shared_ = nullptr;
};

}  // namespace ws::prof
