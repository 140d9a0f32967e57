// A thread with a stack of a megabyte. Threads of the standard library reserve eight each, and a program that is recorded
// may have a limit on its address space.
#pragma once
#include <pthread.h>

#include <functional>
#include <memory>
#include <system_error>
#include <utility>

namespace ws {

class SmallThread {
 public:
  SmallThread() = default;
  // Throws std::system_error if there can be no further thread.
  explicit SmallThread(std::function<void()> work) {
    constexpr size_t kStack = size_t{1} << 20;
    auto task = std::make_unique<std::function<void()>>(std::move(work));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    const int error = pthread_create(&thread_, &attributes, run, task.get());
    pthread_attr_destroy(&attributes);
    if (error != 0) throw std::system_error(error, std::generic_category(), "no further thread can be started");
    task.release();
    joinable_ = true;
  }
  SmallThread(SmallThread&& other) noexcept { *this = std::move(other); }
  SmallThread& operator=(SmallThread&& other) noexcept {
    if (joinable_) std::terminate();  // as std::thread does
    thread_ = other.thread_, joinable_ = std::exchange(other.joinable_, false);
    return *this;
  }
  ~SmallThread() {
    if (joinable_) std::terminate();
  }

  bool joinable() const { return joinable_; }
  void join() {
    pthread_join(thread_, nullptr);
    joinable_ = false;
  }
  bool is_this_one() const { return joinable_ && pthread_equal(pthread_self(), thread_) != 0; }

 private:
  static void* run(void* task) {
    const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(task));
    (*work)();
    return nullptr;
  }

  pthread_t thread_{};
  bool joinable_ = false;
};

}  // namespace ws
