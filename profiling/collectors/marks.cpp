#include "profiling/collectors/marks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <limits>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/annotate/nvtx_ranges.h"

namespace ws::prof {

namespace {

// Marks the thread's state as reusable when the thread ends. Its queued events stay until they are drained.
struct ThreadHandle {
  MarkedThread* state = nullptr;
  ~ThreadHandle() {
    if (state) state->finished.store(true, std::memory_order_release);
  }
};
thread_local ThreadHandle t_thread;

uint32_t step_number(int64_t step) { return static_cast<uint32_t>(step + 1); }

}  // namespace

Marks& Marks::instance() {
  static Marks* marks = new Marks;  // never destroyed: other threads and exit handlers still use it
  return *marks;
}

MarkedThread& Marks::thread() {
  if (!t_thread.state) t_thread.state = instance().adopt();
  return *t_thread.state;
}

// A new thread reuses the state of a finished thread, so that many short threads cost no more than a few.
MarkedThread* Marks::adopt() {
  std::lock_guard lock(threads_mutex_);
  for (auto& old : threads_) {
    if (!old->finished.load(std::memory_order_acquire)) continue;
    old->op_depth = old->phase_depth = 0;
    old->step = old->joined = 0;
    old->line = old->op_of_call = kNoOp;
    old->launched.reset();
    old->step_open = false;
    old->launch_count = 0;
    old->ranges.reset();
    old->id = static_cast<int32_t>(syscall(SYS_gettid));
    old->finished.store(false, std::memory_order_relaxed);
    return old.get();
  }
  threads_.push_back(std::make_unique<MarkedThread>());
  threads_.back()->id = static_cast<int32_t>(syscall(SYS_gettid));
  return threads_.back().get();
}

void Marks::configure(const Config& config) {
  time_ops_.store(config.ops, std::memory_order_relaxed);
  nvtx_.store(config.nvtx, std::memory_order_relaxed);
  time_ranges_.store(config.ranges, std::memory_order_relaxed);
}

void Marks::step_begin(int64_t step) {
  MarkedThread& t = thread();
  if (step_hook_ && step >= 0) step_hook_(step);
  t.step = step_number(step);
  t.step_open = true;
  begin_step(t, step);
}

void Marks::begin_step(MarkedThread& t, int64_t step) const {
  if (nvtx_.load(std::memory_order_relaxed)) nvtx::push_step(step);
  t.step_start = steady_ns();
}

void Marks::end_step(MarkedThread& t, uint32_t number) const {
  HostEvent event;
  event.type = HostEventType::Step;
  event.start = t.step_start;
  event.end = steady_ns();
  event.step = number;
  event.rank = static_cast<int16_t>(rank_of_thread());
  if (number != 0) t.push(event);
  if (nvtx_.load(std::memory_order_relaxed)) nvtx::pop();
}

void Marks::step_end() {
  MarkedThread& t = thread();
  if (!t.step_open) return;  // the listener was set inside the step
  t.step_open = false;
  end_step(t, std::exchange(t.step, 0));
}

void Marks::phase_begin(const char* name) {
  MarkedThread& t = thread();
  const int depth = t.phase_depth++;
  if (depth >= MarkedThread::kDepth) return;
  t.phases[depth] = {steady_ns(), kNoOp, name, 0};
  if (nvtx_.load(std::memory_order_relaxed)) nvtx::push_phase(name);
}

void Marks::phase_end() {
  MarkedThread& t = thread();
  if (t.phase_depth == 0) return;  // the listener was set inside the phase
  if (--t.phase_depth >= MarkedThread::kDepth) return;
  const auto& open = t.phases[t.phase_depth];
  HostEvent event;
  event.type = HostEventType::Phase;
  event.start = open.start;
  event.end = steady_ns();
  event.a = reinterpret_cast<uintptr_t>(open.name);
  event.b = static_cast<uint64_t>(t.phase_depth);
  event.step = t.step;
  t.push(event);
  if (nvtx_.load(std::memory_order_relaxed)) nvtx::pop();
}

void Marks::op_begin(OpTag op) {
  MarkedThread& t = thread();
  const int depth = t.op_depth++;
  ++t.scopes;
  if (depth >= MarkedThread::kDepth) return;
  const bool timed = time_ops_.load(std::memory_order_relaxed);
  t.ops[depth] = {timed ? steady_ns() : 0, op, nullptr, 0};
  if (nvtx_.load(std::memory_order_relaxed)) nvtx::push_op(op);
  if (!ops_seen_.load(std::memory_order_relaxed)) ops_seen_.store(true, std::memory_order_relaxed);
}

void Marks::op_end() {
  MarkedThread& t = thread();
  if (t.op_depth == 0) return;
  const int depth = --t.op_depth;
  if (depth >= MarkedThread::kDepth) return;
  if (nvtx_.load(std::memory_order_relaxed)) nvtx::pop();
  const auto& open = t.ops[depth];
  if (open.start == 0) return;
  HostEvent event;
  event.type = HostEventType::Op;
  event.start = open.start;
  event.end = steady_ns();
  event.op = open.op;
  event.step = t.work_step();
  event.rank = static_cast<int16_t>(rank_of_thread());
  event.b = static_cast<uint64_t>(depth);
  t.push(event);
}

int64_t Marks::range_time() const { return time_ranges_.load(std::memory_order_relaxed) ? steady_ns() : 0; }

void Marks::range_begin(MarkedThread& t, OpTag op, uint64_t domain) {
  const int depth = t.op_depth++;
  ++t.scopes;
  if (depth < MarkedThread::kDepth) t.ops[depth] = {range_time(), op, nullptr, domain};
}

// Domains may close in a different order than they opened.
void Marks::range_end(uint64_t domain, int64_t at) {
  MarkedThread& t = thread();
  if (t.op_depth > MarkedThread::kDepth) {
    --t.op_depth;
    return;
  }
  int depth = t.op_depth - 1;
  while (depth >= 0 && t.ops[depth].domain != domain) --depth;
  if (depth < 0) return;  // it began before the listener was set
  const MarkedThread::Open open = t.ops[depth];
  std::copy(t.ops + depth + 1, t.ops + t.op_depth, t.ops + depth);
  --t.op_depth;
  if (open.start != 0) push_range(t, open.op, open.start, at > open.start ? at : steady_ns(), depth);
}

void Marks::end_ranges(MarkedThread& t, int64_t at) {
  for (int depth = std::min(t.op_depth, MarkedThread::kDepth) - 1; depth >= 0; --depth)
    if (const MarkedThread::Open& open = t.ops[depth]; open.start != 0 && at > open.start) push_range(t, open.op, open.start, at, depth);
  t.op_depth = 0;
}

void Marks::program_step(int64_t number, int64_t begin, int64_t end) {
  HostEvent event;
  event.type = HostEventType::ProgramStep;
  event.start = begin;
  event.end = end;
  event.a = static_cast<uint64_t>(number);
  thread().push(event);
}

void Marks::range(OpTag op, int64_t begin, int64_t end, int depth) { push_range(thread(), op, begin, end, depth); }

void Marks::push_range(MarkedThread& t, OpTag op, int64_t begin, int64_t end, int depth) {
  HostEvent event;
  event.type = HostEventType::Range;
  event.start = begin;
  event.end = end;
  event.op = op;
  event.step = t.step;
  event.rank = static_cast<int16_t>(rank_of_thread());
  event.b = static_cast<uint64_t>(depth);
  t.push(event);
}

void Marks::memory(const MemoryNote& note) {
  MarkedThread& t = thread();
  HostEvent event;
  event.type = HostEventType::Memory;
  event.start = steady_ns();
  event.end = static_cast<int64_t>(reinterpret_cast<uintptr_t>(note.owner));
  event.a = note.address;
  event.b = note.bytes;
  event.op = note.op != kNoOp ? note.op : t.op();
  event.step = t.step;
  event.what = static_cast<uint8_t>(note.action);
  t.push(event);
}

int64_t Marks::steps_traced_alike(int64_t step) {
  return shared_steps_hook_ ? shared_steps_hook_(step) : std::numeric_limits<int64_t>::max();
}

void Marks::step_joined(int64_t step) {
  MarkedThread& t = thread();
  const uint32_t before = std::exchange(t.joined, step_number(step));
  if (step >= 0)
    begin_step(t, step);
  else if (before != 0)  // otherwise the listener was set inside the step
    end_step(t, before);
}

void Marks::works_for(int rank) {
  if (nvtx_.load(std::memory_order_relaxed)) nvtx::work_for(rank);
}

void Marks::steps_launched(int64_t first, int64_t count) {
  MarkedThread& t = thread();
  if (step_hook_ && marks_steps()) step_hook_(first);
  t.launch_first = step_number(first);
  t.launch_count = static_cast<uint32_t>(count);
}

}  // namespace ws::prof
