#include "profiling/annotate/annotate.h"
#include "profiling/annotate/stamps.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "profiling/annotate/code_stack.h"
#include "profiling/base/failure.h"

namespace ws::prof {

std::atomic<Listener*> g_listener{nullptr};

namespace {

using Stack = std::shared_ptr<const CodeStack>;

struct StackHash {
  size_t operator()(const Stack& stack) const {
    size_t hash = stack->own;
    for (const CodeFrame& frame : stack->frames)
      hash = (hash * 31 + std::hash<std::string>()(frame.path)) * 31 + std::hash<std::string>()(frame.function) +
             static_cast<size_t>(frame.line);
    return hash;
  }
};
struct SameStack {
  bool operator()(const Stack& a, const Stack& b) const { return *a == *b; }
};

struct Registry {
  std::mutex mutex;
  std::deque<OpInfo> ops{OpInfo{}};
  std::unordered_set<Stack, StackHash, SameStack> stacks;
  std::unordered_map<std::string, OpTag> lists;  // a plan that is compiled again keeps its tags
};

Registry& registry() {
  static auto* registry = new Registry;  // never destroyed: a recording that ends at exit still uses it
  return *registry;
}

std::string key_of(const std::vector<OpInfo>& ops) {
  std::string key;
  for (const OpInfo& op : ops) {
    for (const std::string* text : {&op.name, &op.detail, &op.layer, &op.phase}) key.append(*text).push_back('\0');
    key.append(std::to_string(static_cast<int>(op.meaning)) + ',' + std::to_string(op.flops) + ',' +
               std::to_string(op.bytes) + ',' + std::to_string(reinterpret_cast<uintptr_t>(op.stack.get())));
    key.push_back('\n');
  }
  return key;
}

}  // namespace

OpTag register_ops(std::vector<OpInfo> ops) {
  if (ops.empty()) return kNoOp;
  Registry& known = registry();
  std::lock_guard lock(known.mutex);
  for (OpInfo& op : ops)
    if (op.stack) op.stack = *known.stacks.insert(op.stack).first;
  const std::string key = key_of(ops);
  if (const auto at = known.lists.find(key); at != known.lists.end()) return at->second;
  if (known.ops.size() + ops.size() > 0xffff)
    throw Failure("More than 65534 different ops were registered in this process; start it again.");
  const auto first = static_cast<OpTag>(known.ops.size());
  for (OpInfo& op : ops) known.ops.push_back(std::move(op));
  known.lists.emplace(key, first);
  return first;
}

OpInfo op_info(OpTag op) {
  Registry& known = registry();
  std::lock_guard lock(known.mutex);
  return op < known.ops.size() ? known.ops[op] : OpInfo{};
}

size_t registered_ops() {
  Registry& known = registry();
  std::lock_guard lock(known.mutex);
  return known.ops.size();
}

void set_listener(Listener* listener) { g_listener.store(listener, std::memory_order_release); }

StampBoard& StampBoard::instance() {
  static StampBoard board;
  return board;
}

void StampBoard::add(StampedLaunch launch) {
  constexpr size_t kMost = 4096;
  const std::lock_guard lock(mutex_);
  if (launches_.size() < kMost) launches_.push_back(std::move(launch));
}

std::vector<StampedLaunch> StampBoard::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(launches_, {});
}

}  // namespace ws::prof
