#include "profiling/annotate.h"

#include <deque>
#include <mutex>

#include "profiling/failure.h"

namespace ws::prof {

std::atomic<Listener*> g_listener{nullptr};

namespace {

std::mutex g_mutex;
std::deque<OpInfo>& known_ops() {
  static std::deque<OpInfo> ops(1);  // 0 is "no op"
  return ops;
}

}  // namespace

OpTag register_ops(std::vector<OpInfo> ops) {
  const std::lock_guard lock(g_mutex);
  auto& known = known_ops();
  if (known.size() + ops.size() > UINT16_MAX) throw Failure("profiling: more than 65 535 different ops were registered in one process");
  const auto first = static_cast<OpTag>(known.size());
  for (OpInfo& op : ops) known.push_back(std::move(op));
  return first;
}

OpInfo op_info(OpTag op) {
  const std::lock_guard lock(g_mutex);
  return op < known_ops().size() ? known_ops()[op] : OpInfo{};
}

size_t registered_ops() {
  const std::lock_guard lock(g_mutex);
  return known_ops().size();
}

void set_listener(Listener* listener) { g_listener.store(listener, std::memory_order_release); }

}  // namespace ws::prof
