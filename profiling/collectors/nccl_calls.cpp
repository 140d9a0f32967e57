#include "profiling/collectors/nccl_calls.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>

#include "profiling/base/clock.h"
#include "profiling/collectors/marks.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

constexpr size_t kWaitingCalls = 32, kOpenRanges = 8, kNcclTexts = 4096, kRanksOfNccl = 1 << 20;

// `bytes` of a call count one part of the message.
enum class Part : uint8_t { Whole, OfARank, Sent, Received };
struct Operation {
  const char* name;
  Part part;
};
constexpr std::array<Operation, 11> kOperations{{{"AllReduce", Part::Whole},
                                                 {"AllGather", Part::OfARank},
                                                 {"ReduceScatter", Part::OfARank},
                                                 {"AlltoAll", Part::OfARank},
                                                 {"Gather", Part::OfARank},
                                                 {"Scatter", Part::OfARank},
                                                 {"Broadcast", Part::Whole},
                                                 {"Reduce", Part::Whole},
                                                 {"Send", Part::Sent},
                                                 {"Recv", Part::Received},
                                                 {"call", Part::Whole}}};

struct WaitingCall {
  uint64_t communicator, bytes;
  uint64_t peer;  // NcclPayload::kNotSaid also if there are several
  const Operation* operation;
};
struct OpenRange {
  int64_t start;
  OpTag op;
  int group;  // 1: begins a group of calls, -1: ends one
};
// State of one thread. Without a destructor, because ranges may also end while the thread does.
struct NcclThread {
  std::array<WaitingCall, kWaitingCalls> waiting;
  std::array<OpenRange, kOpenRanges> open;
  size_t calls, depth;
  int groups;
  bool held, ignored;
  NcclWork current;

  // Calls of one kind become one entry: an exchange between many ranks has two calls for each of them.
  void wait_for_kernel(const NcclPayload& payload, const Operation* operation) {
    const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(calls);
    const auto same = std::find_if(waiting.begin(), end, [&](const WaitingCall& call) {
      return call.communicator == payload.communicator && call.operation == operation;
    });
    if (same != end)
      same->bytes += payload.bytes, same->peer = same->peer == payload.peer ? payload.peer : NcclPayload::kNotSaid;
    else if (calls < kWaitingCalls)
      waiting[calls++] = {payload.communicator, payload.bytes, payload.peer, operation};
  }
};
thread_local NcclThread t_nccl;

const Operation* operation_of(std::string_view function) {
  if (function.starts_with("nccl")) function.remove_prefix(4);
  const auto at = std::ranges::find(kOperations, function, &Operation::name);
  return at == kOperations.end() ? &kOperations.back() : &*at;
}

int group_of(std::string_view function) {
  return function == "ncclGroupStart" ? 1 : function == "ncclGroupEnd" ? -1 : 0;
}

// " · 1 → 2": the same on both sides.
std::string message_text(const Operation& operation, uint64_t rank, uint64_t peer) {
  if (operation.part != Part::Sent && operation.part != Part::Received) return "";
  const bool sent = operation.part == Part::Sent;
  return " · " + std::to_string(sent ? rank : peer) + kToRank + std::to_string(sent ? peer : rank);
}

std::string hex(uint64_t number) {
  std::string digits;
  for (; number > 0; number >>= 4) digits.insert(digits.begin(), "0123456789abcdef"[number & 15]);
  return digits;
}

}  // namespace

NcclCalls& NcclCalls::instance() {
  static NcclCalls* calls = new NcclCalls;
  return *calls;
}

void NcclCalls::begin(std::string_view function, const NcclPayload& payload) {
  NcclThread& own = t_nccl;
  if (payload.message) own.wait_for_kernel(payload, operation_of(function));
  learn(payload);
  if (own.depth++ >= kOpenRanges) return;
  const int64_t now = own.held ? 0 : Marks::instance().range_time();
  const OpTag op = now == 0 ? kNoOp : ProgramRanges::instance().inside(function, Marks::thread().op());
  own.open[own.depth - 1] = {now, op, group_of(function)};
}

void NcclCalls::end(const NcclPayload& payload) {
  NcclThread& own = t_nccl;
  learn(payload);
  if (own.depth == 0 || --own.depth >= kOpenRanges) return;
  const OpenRange& range = own.open[own.depth];
  own.groups = std::max(0, own.groups + range.group);
  if (own.groups == 0 && own.depth == 0 && !own.held) own.calls = 0;  // they needed no kernel
  if (range.start == 0) return;
  const int depth = Marks::thread().op_depth + static_cast<int>(own.depth);
  Marks::instance().range(range.op, range.start, steady_ns(), depth);
}

void NcclCalls::learn(const NcclPayload& payload) {
  if (payload.ranks == 0 || payload.ranks > kRanksOfNccl) return;
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = communicators_.try_emplace(payload.communicator, Communicator{payload.ranks, payload.rank});
  if (fresh) return;
  Communicator& known = at->second;
  if (known.ranks != payload.ranks) known.ranks = 0;
  if (known.rank != payload.rank) known.rank = NcclPayload::kNotSaid;
}

NcclCalls::Communicator NcclCalls::communicator(uint64_t number) const {
  const auto known = communicators_.find(number);
  return known == communicators_.end() ? Communicator{0, NcclPayload::kNotSaid} : known->second;
}

NcclWork NcclCalls::launch_begins(const char* symbol) noexcept {
  NcclThread& own = t_nccl;
  own.current = {};
  if (own.calls == 0 || !symbol || !std::strstr(symbol, "nccl")) return {};
  try {
    own.current = work_of_first_communicator();
  } catch (const std::exception&) {  // out of memory: this kernel stays without
  }
  return own.current;
}

void NcclCalls::launch_ends() noexcept { t_nccl.current = {}; }
NcclWork NcclCalls::current() noexcept { return t_nccl.current; }

void NcclCalls::hold() noexcept { t_nccl.held = true; t_nccl.calls = 0; }
bool NcclCalls::held() noexcept { return t_nccl.held; }
void NcclCalls::ignore_ranges(bool ignored) noexcept { t_nccl.ignored = ignored; }
bool NcclCalls::ignores_ranges() noexcept { return t_nccl.ignored; }

NcclCalls::Works NcclCalls::release() noexcept {
  NcclThread& own = t_nccl;
  Works works{};
  try {
    for (size_t i = 0; i < works.size() && own.calls > 0; ++i) works[i] = work_of_first_communicator();
  } catch (const std::exception&) {  // out of memory: these calls stay without
  }
  own.held = false, own.calls = 0;
  return works;
}

// What a point-to-point call sends another one receives: of a group of them the larger side counts.
NcclWork NcclCalls::work_of_first_communicator() {
  NcclThread& own = t_nccl;
  const WaitingCall first = own.waiting[0];
  const std::lock_guard lock(mutex_);
  const auto [ranks, rank] = communicator(first.communicator);
  uint64_t whole = 0, sent = 0, received = 0;
  std::vector<std::string_view> names;
  size_t kept = 0;
  bool known = true;
  for (size_t i = 0; i < own.calls; ++i) {
    const WaitingCall call = own.waiting[i];
    if (call.communicator != first.communicator) {
      own.waiting[kept++] = call;
      continue;
    }
    const Part part = call.operation->part;
    (part == Part::Sent ? sent : part == Part::Received ? received : whole) +=
        part == Part::OfARank ? call.bytes * ranks : call.bytes;
    known = known && (part != Part::OfARank || ranks > 0);
    if (std::ranges::find(names, call.operation->name) == names.end()) names.push_back(call.operation->name);
  }
  own.calls = kept;
  NcclWork work{known ? whole + std::max(sent, received) : 0, 0};
  if (first.communicator == 0) return work;  // an older NCCL does not tell communicators apart
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : " + ").append(name);
  if (ranks > 0) text += " · " + std::to_string(ranks) + " ranks";
  text += " · communicator " + hex(first.communicator);
  if (names.size() == 1 && rank < ranks && first.peer < ranks) text += message_text(*first.operation, rank, first.peer);
  if (texts_.size() >= kNcclTexts && !numbers_.contains(text)) return work;
  const auto [number, fresh] = numbers_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(text);
  work.text = number->second;
  return work;
}

std::string NcclCalls::text(const NcclWork& work) const {
  const std::lock_guard lock(mutex_);
  return work.text < texts_.size() ? texts_[work.text] : "";
}

}  // namespace ws::prof
