// A program that marks NVTX ranges of every kind. It starts its recording as the CUDA driver would, since there need be none.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
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

// As XLA does for JAX: registered texts in a domain of its own.
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
  auto* initialize = library ? reinterpret_cast<int (*)()>(dlsym(library, "warpscope_begin")) : nullptr;
  if (!initialize || initialize() != 1) return 3;
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("theirs");
  const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  for (int step = 0; step < 10; ++step) mark_a_step(domain, text);
  run_a_function(nvtxDomainCreateA("TSL"));
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
