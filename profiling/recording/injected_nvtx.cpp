// Receives the NVTX ranges of a recorded program: each copy of NVTX in it loads our library, named by
// NVTX_INJECTION64_PATH. Unlike CUPTI's range records, these calls come while the range is open, so launches and
// captures inside can be joined to it. They need no GPU.
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "profiling/annotate/nvtx_ranges.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/injected.h"
#include "profiling/recording/nccl_hooks.h"
#include "profiling/recording/nvtx_payloads.h"

namespace {

using ws::prof::NcclCalls;
using ws::prof::ProgramRanges;
using ws::prof::registered;

std::string narrow(const wchar_t* wide) {
  std::string text;
  for (; wide && *wide; ++wide) {
    const auto c = static_cast<uint32_t>(*wide);
    if (c < 0x80) {
      text += static_cast<char>(c);
      continue;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr unsigned char kFirst[] = {0, 0xc0, 0xe0, 0xf0};
    text += static_cast<char>(kFirst[more] | (c >> (6 * more) & 0x3f));
    for (int part = more - 1; part >= 0; --part) text += static_cast<char>(0x80 | (c >> (6 * part) & 0x3f));
  }
  return text;
}

std::atomic<nvtxDomainHandle_t> g_ranks{nullptr};  // the domain of marks that say the rank of a thread

std::string_view or_range(const char* text) { return text ? text : "range"; }

template <class Use>
auto with_text(const nvtxEventAttributes_t* event, Use use) {
  if (!event) return use("range");
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return use(or_range(event->message.ascii));
    case NVTX_MESSAGE_TYPE_UNICODE:
      return use(narrow(event->message.unicode));
    case NVTX_MESSAGE_TYPE_REGISTERED:
      if (event->message.registered)
        return use(std::string_view(*reinterpret_cast<const std::string*>(event->message.registered)));
      [[fallthrough]];
    default:
      return use("range");
  }
}

// Uses the handle of a domain as its number. 0 is the default domain.
uint64_t number(nvtxDomainHandle_t domain) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(domain)); }

int push(std::string_view text, uint64_t domain) {
  // In a forked child, a thread that no longer exists may hold the lock.
  if (!ws::prof::in_forked_child()) ProgramRanges::instance().push(text, domain);
  return 0;
}

int push_a(const char* text) { return push(or_range(text), 0); }
int push_w(const wchar_t* text) { return push(narrow(text), 0); }
int push_ex(const nvtxEventAttributes_t* event) {
  return with_text(event, [](std::string_view text) { return push(text, 0); });
}
int pop() {
  ProgramRanges::instance().pop();
  return 0;
}
nvtxRangeId_t start(std::string_view text) {
  return ws::prof::in_forked_child() ? 0 : ProgramRanges::instance().start(text);
}
nvtxRangeId_t start_a(const char* text) { return start(or_range(text)); }
nvtxRangeId_t start_w(const wchar_t* text) { return start(narrow(text)); }
nvtxRangeId_t start_ex(const nvtxEventAttributes_t* event) {
  return with_text(event, [](std::string_view text) { return start(text); });
}
void end(nvtxRangeId_t id) {
  if (!ws::prof::in_forked_child()) ProgramRanges::instance().end(id);
}

void nccl_begins(std::string_view function, const ws::prof::NcclPayload& payload) {
  ws::prof::nccl_range_begins(function, payload.message);
  NcclCalls::instance().begin(function, payload);
}

// Outside of capture ranges, only the ranges that make a communicator are recorded.
thread_local int t_left_out = 0;
bool left_out(std::string_view function) { return ProgramRanges::instance().paused() && !function.starts_with("ncclComm") && ++t_left_out > 0; }

int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  if (NcclCalls::ignores_ranges()) return 0;
  return with_text(event, [=](std::string_view text) {
    if (!ws::prof::is_nccl_domain(domain))
      return ProgramRanges::instance().paused() ? 0 : push(ws::prof::text_with_payload(domain, event, text), number(domain));
    if (!ws::prof::in_forked_child() && !left_out(text)) nccl_begins(text, ws::prof::payload_of(domain, event));
    return 0;
  });
}
int domain_pop(nvtxDomainHandle_t domain) {
  if (NcclCalls::ignores_ranges()) return 0;
  if (!ws::prof::is_nccl_domain(domain))
    ProgramRanges::instance().pop(number(domain));
  else if (t_left_out > 0)
    --t_left_out;
  else if (!ws::prof::in_forked_child())
    NcclCalls::instance().end({});
  return 0;
}
void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  if (domain && domain == g_ranks.load(std::memory_order_relaxed) && event && event->payloadType == NVTX_PAYLOAD_TYPE_INT64)
    ProgramRanges::instance().work_for(static_cast<int>(event->payload.llValue));
}
nvtxRangeId_t domain_start(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) { return start_ex(event); }
void domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }
nvtxStringHandle_t register_a(nvtxDomainHandle_t, const char* text) { return registered(text ? text : ""); }
nvtxStringHandle_t register_w(nvtxDomainHandle_t, const wchar_t* text) { return registered(narrow(text)); }
nvtxDomainHandle_t created(std::string name) {
  const bool of_nccl = name == "NCCL", of_ranks = name == ws::prof::nvtx::kRankDomain;
  const auto domain = reinterpret_cast<nvtxDomainHandle_t>(new std::string(std::move(name)));
  if (of_nccl) ws::prof::remember_nccl_domain(domain);
  if (of_ranks) g_ranks.store(domain, std::memory_order_relaxed);
  return domain;
}
nvtxDomainHandle_t create_a(const char* name) { return created(name ? name : ""); }
nvtxDomainHandle_t create_w(const wchar_t* name) { return created(narrow(name)); }

class Table {
 public:
  Table(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) {
    if (!callbacks.GetModuleFunctionTable(module, &functions_, &count_)) count_ = 0;
  }
  template <class Function>
  void set(unsigned id, Function* function) const {
    if (id < count_ && functions_[id]) *functions_[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }

 private:
  NvtxFunctionTable functions_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace

// Each copy of NVTX calls this once, at the first range of the program.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  if (!callbacks) return 0;
  const Table core(*callbacks, NVTX_CB_MODULE_CORE);
  core.set(NVTX_CBID_CORE_RangePushA, push_a);
  core.set(NVTX_CBID_CORE_RangePushW, push_w);
  core.set(NVTX_CBID_CORE_RangePushEx, push_ex);
  core.set(NVTX_CBID_CORE_RangePop, pop);
  core.set(NVTX_CBID_CORE_RangeStartA, start_a);
  core.set(NVTX_CBID_CORE_RangeStartW, start_w);
  core.set(NVTX_CBID_CORE_RangeStartEx, start_ex);
  core.set(NVTX_CBID_CORE_RangeEnd, end);
  const Table domains(*callbacks, NVTX_CB_MODULE_CORE2);
  domains.set(NVTX_CBID_CORE2_DomainMarkEx, domain_mark);
  domains.set(NVTX_CBID_CORE2_DomainRangePushEx, domain_push);
  domains.set(NVTX_CBID_CORE2_DomainRangePop, domain_pop);
  domains.set(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start);
  domains.set(NVTX_CBID_CORE2_DomainRangeEnd, domain_end);
  domains.set(NVTX_CBID_CORE2_DomainRegisterStringA, register_a);
  domains.set(NVTX_CBID_CORE2_DomainRegisterStringW, register_w);
  domains.set(NVTX_CBID_CORE2_DomainCreateA, create_a);
  domains.set(NVTX_CBID_CORE2_DomainCreateW, create_w);
  return 1;
}
#endif
