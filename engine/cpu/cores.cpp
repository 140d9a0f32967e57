#include "engine/cpu/cores.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace ws::cpu {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> g_on_one_core{0};
thread_local bool t_inside = false;  // of a piece

void pause_briefly() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Other threads get the processor now and then: one of them may be what the caller waits for.
template <class Done>
void spin(const Done& done) {
  for (int turn = 1; !done(); ++turn) turn % 128 == 0 ? std::this_thread::yield() : pause_briefly();
}

// Threads that help one caller at a time.
class Helpers {
 public:
  explicit Helpers(int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      std::thread([this] {
        const SmallIsZero zero;
        help();
      }).detach();
  }

  // False if they cannot help: another caller has them, or other programs their cores.
  bool run(int64_t pieces, const std::function<void(int64_t)>& work) {
    const std::unique_lock mine(caller_, std::try_to_lock);
    if (!mine) return false;
    if (alone_ > 0 && alone_--) return false;
    work_ = &work, next_ = 0, pieces_ = pieces, failure_ = nullptr;
    const auto begin = Clock::now();
    open_ = ++jobs_;
    wake();
    take();
    open_ = 0;
    const auto done = Clock::now();
    spin([&] { return inside_ == 0; });
    learn(done - begin, Clock::now() - done);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return true;
  }

 private:
  // A helper whose core another program takes holds the caller up: then the caller works alone for a while, longer each time.
  void learn(Clock::duration worked, Clock::duration waited) {
    constexpr int64_t kMostAlone = 256;
    constexpr auto kUsual = std::chrono::microseconds(50);
    times_alone_ = waited > worked + kUsual ? std::min(kMostAlone, 2 * times_alone_ + 1) : times_alone_ / 2;
    alone_ = times_alone_;
  }

  void take() {
    t_inside = true;
    try {
      for (int64_t i = next_++; i < pieces_; i = next_++) (*work_)(i);
    } catch (...) {
      next_ = pieces_;
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    t_inside = false;
  }

  void wake() {
    if (sleepers_ == 0) return;
    { const std::lock_guard lock(mutex_); }  // a helper is not between its look at open_ and its sleep
    begun_.notify_all();
  }

  bool is_new(uint64_t seen) const {
    const uint64_t job = open_;
    return job != 0 && job != seen;
  }

  // The next op often follows within microseconds, and to wake a thread takes longer.
  void wait(uint64_t seen) {
    constexpr auto kAwake = std::chrono::microseconds(100);
    const auto end = Clock::now() + kAwake;
    spin([&] { return is_new(seen) || Clock::now() > end; });
    if (is_new(seen)) return;
    std::unique_lock lock(mutex_);
    ++sleepers_;
    begun_.wait(lock, [&] { return is_new(seen); });
    --sleepers_;
  }

  void help() {
    for (uint64_t seen = 0;; wait(seen)) {
      const uint64_t job = open_;
      if (job == 0 || job == seen) continue;
      seen = job;
      ++inside_;
      if (open_ == job) take();  // the caller waits for all who are inside when it closes the job
      --inside_;
    }
  }

  std::mutex caller_, mutex_;
  std::condition_variable begun_;
  const std::function<void(int64_t)>* work_ = nullptr;
  uint64_t jobs_ = 0;
  alignas(64) std::atomic<uint64_t> open_{0};  // number of the job that helpers may join; 0: none
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<int64_t> inside_{0}, sleepers_{0};
  int64_t pieces_ = 0, alone_ = 0, times_alone_ = 0;
  std::exception_ptr failure_;
};

// Processors that the control group of this process may use at a time; 0 if there is no limit.
int64_t quota() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(groups, line))
    if (line.starts_with("0::")) path = line.substr(3);
  double least = 0;
  for (;; path.resize(path.find_last_of('/'))) {
    double time = 0, period = 0;
    std::ifstream limit("/sys/fs/cgroup" + path + "/cpu.max");
    if (limit >> time >> period && period > 0 && (least == 0 || time / period < least)) least = time / period;
    if (path.find('/') == std::string::npos) break;
  }
  return static_cast<int64_t>(std::ceil(least));
}

int64_t usable_processors() {
  constexpr long kMost = 256;
  if (const char* wanted = std::getenv("OMP_NUM_THREADS"))
    if (const long threads = std::strtol(wanted, nullptr, 10); threads > 0) return std::min(threads, kMost);
  cpu_set_t set;
  const int64_t here = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : std::thread::hardware_concurrency();
  const int64_t most = quota();
  return std::max<int64_t>(1, most > 0 ? std::min(here, most) : here);
}

int64_t all_cores() {
  static const int64_t count = usable_processors();
  return count;
}

}  // namespace

#ifdef __x86_64__
SmallIsZero::SmallIsZero() : before_(__builtin_ia32_stmxcsr()) {
  constexpr uint32_t kResults = 0x8000, kOperands = 0x0040;
  __builtin_ia32_ldmxcsr(before_ | kResults | kOperands);
}
SmallIsZero::~SmallIsZero() { __builtin_ia32_ldmxcsr(before_); }
#else
SmallIsZero::SmallIsZero() = default;
SmallIsZero::~SmallIsZero() = default;
#endif

int64_t cores() { return t_inside || g_on_one_core > 0 ? 1 : all_cores(); }

void keep_to_one_core(bool wanted) { g_on_one_core += wanted ? 1 : -1; }

void share_pieces(int64_t pieces, const std::function<void(int64_t)>& work) {
  if (cores() > 1) {
    static Helpers& helpers = *new Helpers(all_cores() - 1);  // they last until the process ends
    if (helpers.run(pieces, work)) return;
  }
  for (int64_t i = 0; i < pieces; ++i) work(i);
}

}  // namespace ws::cpu
