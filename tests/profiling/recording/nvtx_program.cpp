// A program that marks NVTX ranges of every kind. It starts its recording as the CUDA driver would, since there need be none.
#include <dlfcn.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <thread>

namespace {

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

nvtxEventAttributes_t attributes() {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return event;
}

// A fused kernel, whose name says nothing: the operations are in the payload.
struct Thunk {
  nvtxStringHandle_t title, hlo, locations, called;
};

void run_a_fusion(nvtxDomainHandle_t domain) {
  constexpr uint64_t kText = NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE;
  const nvtxPayloadSchemaEntry_t entries[] = {{0, kText, "Source locations", nullptr, 0, offsetof(Thunk, locations), nullptr, nullptr},
                                              {0, kText, "HLO", nullptr, 0, offsetof(Thunk, hlo), nullptr, nullptr},
                                              {0, kText, "Called HLO", nullptr, 0, offsetof(Thunk, called), nullptr, nullptr}};
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries, schema.numEntries = 3, schema.payloadStaticSize = sizeof(Thunk);
  const uint64_t id = nvtxPayloadSchemaRegister(domain, &schema);
  const auto text = [domain](const char* said) { return nvtxDomainRegisterStringA(domain, said); };
  const Thunk thunk{text("Thunk:#hlo_op=loop_fusion#"), text("f = fusion()"), text(""),
                    text("ROOT m = multiply(a, b), metadata={op_name=\"jit(evaluate)/jvp(Net)/mul\"}\n")};
  for (int i = 0; i < 3; ++i) {
    const Thunk wrong{thunk.title, reinterpret_cast<nvtxStringHandle_t>(8), reinterpret_cast<nvtxStringHandle_t>(8),
                      reinterpret_cast<nvtxStringHandle_t>(8)};  // no handles of texts
    nvtxPayloadData_t data{id, sizeof thunk, i == 2 ? &wrong : &thunk};
    nvtxEventAttributes_t event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = i == 2 ? text("Thunk:#hlo_op=wrong#") : thunk.title;
    event.payloadType = NVTX_PAYLOAD_TYPE_EXT, event.reserved0 = 1;
    event.payload.ullValue = reinterpret_cast<uint64_t>(&data);
    nvtxDomainRangePushEx(domain, &event);
    nap();
    nvtxDomainRangePop(domain);
  }
}

// What XLA does for JAX: registered texts in a domain of its own.
void run_a_function(nvtxDomainHandle_t domain) {
  for (const char* text : {"XlaModule:#prefix=jit(evaluate)/jit(main),hlo_module=jit_evaluate,program_id=5#",
                           "Thunk:#name=transpose(jvp(Net))/Dense_0/dot_general,hlo_op=gemm_fusion_dot,unique_hlo_op_id=12#"}) {
    nvtxEventAttributes_t event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, text);
    nvtxDomainRangePushEx(domain, &event);
  }
  nap();
  nvtxDomainRangePop(domain), nvtxDomainRangePop(domain);
}

void mark_a_step(nvtxDomainHandle_t domain, nvtxStringHandle_t text) {
  nvtxRangePushA("training step");
  nvtxRangePushW(L"größe");
  nap();
  nvtxEventAttributes_t event = attributes();
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = text;
  nvtxDomainRangePushEx(domain, &event);
  nap();
  nvtxRangePop();  // of the program's own domain, while the other is open
  nvtxDomainRangePop(domain);
  nvtxEventAttributes_t plain = attributes();
  plain.messageType = NVTX_MESSAGE_TYPE_ASCII;
  plain.message.ascii = "with attributes";
  nvtxRangePushEx(&plain);
  nap();
  nvtxRangePop();
  nvtxRangePop();
}

}  // namespace

int main() {
  void* library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  auto* initialize = library ? reinterpret_cast<int (*)()>(dlsym(library, "warpsight_begin")) : nullptr;
  if (!initialize || initialize() != 1) return 3;
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("theirs");
  const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  for (int step = 0; step < 10; ++step) mark_a_step(domain, text);
  const nvtxDomainHandle_t xla = nvtxDomainCreateA("TSL");
  run_a_function(xla), run_a_fusion(xla);
  const nvtxRangeId_t open = nvtxRangeStartA("from one thread to another");
  std::thread([open] {
    nap();
    nvtxRangeEnd(open);
  }).join();
  nvtxRangeEnd(open + 100);  // none
  nvtxMarkA("an instant");
  nvtxRangePop();  // one too many
  return 0;
}
