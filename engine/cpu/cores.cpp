#include "engine/cpu/cores.h"

#include <cblas.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace ws::cpu {
namespace {

std::atomic<int> g_on_one_core{0};
thread_local bool t_inside = false;  // of a piece

// Threads that help one caller at a time.
class Helpers {
 public:
  explicit Helpers(int64_t count) {
    for (int64_t i = 0; i < count; ++i) std::thread([this] { help(); }).detach();
  }

  // False if they cannot help: another caller has them, or other programs their cores.
  bool run(int64_t pieces, const std::function<void(int64_t)>& work) {
    const std::unique_lock mine(caller_, std::try_to_lock);
    if (!mine) return false;
    if (alone_ > 0 && alone_--) return false;
    next_ = 0, pieces_ = pieces, failure_ = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    publish(&work);
    take(work);
    publish(nullptr);
    const auto done = std::chrono::steady_clock::now();
    while (inside_ > 0) std::this_thread::yield();
    learn(done - begin, std::chrono::steady_clock::now() - done);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return true;
  }

 private:
  void publish(const std::function<void(int64_t)>* work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = work;
      if (!work) return;
      ++jobs_;
    }
    begun_.notify_all();
  }

  // A helper whose core another program takes holds the caller up: then the caller works alone for a while, longer each time.
  void learn(std::chrono::steady_clock::duration worked, std::chrono::steady_clock::duration waited) {
    constexpr int64_t kMostAlone = 256;
    times_alone_ = waited > worked ? std::min(kMostAlone, 2 * times_alone_ + 1) : times_alone_ / 2;
    alone_ = times_alone_;
  }

  void take(const std::function<void(int64_t)>& work) {
    t_inside = true;
    try {
      for (int64_t i = next_++; i < pieces_; i = next_++) work(i);
    } catch (...) {
      next_ = pieces_;
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    t_inside = false;
  }

  // The next op often follows within microseconds, and to wake a thread takes longer.
  void wait_a_moment(uint64_t seen) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    while (jobs_ == seen && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  void help() {
    for (uint64_t seen = 0;;) {
      wait_a_moment(seen);
      const std::function<void(int64_t)>* work = nullptr;
      {
        std::unique_lock lock(mutex_);
        begun_.wait(lock, [&] { return jobs_ != seen; });
        seen = jobs_;
        work = work_;
        if (work) ++inside_;
      }
      if (!work) continue;
      take(*work);
      --inside_;
    }
  }

  std::mutex caller_, mutex_;
  std::condition_variable begun_;
  const std::function<void(int64_t)>* work_ = nullptr;
  std::atomic<uint64_t> jobs_{0};
  std::atomic<int64_t> next_{0}, inside_{0};
  int64_t pieces_ = 0, alone_ = 0, times_alone_ = 0;
  std::exception_ptr failure_;
};

// OpenBLAS's own threads wait for each other, also for those that another program keeps from running. So each product is one thread's.
int64_t all_cores() {
  static const int64_t count = [] {
    const int64_t threads = openblas_get_num_threads();
    openblas_set_num_threads(1);
    return threads;
  }();
  return count;
}

}  // namespace

int64_t cores() {
  const int64_t all = all_cores();
  return t_inside || g_on_one_core > 0 ? 1 : all;
}

void keep_to_one_core(bool wanted) { g_on_one_core += wanted ? 1 : -1; }

void share_pieces(int64_t pieces, const std::function<void(int64_t)>& work) {
  if (cores() > 1) {
    static Helpers& helpers = *new Helpers(all_cores() - 1);  // they last until the process ends
    if (helpers.run(pieces, work)) return;
  }
  for (int64_t i = 0; i < pieces; ++i) work(i);
}

}  // namespace ws::cpu
