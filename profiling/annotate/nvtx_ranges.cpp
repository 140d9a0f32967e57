#include "profiling/annotate/nvtx_ranges.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <string>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define WARPSIGHT_NVTX 1
#endif

namespace ws::prof::nvtx {

#ifdef WARPSIGHT_NVTX
namespace {

// Op names are created once, so a range needs no allocation.
const char* op_name(OpTag op) {
  static std::array<std::atomic<const char*>, 65536> names{};
  if (const char* name = names[op].load(std::memory_order_acquire)) return name;
  const OpInfo info = op_info(op);
  const char* fresh = (new std::string(info.layer.empty() ? info.name : info.layer + "/" + info.name))->c_str();
  const char* expected = nullptr;
  return names[op].compare_exchange_strong(expected, fresh) ? fresh : expected;
}

}  // namespace

bool listened_to() { return std::getenv("NVTX_INJECTION64_PATH") != nullptr; }
void push_step(int64_t step) { nvtxRangePushA(step < 0 ? "outside of steps" : ("step " + std::to_string(step)).c_str()); }
void push_phase(const char* name) { nvtxRangePushA(name); }
void push_op(OpTag op) { nvtxRangePushA(op_name(op)); }
void pop() { nvtxRangePop(); }
void work_for(int rank) {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA(kRankDomain);
  const std::string text = rank < 0 ? "no rank" : "rank " + std::to_string(rank);
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII, event.message.ascii = text.c_str();
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64, event.payload.llValue = rank;
  nvtxDomainMarkEx(domain, &event);
}
#else
bool listened_to() { return false; }
void push_step(int64_t) {}
void push_phase(const char*) {}
void push_op(OpTag) {}
void work_for(int) {}
void pop() {}
#endif

namespace {

class Echo final : public Listener {
 public:
  void step_begin(int64_t step) override { push_step(step); }
  void step_end() override { pop(); }
  void phase_begin(const char* name) override { push_phase(name); }
  void phase_end() override { pop(); }
  void op_begin(OpTag op) override { push_op(op); }
  void op_end() override { pop(); }
  void memory(const MemoryNote&) override {}
  void step_joined(int64_t step) override {
    thread_local bool joined = false;
    if (joined) pop();
    joined = step >= 0;
    if (joined) push_step(step);
  }
  void works_for(int rank) override { work_for(rank); }
  void steps_launched(int64_t, int64_t) override {}
  int64_t steps_traced_alike(int64_t) override { return std::numeric_limits<int64_t>::max(); }
};
Echo g_echo;

}  // namespace

Names::Names() {
  if (listened_to() && !listener()) set_listener(&g_echo);
}

Names::~Names() {
  if (listener() == &g_echo) set_listener(nullptr);
}

}  // namespace ws::prof::nvtx
