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
#include <cstdio>
#include <cstring>
#include <utility>

#include "profiling/base/clock.h"

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
constexpr int64_t kLookAgain = 100'000'000, kPatience = 200'000;  // ns
constexpr size_t kMostFrames = 100, kMostRemembered = 200'000;
// Never freed: a signal may come late.
std::array<AskedThread, kMostAsked>& asked_threads() {
  static auto* const all = new std::array<AskedThread, kMostAsked>;
  return *all;
}
std::array<AskedThread, kMostAsked>* g_asked = nullptr;
std::atomic<bool> g_used{false};

#if defined(__x86_64__)
constexpr bool kFollows = true;

void copy_registers(const ucontext_t& context, std::array<uint64_t, kRegisters>& to) {
  constexpr int kOrder[kRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (size_t i = 0; i < kRegisters; ++i) to[i] = static_cast<uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
}
#else
constexpr bool kFollows = false;
void copy_registers(const ucontext_t&, std::array<uint64_t, kRegisters>&) {}
#endif

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
std::string first_bytes(pid_t task, const char* what) {
  char path[64], bytes[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", static_cast<int>(task), what);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? -1 : read(file, bytes, sizeof bytes);
  if (file >= 0) close(file);
  return got > 0 ? std::string(bytes, static_cast<size_t>(got)) : std::string();
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
  const std::string text = first_bytes(task, "stat");
  const size_t after_name = text.rfind(')');
  return after_name + 2 < text.size() && text[after_name + 2] == 'R';
}

}  // namespace

std::unique_ptr<NativeStacks> NativeStacks::begin(pid_t left_out) {
  if (!kFollows) return nullptr;
  if (g_used.exchange(true)) return nullptr;
  g_asked = &asked_threads();
  if (const int signal = take_signal()) return std::unique_ptr<NativeStacks>(new NativeStacks(signal, left_out));
  g_used = false;
  return nullptr;
}

NativeStacks::~NativeStacks() { g_used = false; }

std::string NativeStacks::task_name(pid_t task) const {
  const std::string name = first_bytes(task, "comm");
  return name.substr(0, name.find('\n'));
}

void NativeStacks::look_for_tasks() {
  for (auto& [task, known] : tasks_) known.seen = false;
  if (DIR* const folder = opendir("/proc/self/task")) {
    while (const dirent* const entry = readdir(folder)) {
      pid_t task = 0;
      const char* const end = entry->d_name + std::strlen(entry->d_name);
      if (std::from_chars(entry->d_name, end, task).ptr != end) continue;
      const auto [at, fresh] = tasks_.try_emplace(task);
      at->second.seen = true;
      if (fresh) at->second.ran = ran_ns(task), at->second.ours = task == left_out_ || task_name(task) == kOwnThread;
    }
    closedir(folder);
  }
  std::erase_if(tasks_, [](const auto& one) { return !one.second.seen; });
  for (AskedThread& asked : *g_asked)
    if (!tasks_.contains(asked.task.load())) asked.state.store(AskedThread::Free);
}

void NativeStacks::ask() {
  constexpr int64_t kRuns = 300'000;  // ns since the last time
  const int64_t now = steady_ns();
  if (now - looked_for_tasks_ > kLookAgain) look_for_tasks(), looked_for_tasks_ = now;
  if (!is_ours(signal_)) return;  // the program has taken it
  for (auto& [task, known] : tasks_) {
    const int64_t ran = ran_ns(task), since = ran - known.ran;
    if (ran >= 0) known.ran = ran;
    if (known.ours || ran < 0 || since < kRuns || !runs_now(task)) continue;
    const auto free = std::ranges::find_if(*g_asked, [](const AskedThread& one) { return one.state.load() == AskedThread::Free; });
    const bool waits = std::ranges::any_of(*g_asked, [task = task](const AskedThread& one) {
      return one.state.load() != AskedThread::Free && one.task.load() == task;
    });
    if (free == g_asked->end() || waits) continue;
    free->task.store(task, std::memory_order_release);
    free->state.store(AskedThread::Asked, std::memory_order_release);
    if (syscall(SYS_tgkill, getpid(), task, signal_) != 0) free->state.store(AskedThread::Free);
  }
}

std::vector<NativeStack> NativeStacks::take() {
  const int64_t until = steady_ns() + kPatience;
  std::vector<NativeStack> taken;
  for (AskedThread& asked : *g_asked) {
    while (asked.state.load(std::memory_order_acquire) == AskedThread::Asked && steady_ns() < until) sched_yield();
    if (asked.state.load(std::memory_order_acquire) != AskedThread::Answered) continue;
    taken.push_back({asked.task.load(), follow(asked)});
    asked.state.store(AskedThread::Free, std::memory_order_release);
  }
  return taken;
}

namespace {

struct Loaded {
  uint64_t begin, end, base;
  std::string path;
};

int add_library(dl_phdr_info* library, size_t, void* given) {
  Loaded one{UINT64_MAX, 0, library->dlpi_addr, library->dlpi_name ? library->dlpi_name : ""};
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
    one.begin = std::min(one.begin, one.base + part.p_vaddr);
    one.end = std::max(one.end, one.base + part.p_vaddr + part.p_memsz);
  }
  if (one.path.empty()) one.path = "/proc/self/exe";
  if (one.begin < one.end && one.path[0] == '/') static_cast<std::vector<Loaded>*>(given)->push_back(std::move(one));
  return 0;
}

std::string file_name(const std::string& path) {
  std::string real = path;
  if (path == "/proc/self/exe") {
    char target[4096];
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length > 0) real.assign(target, static_cast<size_t>(length));
  }
  return real.substr(real.rfind('/') + 1);
}

}  // namespace

void NativeStacks::look_for_libraries() {
  std::vector<Loaded> loaded;
  dl_iterate_phdr(add_library, &loaded);
  std::vector<std::unique_ptr<Library>> kept;
  for (Loaded& one : loaded) {
    const auto same = std::ranges::find_if(libraries_, [&](const auto& old) {
      return old && old->begin == one.begin && old->end == one.end && old->path == one.path;
    });
    if (same != libraries_.end()) {
      kept.push_back(std::move(*same));
      continue;
    }
    const std::string name = file_name(one.path);
    kept.push_back(std::make_unique<Library>(Library{one.begin, one.end, one.base, one.path, nullptr}));
    kept.back()->interpreter = name.starts_with("libpython") || name.starts_with("python");
    std::erase_if(rules_, [&](const auto& known) { return known.first >= one.begin && known.first < one.end; });
    std::erase_if(names_, [&](const auto& known) { return known.first >= one.begin && known.first < one.end; });
  }
  std::ranges::sort(kept, {}, [](const auto& library) { return library->begin; });
  libraries_ = std::move(kept);
}

NativeStacks::Library* NativeStacks::library_of(uint64_t code) {
  for (int tries = 0; tries < 2; ++tries) {
    const auto after = std::ranges::upper_bound(libraries_, code, {}, [](const auto& library) { return library->begin; });
    if (after != libraries_.begin() && code < (*std::prev(after))->end) return std::prev(after)->get();
    const int64_t now = steady_ns();
    if (tries > 0 || now - looked_for_libraries_ < kLookAgain) return nullptr;
    looked_for_libraries_ = now;
    look_for_libraries();
  }
  return nullptr;
}

const ElfFile* NativeStacks::file_of(Library& library) {
  if (!std::exchange(library.opened, true)) library.file = ElfFile::open(library.path);
  return library.file.get();
}

const UnwindRule* NativeStacks::rule(uint64_t code) {
  if (const auto known = rules_.find(code); known != rules_.end()) return known->second.get();
  if (rules_.size() > kMostRemembered) rules_.clear();
  std::unique_ptr<UnwindRule> made;
  if (Library* const library = library_of(code))
    if (const ElfFile* const file = file_of(*library))
      if (const auto found = unwind_rule(*file, code - library->base)) made = std::make_unique<UnwindRule>(*found);
  return (rules_[code] = std::move(made)).get();
}

std::vector<uint64_t> NativeStacks::follow(const AskedThread& asked) {
  std::array<uint64_t, kRegisters> values = asked.registers;
  const uint64_t bottom = values[kStackRegister];
  const auto word = [&](uint64_t address) -> uint64_t {
    uint64_t value = 0;
    if (address >= bottom && asked.bytes >= sizeof value && address - bottom <= asked.bytes - sizeof value)
      std::memcpy(&value, asked.stack.data() + (address - bottom), sizeof value);
    return value;
  };
  std::vector<uint64_t> code{values[kReturnRegister]};
  while (code.size() < kMostFrames) {
    // A return address stands behind its call, which may be the end of the function.
    const UnwindRule* const here = rule(code.back() - (code.size() > 1 ? 1 : 0));
    if (!here) break;
    const uint64_t begin = values[here->base] + static_cast<uint64_t>(int64_t{here->offset});
    if (begin <= values[kStackRegister] || here->saved[kReturnRegister] >= UnwindRule::kLost) break;
    const auto saved = [&](size_t i) { return word(begin + static_cast<uint64_t>(int64_t{here->saved[i]})); };
    for (size_t i = 0; i < kReturnRegister; ++i)
      if (here->saved[i] < UnwindRule::kLost) values[i] = saved(i);
    values[kStackRegister] = begin;
    const uint64_t next = saved(kReturnRegister);
    if (next == 0) break;
    code.push_back(next);
  }
  for (size_t i = 1; i < code.size(); ++i) --code[i];
  return code;
}

const std::string& NativeStacks::name(uint64_t code) {
  const auto known = names_.find(code);
  if (known != names_.end()) return known->second;
  if (names_.size() > kMostRemembered) names_.clear();
  std::string text;
  if (Library* const library = library_of(code)) {
    const ElfFile* const file = file_of(*library);
    const std::string function = file ? file->function_at(code - library->base) : std::string();
    text = (function.empty() ? "?" : short_function_name(function)) + " (" + file_name(library->path) + ")";
  }
  return names_[code] = std::move(text);
}

bool NativeStacks::is_interpreter(uint64_t code) {
  const Library* const library = library_of(code);
  return library && library->interpreter;
}

}  // namespace ws::prof
