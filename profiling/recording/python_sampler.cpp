#include "profiling/recording/python_sampler.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/recording/injected.h"

namespace ws::prof {
namespace {

constexpr int64_t kEach = 1'000'000, kLongest = 100'000'000;  // time between samples, longest span of one sample; ns
constexpr int64_t kShareOfCore = 20;                          // sampling uses at most 1/20 of a core
constexpr size_t kMostStacks = 100'000;

uint64_t mixed(const StackOfThread& stack) {
  uint64_t hash = stack.frames.size();
  for (const CodeAt& at : stack.frames) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(at.code) ^ (static_cast<uint64_t>(at.last) << 44)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

// CPU time of this thread: waiting for the interpreter does not count.
int64_t worked_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

// Blocks all signals in the new thread: they belong to the program.
PythonSampler::PythonSampler(std::function<std::string(unsigned long)> thread_name) : thread_name_(std::move(thread_name)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void PythonSampler::stop() {
  if (stopping_.exchange(true)) return;
  thread_.join();
  const int64_t now = steady_ns();
  for (const auto& [thread, open] : open_) tell(open, now);
}

void PythonSampler::run() {
  pthread_setname_np(pthread_self(), "warpscope");
  int64_t wait = kEach;
  while (!stopping_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(wait));
    const int64_t begin = worked_ns();
    sample();
    wait = std::clamp((worked_ns() - begin) * kShareOfCore, kEach, kLongest);
  }
}

bool PythonSampler::known(const StackOfThread& stack) {
  return stack.frames.empty() || numbers_.contains(mixed(stack)) ||
         std::ranges::all_of(stack.frames, [](const CodeAt& at) { return known_frame(at) != nullptr; });
}

uint32_t PythonSampler::number(const StackOfThread& stack) {
  const uint64_t key = mixed(stack);
  if (const auto at = numbers_.find(key); at != numbers_.end()) return at->second;
  std::string text;
  for (const CodeAt& at : stack.frames)
    if (const std::string* name = known_frame(at); name && !name->empty()) text += (text.empty() ? "" : " < ") + *name;
  if (numbers_.size() > kMostStacks) numbers_.clear();
  return numbers_[key] = text.empty() ? kNowhere : recorder()->notes().stack(text);
}

void PythonSampler::sample() {
  if (!recorder()) return;
  const int64_t now = steady_ns();
  read_all_stacks(stacks_);
  const auto strange = [this](const StackOfThread& stack) { return !known(stack) || !open_.contains(stack.thread); };
  if (std::ranges::any_of(stacks_, strange)) {
    learn_names(stacks_);
    for (const StackOfThread& stack : stacks_)
      if (!open_.contains(stack.thread)) open_[stack.thread].name = thread_name_(stack.thread);
  }
  for (const StackOfThread& stack : stacks_) {
    Open& open = open_[stack.thread];
    open.seen = true;
    if (stack.frames.empty()) continue;
    const uint32_t stack_number = number(stack);
    if (open.stack == stack_number && now - open.begin < kLongest) continue;
    tell(open, now);
    open.stack = stack_number, open.begin = now;
  }
  for (auto at = open_.begin(); at != open_.end();) {
    const bool seen = std::exchange(at->second.seen, false);
    if (!seen) tell(at->second, now);
    at = seen ? std::next(at) : open_.erase(at);
  }
}

void PythonSampler::tell(const Open& open, int64_t end) const {
  if (open.stack != kNowhere && recorder()) recorder()->notes().sample(kSamplesTrack + open.name, open.stack, open.begin, end);
}

}  // namespace ws::prof
