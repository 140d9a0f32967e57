#include "profiling/recording/host_sampler.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/recording/native_code.h"
#include "profiling/recording/own_files.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/look_up.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

constexpr int64_t kEach = 1'000'000, kLongest = 100'000'000;  // time between samples, longest span of one sample; ns
constexpr int64_t kShareOfCore = 20;                          // sampling uses at most 1/20 of a core in the long run
// New names cost much once. Sampling then goes on at this pace, unless it owes more than a moment of names.
constexpr int64_t kAtRest = 10'000'000, kWhileLearning = 20'000'000, kMostOwed = 2'000'000'000;
constexpr size_t kMostStacks = 100'000;

uint64_t hash_of(const StackOfThread& stack, const std::vector<uint64_t>& native) {
  uint64_t hash = stack.frames.size();
  for (const uint64_t code : native) hash = mixed(hash, code);
  for (const CodeAt& at : stack.frames)
    hash = mixed(hash, reinterpret_cast<uintptr_t>(at.code) ^ (static_cast<uint64_t>(at.last) << 44));
  return hash;
}

}  // namespace

// Blocks all signals in the new thread: they belong to the program.
HostSampler::HostSampler(Options options)
    : options_(std::move(options)), native_(options_.native ? NativeStacks::begin(options_.left_out) : nullptr) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = SmallThread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void HostSampler::stop() {
  if (stopping_.exchange(true)) return;
  thread_.join();
  const int64_t now = steady_ns();
  for (const auto& [thread, open] : open_) report(open, now);
}

void HostSampler::run() {
  pthread_setname_np(pthread_self(), kOwnThread);
  int64_t owed = 0, wait = kEach;  // owed: how long sampling must rest for its share of a core
  last_ = steady_ns();
  while (!stopping_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(wait));
    const int64_t begin = worked_ns();
    asking_ns_ = 0;
    sample();
    owed = std::max<int64_t>(0, owed - wait) + (worked_ns() - begin + asking_ns_) * kShareOfCore;
    wait = !notes_ ? kAtRest : std::clamp(owed, kEach, owed > kMostOwed ? kLongest : kWhileLearning);
  }
}

bool HostSampler::known(const StackOfThread& stack) {
  return stack.frames.empty() || numbers_.contains(hash_of(stack, {})) ||
         std::ranges::all_of(stack.frames, [](const CodeAt& at) { return known_frame(at) != nullptr; });
}

// Innermost first. Of the native frames without a name only the innermost is shown.
std::vector<CodeFrame> HostSampler::frames_of(const StackOfThread& stack, const std::vector<uint64_t>& native) {
  std::vector<CodeFrame> frames;
  for (const uint64_t at : native)
    if (CodeFrame frame = NativeCode::instance().frame(at); !frame.path.empty() && (frames.empty() || !frame.function.empty())) {
      if (frame.function.empty()) frame.function = "?";
      frames.push_back(std::move(frame));
    }
  for (const CodeAt& at : stack.frames)
    if (const CodeFrame* frame = known_frame(at); frame && *frame != CodeFrame()) frames.push_back(*frame);
  if (frames.size() > kMostStackFrames) frames.resize(kMostStackFrames);
  return frames;
}

uint32_t HostSampler::number(const StackOfThread& stack, const std::vector<uint64_t>& native) {
  const uint64_t key = hash_of(stack, native);
  if (const auto at = numbers_.find(key); at != numbers_.end()) return at->second;
  CodeStack frames{frames_of(stack, native)};
  std::ranges::reverse(frames.frames);
  frames.own = frames.frames.size();
  if (numbers_.size() > kMostStacks) numbers_.clear();
  return numbers_[key] = frames.frames.empty() ? kNowhere : notes_->stack(std::move(frames));
}

// The native frames inside the innermost Python frame, if that is still the one in which they were seen.
std::vector<uint64_t> HostSampler::native_of(const StackOfThread& stack) {
  const auto answer = std::ranges::find_if(answers_, [&](const NativeStack& one) { return one.task == stack.task; });
  if (answer == answers_.end()) return {};
  std::vector<uint64_t> code = std::move(answer->code);
  answers_.erase(answer);
  if (!stands_still(stack)) return {};
  const auto python = std::ranges::find_if(code, [](uint64_t at) { return NativeCode::instance().is_interpreter(at); });
  code.erase(python, code.end());
  return code;
}

void HostSampler::keep(Open& open, uint32_t stack, int64_t now) {
  open.seen = true;
  if (open.stack == stack && now - open.begin < kLongest) return;
  report(open, now);
  open.stack = stack, open.begin = now;
}

// Threads without Python frames. Each is shown while it runs.
void HostSampler::sample_natives(int64_t now) {
  for (const NativeStack& answer : answers_) {
    const auto [at, fresh] = open_.try_emplace(static_cast<unsigned long>(answer.task));
    if (fresh) at->second.name = native_->task_name(answer.task) + " " + std::to_string(answer.task), at->second.begin = last_;
    const uint32_t stack = number({}, answer.code);
    if (fresh) at->second.stack = stack;
    keep(at->second, stack, now);
  }
}

void HostSampler::sample() {
  notes_ = options_.notes();
  if (!notes_) return open_.clear();
  const int64_t now = steady_ns();
  if (native_) {
    python_tasks_.clear();
    for (const StackOfThread& stack : stacks_) python_tasks_.push_back(stack.task);
    asking_ns_ = with_own_files([this] { native_->ask(python_tasks_); });
  }
  read_all_stacks(stacks_);
  if (native_) answers_ = native_->take();
  const auto strange = [this](const StackOfThread& stack) { return !known(stack) || !open_.contains(stack.thread); };
  if (std::ranges::any_of(stacks_, strange)) {
    learn_names(stacks_);
    if (options_.learned) options_.learned();
    for (const StackOfThread& stack : stacks_)
      if (!open_.contains(stack.thread))
        if (std::string name = options_.thread_name(stack.thread); !name.empty()) open_[stack.thread].name = std::move(name);
  }
  for (const StackOfThread& stack : stacks_) {
    const auto at = open_.find(stack.thread);
    if (at == open_.end()) continue;  // a thread that is starting: its name comes with a later sample
    Open& open = at->second;
    open.seen = true;
    if (!stack.frames.empty()) keep(open, number(stack, native_of(stack)), now);
  }
  sample_natives(now);
  for (auto at = open_.begin(); at != open_.end();) {
    const bool seen = std::exchange(at->second.seen, false);
    if (!seen) report(at->second, now);
    at = seen ? std::next(at) : open_.erase(at);
  }
  last_ = now;
}

void HostSampler::report(const Open& open, int64_t end) const {
  if (HostNotes* const notes = options_.notes(); notes && open.stack != kNowhere)
    notes->sample(std::string(kSamplesOf) + open.name, open.stack, open.begin, end);
}

}  // namespace ws::prof
