#include "profiling/analysis/waiting_threads.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "profiling/base/text.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

struct PythonWait {
  std::string_view file, function;
};
// Python's own functions that wait in C. Their classes are in their names since 3.11.
constexpr PythonWait kPython[] = {
    {"threading.py", "wait"},          {"threading.py", "acquire"},
    {"threading.py", "join"},          {"threading.py", "_wait_for_tstate_lock"},
    {"queue.py", "get"},               {"queue.py", "put"},
    {"selectors.py", "select"},        {"multiprocessing/connection.py", "wait"},
    {"multiprocessing/connection.py", "_recv"},  {"multiprocessing/connection.py", "_poll"},
    {"multiprocessing/connection.py", "accept"}, {"multiprocessing/queues.py", "get"},
    {"multiprocessing/popen_fork.py", "poll"},   {"subprocess.py", "_try_wait"},
    {"concurrent/futures/thread.py", "_worker"}, {"socket.py", "accept"},
    {"socket.py", "readinto"},
};
// Functions of the C library. sched_yield: pools of threads that spin until work comes.
constexpr std::string_view kNative[] = {"accept", "accept4", "clock_nanosleep", "epoll_pwait", "epoll_wait", "msgrcv", "nanosleep", "pause",
                                        "poll", "ppoll", "pselect", "pthread_cond_clockwait", "pthread_cond_timedwait", "pthread_cond_wait",
                                        "pthread_join", "read", "recv", "recvfrom", "recvmsg", "sched_yield", "select", "sem_clockwait",
                                        "sem_timedwait", "sem_wait", "sigwait", "sleep", "syscall", "usleep", "wait4", "waitpid"};

bool is_python(const CodeFrame& frame) { return frame.path.ends_with(".py"); }

bool waits_in_python(const CodeFrame& frame) {
  const std::string_view function = std::string_view(frame.function).substr(frame.function.rfind('.') + 1);
  return std::ranges::any_of(kPython, [&](const PythonWait& wait) {
    return function == wait.function && frame.path.find("/lib/python") != std::string::npos && frame.path.ends_with("/" + std::string(wait.file));
  });
}

bool waits_in_libc(const CodeFrame& frame) {
  const std::string_view file = std::string_view(frame.path).substr(frame.path.rfind('/') + 1);
  if (!file.starts_with("libc.so") && !file.starts_with("libpthread")) return false;
  std::string_view name = std::string_view(frame.function).substr(0, frame.function.find('@'));
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name.find("futex") != std::string_view::npos || std::ranges::find(kNative, name) != std::end(kNative);
}

// Native frames inside Python's own function that waits belong to it.
bool waits(const FrameStack& stack) {
  if (stack.size() < 2) return false;
  const auto python = std::find_if(stack.rbegin(), stack.rend(), is_python);
  return waits_in_libc(stack.back()) || (python != stack.rend() && waits_in_python(*python));
}

bool is_main(std::string_view thread) { return thread.find(kMainThread) != std::string_view::npos; }

}  // namespace

WorkingStacks without_waits(HostStacks stacks) {
  WorkingStacks working;
  std::set<std::string> threads;
  std::erase_if(stacks, [&](const auto& item) {
    const auto& [stack, ns] = item;
    if (stack.empty() || is_main(stack[0].function) || !waits(stack)) return false;
    threads.insert(stack[0].function), working.waited_ns += ns;
    return true;
  });
  working.stacks = std::move(stacks), working.waiting = threads.size();
  return working;
}

bool mostly_waits(const Trace& trace, const Track& samples) {
  constexpr size_t kNewest = 100;
  if (is_main(sampled_thread(samples))) return false;
  std::map<NameId, bool> known;
  size_t seen = 0, waiting = 0;
  for (auto block = samples.blocks.rbegin(); block != samples.blocks.rend() && seen < kNewest; ++block)
    for (auto span = block->spans.rbegin(); span != block->spans.rend() && seen < kNewest; ++span, ++seen) {
      const auto [at, fresh] = known.try_emplace(span->name, false);
      if (fresh) {
        FrameStack stack{{"", 0, sampled_thread(samples)}};
        std::ranges::copy(sampled_frames(trace, span->name), std::back_inserter(stack));
        at->second = waits(stack);
      }
      waiting += at->second;
    }
  return 2 * waiting > seen;
}

std::string waiting_text(const WorkingStacks& stacks) {
  if (stacks.waiting == 0) return "";
  return formatted("{} waiting thread{}, {}", stacks.waiting, stacks.waiting == 1 ? "" : "s",
                   ws::time_text(static_cast<double>(stacks.waited_ns) * 1e-3));
}

}  // namespace ws::prof
