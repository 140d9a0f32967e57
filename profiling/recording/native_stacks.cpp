#include "profiling/recording/native_stacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/recording/native_code.h"
#include "profiling/recording/own_files.h"

namespace ws::prof {

// A thread that was asked, and what it answers.
struct AskedThread {
  static constexpr size_t kBytes = 16 << 10;
  enum State { Free, Asked, Answered };
  std::atomic<pid_t> task{0};
  std::atomic<int> state{Free};
  std::array<uint64_t, kRegisters> registers{};
  size_t bytes = 0;
  std::array<char, kBytes> stack{};
};

namespace {

constexpr size_t kMostAsked = 16;
constexpr int64_t kLookAgain = 100'000'000, kLongestWait = 200'000;  // ns
// Never freed: a signal may come late.
std::array<AskedThread, kMostAsked>& asked_threads() {
  static auto* const all = new std::array<AskedThread, kMostAsked>;
  return *all;
}
std::array<AskedThread, kMostAsked>* g_asked = nullptr;
std::atomic<bool> g_used{false};

// The end of the stack may come sooner: the system stops at the part that is not there.
size_t copy_stack(uint64_t from, char* to, size_t most) {
  constexpr size_t kPage = 4096;
  std::array<iovec, AskedThread::kBytes / kPage + 1> parts;
  size_t count = 0;
  for (size_t have = 0; have < most; ++count) {
    const size_t part = std::min<size_t>(most - have, kPage - (from + have) % kPage);
    parts[count] = {reinterpret_cast<void*>(from + have), part};
    have += part;
  }
  iovec here{to, most};
  const ssize_t got = process_vm_readv(getpid(), &here, 1, parts.data(), count, 0);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

// Runs on the asked thread, anywhere in its code: only plain calls of the system.
void answer(int, siginfo_t*, void* context) {
  const int before = errno;
  const auto task = static_cast<pid_t>(syscall(SYS_gettid));
  for (AskedThread& asked : *g_asked) {
    if (asked.task.load(std::memory_order_acquire) != task || asked.state.load(std::memory_order_acquire) != AskedThread::Asked)
      continue;
    copy_registers(*static_cast<const ucontext_t*>(context), asked.registers);
    asked.bytes = copy_stack(asked.registers[kStackRegister], asked.stack.data(), asked.stack.size());
    asked.state.store(AskedThread::Answered, std::memory_order_release);
  }
  errno = before;
}

bool is_ours(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == answer;
}

// The last real-time signal that the program leaves alone; 0: none. It stays ours: one may be on its way at the end.
int take_signal() {
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
    struct sigaction now {};
    if (is_ours(signal)) return signal;  // from an earlier time
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_sigaction = answer;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    return sigaction(signal, &ours, nullptr) == 0 ? signal : 0;
  }
  return 0;
}

// What the system says of a thread.
std::string state_of(pid_t task, const char* what) {
  return first_bytes("/proc/self/task/" + std::to_string(task) + "/" + what, 512);
}

// The numbers of this process's threads. opendir() would call malloc().
void each_task(const std::function<void(pid_t)>& see) {
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) char entries[4096];
  long bytes = 0;
  while ((bytes = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
    for (long at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      pid_t task = 0;
      const char* const end = entry->d_name + std::strlen(entry->d_name);
      if (std::from_chars(entry->d_name, end, task).ptr == end) see(task);
      at += entry->d_reclen;
    }
  close(folder);
}

// Time that a thread has run, in ns; -1: there is no such thread.
int64_t ran_ns(pid_t task) {
  constexpr clockid_t kOfThread = 6;  // the kernel's way to name the clock of any thread
  timespec time{};
  if (clock_gettime(static_cast<clockid_t>(~static_cast<unsigned>(task) << 3 | kOfThread), &time) != 0) return -1;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A signal would interrupt a call that waits. A thread that could run but has no processor counts as running.
bool runs_now(pid_t task) {
  const std::string text = state_of(task, "stat");
  const size_t after_name = text.rfind(')');
  return after_name + 2 < text.size() && text[after_name + 2] == 'R';
}

}  // namespace

std::unique_ptr<NativeStacks> NativeStacks::begin(pid_t left_out) {
  if (!NativeCode::kFollows) return nullptr;
  if (g_used.exchange(true)) return nullptr;
  g_asked = &asked_threads();
  if (const int signal = take_signal()) return std::unique_ptr<NativeStacks>(new NativeStacks(signal, left_out));
  g_used = false;
  return nullptr;
}

NativeStacks::~NativeStacks() { g_used = false; }

std::string NativeStacks::task_name(pid_t task) const {
  const std::string name = state_of(task, "comm");
  return name.substr(0, name.find('\n'));
}

void NativeStacks::look_for_tasks() {
  for (auto& [task, known] : tasks_) known.seen = false;
  each_task([this](pid_t task) {
    const auto [at, fresh] = tasks_.try_emplace(task);
    at->second.seen = true;
    if (fresh) at->second.ran = ran_ns(task), at->second.ours = task == left_out_ || task_name(task) == kOwnThread;
  });
  std::erase_if(tasks_, [](const auto& one) { return !one.second.seen; });
  for (AskedThread& asked : *g_asked)
    if (!tasks_.contains(asked.task.load())) asked.state.store(AskedThread::Free);
}

// Threads that have run since the last call. With more of them than can be asked, all have their turn.
std::vector<std::pair<const pid_t, NativeStacks::Task>*> NativeStacks::in_order(const std::vector<pid_t>& first) {
  constexpr int64_t kRuns = 300'000;  // ns since the last time
  std::vector<std::pair<const pid_t, Task>*> running;
  for (auto& one : tasks_) {
    Task& known = one.second;
    const int64_t ran = ran_ns(one.first), since = ran - known.ran;
    if (ran >= 0) known.ran = ran;
    if (!known.ours && ran >= 0 && since >= kRuns) running.push_back(&one);
  }
  const auto rank = [&first](const auto* one) {
    return std::pair(std::ranges::find(first, one->first) == first.end(), one->second.asked);
  };
  std::ranges::sort(running, {}, rank);
  return running;
}

bool NativeStacks::ask_now(pid_t task) const {
  const auto free = std::ranges::find_if(*g_asked, [](const AskedThread& one) { return one.state.load() == AskedThread::Free; });
  free->task.store(task, std::memory_order_release);
  free->state.store(AskedThread::Asked, std::memory_order_release);
  const bool asked = syscall(SYS_tgkill, getpid(), task, signal_) == 0;
  if (!asked) free->state.store(AskedThread::Free);
  return asked;
}

void NativeStacks::ask(const std::vector<pid_t>& first) {
  const int64_t now = steady_ns();
  if (now - looked_for_tasks_ > kLookAgain) look_for_tasks(), looked_for_tasks_ = now;
  if (!is_ours(signal_)) return;  // the program has taken it
  const auto is_free = [](const AskedThread& one) { return one.state.load() == AskedThread::Free; };
  auto free = std::ranges::count_if(*g_asked, is_free);
  for (auto* const one : in_order(first)) {
    if (free == 0) return;
    const bool waits = std::ranges::any_of(*g_asked, [&](const AskedThread& asked) { return !is_free(asked) && asked.task.load() == one->first; });
    if (waits || !runs_now(one->first) || !ask_now(one->first)) continue;
    one->second.asked = ++questions_;
    --free;
  }
}

namespace {

std::vector<uint64_t> followed(const AskedThread& asked) {
  const uint64_t bottom = asked.registers[kStackRegister];
  const auto word = [&](uint64_t address) -> uint64_t {
    uint64_t value = 0;
    if (address >= bottom && asked.bytes >= sizeof value && address - bottom <= asked.bytes - sizeof value)
      std::memcpy(&value, asked.stack.data() + (address - bottom), sizeof value);
    return value;
  };
  std::vector<uint64_t> code;
  for (const NativeCode::Frame& frame : NativeCode::instance().follow(asked.registers, word)) code.push_back(frame.code);
  return code;
}

}  // namespace

std::vector<NativeStack> NativeStacks::take() {
  const int64_t until = steady_ns() + kLongestWait;
  std::vector<NativeStack> taken;
  for (AskedThread& asked : *g_asked) {
    while (asked.state.load(std::memory_order_acquire) == AskedThread::Asked && steady_ns() < until) sched_yield();
    if (asked.state.load(std::memory_order_acquire) != AskedThread::Answered) continue;
    taken.push_back({asked.task.load(), followed(asked)});
    asked.state.store(AskedThread::Free, std::memory_order_release);
  }
  return taken;
}

}  // namespace ws::prof
