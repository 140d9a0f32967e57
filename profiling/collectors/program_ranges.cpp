#include "profiling/collectors/program_ranges.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/collectors/marks.h"
#include "profiling/collectors/xla_ranges.h"

namespace ws::prof {

namespace {

constexpr size_t kNumberedNames = 64;  // per text: "layer 3" differs from "layer 4", but iterations 70 and 71 do not
constexpr size_t kManyTags = 48'000, kMostTags = 64'000;
constexpr size_t kCachedNames = 1 << 14;
constexpr size_t kMostStackBytes = 16 << 20;  // later stacks keep only the line

size_t bytes_of(const CodeStack& stack) {
  size_t bytes = stack.frames.size() * sizeof(CodeFrame);
  for (const CodeFrame& frame : stack.frames) bytes += frame.path.size() + frame.function.size();
  return bytes;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

std::string without_numbers(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!digit(text[i]))
      out += text[i];
    else if (i == 0 || !digit(text[i - 1]))
      out += '#';
  }
  return out;
}

// Ops of a framework and ranges that PyTorch names itself belong to a module. They are not modules.
bool is_op_name(std::string_view name) {
  if (name.find("::") != std::string_view::npos) return true;
  for (const std::string_view begin : {"Optimizer.", "enumerate(DataLoader)", "DistributedDataParallel.", "ProfilerStep"})
    if (name.starts_with(begin)) return true;
  return false;
}

// "training step 17": ranges inside are the same each time, so they get the same path.
bool is_repetition(std::string_view name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  while (!name.empty() && !letter(name.back())) name.remove_suffix(1);
  std::string word;
  for (; !name.empty() && letter(name.back()); name.remove_suffix(1))
    word.insert(word.begin(), static_cast<char>(std::tolower(static_cast<unsigned char>(name.back()))));
  for (const std::string_view end : {"step", "iter", "iteration", "epoch", "batch"})
    if (word.ends_with(end)) return true;
  return false;
}

}  // namespace

RangeText range_text(std::string_view text) {
  constexpr std::string_view kSequence = ", seq = ";
  RangeText range;
  size_t end = text.size();
  for (const std::string_view mark : {kSequence, std::string_view(", op_id = "), std::string_view(", sizes = ")})
    end = std::min(end, text.find(mark));
  range.name = text.substr(0, end);
  if (const size_t at = text.find(kSequence); at != std::string_view::npos) {
    const std::string_view digits = text.substr(at + kSequence.size());
    if (std::from_chars(digits.data(), digits.data() + digits.size(), range.sequence).ec != std::errc{})
      range.sequence = -1;
  }
  return range;
}

bool is_backward_function(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function") || name.starts_with("torch::autograd::")) return true;
  while (!name.empty() && digit(name.back())) name.remove_suffix(1);
  return name.ends_with("Backward") && name.find("::") == std::string_view::npos;
}

ProgramRanges& ProgramRanges::instance() {
  static ProgramRanges* ranges = new ProgramRanges;  // never destroyed: threads mark until the process ends
  return *ranges;
}

void ProgramRanges::push(std::string_view text, uint64_t domain) {
  if (!active_thread()) return;
  push(inside(text, Marks::thread().op()), domain);
}

namespace {

constexpr uint64_t kBackwardDomain = 2;
// Mark of an open op: ranges inside it get its line.
constexpr const char* kInOp = "op";
// Also an open op, in which autograd evaluates a function. Only the range inside names the function.
constexpr const char* kEvaluates = "evaluates";
bool in_an_op(const char* mark) { return mark == kInOp || mark == kEvaluates; }

}  // namespace

// What one thread remembers, so that an op it has seen before needs neither a lock nor a new string.
struct RangesOfThread {
  // The modules that are open, and the sequence numbers assigned so far.
  std::vector<OpTag> modules;
  uint64_t numbered = 0;
  OpTag backward = kNoOp;
  int64_t backward_ended = 0;

  struct Name {
    std::string text;
    uint32_t id = 0;
    bool backward = false, evaluates = false;
    bool op = false;  // false: a range that Python code names around others
  };
  struct Tag {
    uint32_t name = 0;
    OpTag around = kNoOp, line = kNoOp, tag = kNoOp;
  };

  // By content, because PyTorch builds some names anew at each call.
  const Name& name(const char* text) {
    const size_t size = std::strlen(text);
    uint64_t end = size;
    if (size >= 8) std::memcpy(&end, text + size - 8, 8);
    uint64_t middle = 0;
    if (size >= 16) std::memcpy(&middle, text + size / 2 - 4, 8);
    Name& known = names[((end ^ middle << 1 ^ size << 56) * kMix) >> (64 - kNameBits)];
    if (known.id != 0 && known.text == std::string_view(text, size)) return known;
    known.text.assign(text, size);
    known.id = ++last_id;
    known.backward = is_backward_function(known.text);
    known.evaluates = known.text.starts_with("autograd::engine::evaluate");
    known.op = known.text.find("::") != std::string::npos;
    return known;
  }
  Tag& tag(uint32_t name, OpTag around, OpTag line) {
    return tags[((name | uint64_t{around} << 32 | uint64_t{line} << 48) * kMix) >> (64 - kTagBits)];
  }

  static constexpr int kNameBits = 10, kTagBits = 12;
  static constexpr uint32_t kPlace = UINT32_MAX;  // no name's number: a tag is of a place
  static constexpr uint64_t kMix = 0x9e3779b97f4a7c15u;
  std::vector<Name> names = std::vector<Name>(size_t{1} << kNameBits);
  std::vector<Tag> tags = std::vector<Tag>(size_t{1} << kTagBits);
  uint32_t last_id = 0;
};

namespace {

RangesOfThread& ranges_of(MarkedThread& thread) {
  if (!thread.ranges) thread.ranges = std::make_shared<RangesOfThread>();
  return *thread.ranges;
}

}  // namespace

void ProgramRanges::pause(bool on, int64_t now) {
  if (on == paused()) return;
  if (on) {
    paused_at_.store(now, std::memory_order_relaxed);
    pauses_.fetch_add(1, std::memory_order_release);
    end_open(Marks::thread());
    step_began_ = 0, open_step_ = 0;
    return;
  }
  pauses_.fetch_add(1, std::memory_order_release);
  step_began_ = now;
}

// What is open on this thread belongs to an earlier capture range.
void ProgramRanges::end_open(MarkedThread& thread) {
  thread.pauses = pauses_.load(std::memory_order_relaxed);
  if (RangesOfThread* const own = thread.ranges.get()) {
    const int64_t ended = backward_ended_.load(std::memory_order_relaxed);
    if (own->backward != kNoOp && ended != own->backward_ended) Marks::instance().range_end(kBackwardDomain, ended);
    own->modules.clear(), own->backward = kNoOp, own->backward_ended = ended;
  }
  Marks::instance().end_ranges(thread, paused_at_.load(std::memory_order_relaxed));
}

MarkedThread* ProgramRanges::active_thread() {
  const uint32_t pauses = pauses_.load(std::memory_order_acquire);
  if ((pauses & 1) != 0) return nullptr;
  MarkedThread& thread = Marks::thread();
  if (thread.pauses != pauses) end_open(thread);
  return &thread;
}

void ProgramRanges::push(OpTag place, uint64_t domain) {
  if (MarkedThread* const thread = active_thread())
    Marks::instance().range_begin(*thread, thread->line == kNoOp ? place : on_line(*thread, place), domain);
}

// Assigns the sequence numbers since the last change of module to the innermost module.
void ProgramRanges::number_until(RangesOfThread& own, uint64_t next) {
  const OpTag place = own.modules.empty() ? kNoOp : own.modules.back();
  const uint64_t from = next - std::min<uint64_t>(next - std::min(next, own.numbered), kNumbers);
  for (uint64_t number = from; number < next; ++number)
    module_of_[number % kNumbers].store(place, std::memory_order_relaxed);
  own.numbered = next;
}

void ProgramRanges::enter(OpTag place, uint64_t domain, OpTag line) {
  if (!active_thread()) return;
  MarkedThread& thread = Marks::thread();
  RangesOfThread& own = ranges_of(thread);
  if (const auto next = next_sequence_.load(std::memory_order_relaxed)) number_until(own, next());
  const auto here = line == kNoOp ? here_.load(std::memory_order_relaxed) : nullptr;
  thread.line = here ? here() : line;
  push(place, domain);
  thread.line = kNoOp;
  own.modules.push_back(thread.op());
}

void ProgramRanges::enter(std::string_view name, uint64_t domain, OpTag line) {
  if (!active_thread()) return;
  MarkedThread& thread = Marks::thread();
  thread.line = line;
  const OpTag place = inside(name, thread.op_depth > 0 ? thread.op() : kNoOp);
  enter(place, domain, line);
}

void ProgramRanges::leave(uint64_t domain) {
  if (!active_thread()) return;
  RangesOfThread& own = ranges_of(Marks::thread());
  if (const auto next = next_sequence_.load(std::memory_order_relaxed)) number_until(own, next());
  if (!own.modules.empty()) own.modules.pop_back();
  pop(domain);
}

void ProgramRanges::push_op(const char* text, int64_t sequence, uint64_t domain) {
  if (!active_thread()) return;
  MarkedThread& thread = Marks::thread();
  RangesOfThread& own = ranges_of(thread);
  const RangesOfThread::Name& name = own.name(text);
  const bool backward = sequence >= 0 && name.backward;
  if (backward) backward_reaches(sequence);
  const int depth = thread.op_depth;
  const bool in_op = depth > 0 && depth <= MarkedThread::kDepth && in_an_op(thread.ops[depth - 1].name);
  const OpTag around = depth > 0 ? thread.op() : kNoOp;
  const auto here = in_op ? nullptr : here_.load(std::memory_order_relaxed);
  const OpTag line = here ? here() : kNoOp;  // an op inside another op has the line of that op
  // A backward function is placed inside the op whose gradient it computes.
  const OpTag inside_of = backward ? forward_op(sequence) : around;
  if (backward && inside_of != kNoOp)
    for (int outer = std::min(depth, MarkedThread::kDepth) - 1; outer >= std::max(0, depth - 3); --outer)
      if (thread.ops[outer].name == kEvaluates) thread.ops[outer].op = evaluated(thread.ops[outer].op, inside_of);
  RangesOfThread::Tag& seen = own.tag(name.id, inside_of, line);
  if (seen.name != name.id || seen.around != inside_of || seen.line != line) {
    if (!backward) thread.line = line;
    seen = {name.id, inside_of, line, backward ? make_backward_of(name.text, inside_of) : inside(name.text, around)};
    if (!backward) thread.line = kNoOp;
  }
  if (sequence >= 0 && !backward) keep_forward(sequence, seen.tag);
  Marks::instance().range_begin(thread, seen.tag, domain);
  if (name.op && depth < MarkedThread::kDepth) thread.ops[depth].name = name.evaluates ? kEvaluates : kInOp;
}

void ProgramRanges::keep_forward(int64_t sequence, OpTag op) {
  const auto number = static_cast<uint64_t>(sequence);
  forward_[number % kNumbers].store(number << 16 | op, std::memory_order_relaxed);
}

OpTag ProgramRanges::forward_op(int64_t sequence) const {
  const auto number = static_cast<uint64_t>(sequence);
  const uint64_t kept = forward_[number % kNumbers].load(std::memory_order_relaxed);
  return kept >> 16 == number ? static_cast<OpTag>(kept) : kNoOp;
}

// Work launched beside the function itself, such as summing gradients, also belongs to it.
OpTag ProgramRanges::evaluated(OpTag range, OpTag forward) {
  std::lock_guard lock(mutex_);
  const auto [at, fresh] = evaluated_.try_emplace((uint32_t{range} << 16) | forward, kNoOp);
  if (fresh) at->second = backward_of(op_info(range).name, forward);
  return at->second;
}

OpTag ProgramRanges::backward_place(OpTag forward) {
  std::lock_guard lock(mutex_);
  const auto [at, fresh] = backward_places_.try_emplace(forward, kNoOp);
  if (fresh) {
    OpInfo info = op_info(forward);
    info.phase = "backward";
    at->second = add(std::move(info), true);
  }
  return at->second;
}

void ProgramRanges::backward_reaches(int64_t sequence) {
  if (!active_thread()) return;
  RangesOfThread& own = ranges_of(Marks::thread());
  if (const auto next = next_sequence_.load(std::memory_order_relaxed)) number_until(own, next());
  const OpTag forward = module_of_[static_cast<uint64_t>(sequence) % kNumbers].load(std::memory_order_relaxed);
  const int64_t ended = backward_ended_.load(std::memory_order_relaxed);
  const bool over = ended != own.backward_ended;  // the backward pass of the open range has ended
  if (forward == own.backward && !over) return;
  Marks::instance().range_end(kBackwardDomain, over ? ended : 0);
  own.backward = forward, own.backward_ended = ended;
  if (forward != kNoOp) Marks::instance().range_begin(backward_place(forward), kBackwardDomain);
}

// The thread that began the pass closes its own range. Other threads close theirs in the next pass.
void ProgramRanges::end_backward() {
  if (!active_thread()) return;
  backward_ended_.store(steady_ns(), std::memory_order_relaxed);
  RangesOfThread& own = ranges_of(Marks::thread());
  if (own.backward != kNoOp) Marks::instance().range_end(kBackwardDomain);
  own.backward = kNoOp, own.backward_ended = backward_ended_.load(std::memory_order_relaxed);
}

// What is launched inside an op has the op's line. Other ranges are open while the program goes on to other lines.
OpTag ProgramRanges::op_at_launch(MarkedThread& thread) {
  const OpTag op = thread.op();
  const auto here = here_.load(std::memory_order_relaxed);
  const int depth = std::min(thread.op_depth, MarkedThread::kDepth);
  if (!here || (depth > 0 && in_an_op(thread.ops[depth - 1].name))) return op;
  const OpTag line = here();
  if (line == kNoOp || op == kNoOp) return line == kNoOp ? op : line;
  const OpTag before = std::exchange(thread.line, line);
  const OpTag tag = on_line(thread, op);
  thread.line = before;
  return tag;
}

void ProgramRanges::step(int64_t number) {
  if (!active_thread()) return;
  const int64_t now = Marks::instance().range_time();
  const int64_t began = step_began_.exchange(now, std::memory_order_relaxed);
  if (now != 0) open_step_.store(static_cast<uint32_t>(number + 2), std::memory_order_relaxed);
  if (began != 0 && now != 0 && number >= 0) Marks::instance().program_step(number, began, now);
}

void ProgramRanges::forget_steps() {
  step_began_.store(0, std::memory_order_relaxed);
  open_step_.store(0, std::memory_order_relaxed);
}

void ProgramRanges::work_for(int rank) {
  rank_of_thread() = rank;
  if (rank >= 0) gpus_are_ranks_.store(true, std::memory_order_relaxed);
}

void ProgramRanges::pop(uint64_t domain) {
  if (active_thread()) Marks::instance().range_end(domain);
}

uint64_t ProgramRanges::start(std::string_view text) {
  if (!active_thread()) return 0;
  MarkedThread& thread = Marks::thread();
  const OpTag op = inside(text, thread.op());
  const int64_t now = Marks::instance().range_time();
  std::lock_guard lock(mutex_);
  if (now != 0) started_[++last_id_] = {now, op, thread.op_depth};
  return now != 0 ? last_id_ : 0;
}

void ProgramRanges::end(uint64_t id) {
  std::unique_lock lock(mutex_);
  const auto at = started_.find(id);
  if (at == started_.end()) return;
  const Started range = at->second;
  started_.erase(at);
  lock.unlock();
  Marks::instance().range(range.op, range.time, steady_ns(), range.depth);
}

// Does not lock for names that this thread marked before.
OpTag ProgramRanges::inside(std::string_view text, OpTag around) {
  const RangeText range = range_text(text);
  if (range.sequence >= 0 && is_backward_function(range.name)) {
    return make_backward_of(range.name, forward_op(range.sequence));
  }
  auto& known = Marks::thread().range_tags;
  const OpTag line = Marks::thread().line;
  thread_local std::string key;
  key.assign(range.name).append(reinterpret_cast<const char*>(&around), sizeof around);
  key.append(reinterpret_cast<const char*>(&line), sizeof line);
  auto at = known.find(key);
  if (at == known.end()) {
    if (known.size() > kCachedNames) known.clear();
    std::lock_guard lock(mutex_);
    at = known.emplace(key, child(range.name, around, line)).first;
  }
  // Several ops can have the same number. The backward function belongs to the last one.
  if (range.sequence >= 0) keep_forward(range.sequence, at->second);
  return at->second;
}

OpTag ProgramRanges::place(OpInfo info) {
  std::lock_guard lock(mutex_);
  return add(std::move(info), true);
}

std::string ProgramRanges::path_below(OpTag around) const {
  const OpInfo outer = op_info(around);
  if (around < leaf_.size() && leaf_[around]) return outer.layer;
  return outer.layer.empty() ? outer.name : outer.layer + "/" + outer.name;
}

OpTag ProgramRanges::child(std::string_view name, OpTag around, OpTag line) {
  const OpInfo outer = op_info(around);
  OpInfo info;
  info.name = with_few_numbers(name);
  info.layer = path_below(around);
  info.phase = is_backward_function(name) ? "backward" : outer.phase;
  if (line != kNoOp) info.stack = op_info(line).stack;
  if (!info.stack) info.stack = outer.stack;
  if (const auto xla = xla_range(name)) {
    info.name = with_few_numbers(xla->name);
    if (!xla->scope.empty()) info.layer += (info.layer.empty() ? "" : "/") + xla->scope;
    if (!xla->phase.empty()) info.phase = xla->phase;
    return add(std::move(info), true);
  }
  return add(std::move(info), is_op_name(name) || is_backward_function(name) || is_repetition(name));
}

// The caller holds the mutex.
OpTag ProgramRanges::at_place(std::string_view name, CodeStack stack) {
  OpInfo info;
  info.name = name;
  const size_t bytes = bytes_of(stack), before = registered_ops();
  if (stack_bytes_ > kMostStackBytes && stack.own < stack.frames.size()) stack = {{stack.frames[stack.own]}, 0};
  if (!stack.frames.empty()) info.stack = std::make_shared<CodeStack>(std::move(stack));
  const OpTag tag = add(std::move(info), true);
  if (registered_ops() > before) stack_bytes_ += bytes;
  return tag;
}

OpTag ProgramRanges::line(CodeStack stack) {
  std::lock_guard lock(mutex_);
  const std::string function = stack.frames.at(stack.own).function;
  return at_place(function, std::move(stack));
}

OpTag ProgramRanges::generated(std::string_view ops, CodeStack stack) {
  std::lock_guard lock(mutex_);
  const OpTag tag = at_place(ops, std::move(stack));
  generated_.insert(tag);
  return tag;
}

// The op of a place when reached from this thread's line.
OpTag ProgramRanges::on_line(MarkedThread& thread, OpTag place) {
  RangesOfThread::Tag& seen = ranges_of(thread).tag(RangesOfThread::kPlace, place, thread.line);
  if (seen.name == RangesOfThread::kPlace && seen.around == place && seen.line == thread.line) return seen.tag;
  OpInfo info = op_info(place);
  const OpInfo line = op_info(thread.line);
  if (line.stack) info.stack = line.stack;
  std::lock_guard lock(mutex_);
  const bool generated = generated_.contains(thread.line);
  if (generated) info.name = line.name;
  const bool leaf = generated || (place < leaf_.size() && leaf_[place]);
  seen = {RangesOfThread::kPlace, place, thread.line, add(std::move(info), leaf)};
  return seen.tag;
}

OpTag ProgramRanges::make_backward_of(std::string_view name, OpTag forward) {
  std::lock_guard lock(mutex_);
  return backward_of(name, forward);
}

// The caller holds the mutex.
OpTag ProgramRanges::backward_of(std::string_view name, OpTag forward) {
  const OpInfo cause = op_info(forward);
  OpInfo info;
  info.name = name;
  info.layer = cause.layer;
  info.phase = "backward";
  info.stack = cause.stack;
  return add(std::move(info), true);
}

// The caller holds the mutex.
OpTag ProgramRanges::add(OpInfo info, bool leaf) {
  if (registered_ops() > kMostTags)
    info.layer.clear(), info.stack.reset(), info.name = without_numbers(info.name);
  else if (registered_ops() > kManyTags)
    info.layer = without_numbers(info.layer);
  OpTag tag = kNoOp;
  try {
    tag = register_ops({std::move(info)});
  } catch (const Failure&) {
    return kNoOp;
  }
  if (leaf_.size() <= tag) leaf_.resize(size_t{tag} + 1);
  leaf_[tag] = leaf;
  return tag;
}

std::string ProgramRanges::with_few_numbers(std::string_view name) {
  if (std::ranges::none_of(name, digit)) return std::string(name);
  std::string bare = without_numbers(name);
  auto& seen = numbered_[bare];
  if (seen.contains(std::string(name))) return std::string(name);
  if (seen.size() >= kNumberedNames) return bare;
  seen.emplace(name);
  return std::string(name);
}

}  // namespace ws::prof
