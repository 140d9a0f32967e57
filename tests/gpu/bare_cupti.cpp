#include "tests/gpu/bare_cupti.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "profiling/annotate/annotate.h"

namespace ws::prof::testing {

namespace {

constexpr size_t kBytes = 1 << 20;
std::mutex g_mutex;
std::vector<uint8_t*> g_free;
std::vector<std::pair<uint8_t*, size_t>> g_filled;
std::atomic<uint64_t> g_records{0};
std::jthread g_thread;
CUpti_SubscriberHandle g_subscriber;

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* records) {
  std::lock_guard lock(g_mutex);
  if (g_free.empty()) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBytes));
    std::memset(*buffer, 0, kBytes);
  } else {
    *buffer = g_free.back();
    g_free.pop_back();
  }
  *size = kBytes;
  *records = 0;
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  std::lock_guard lock(g_mutex);
  g_filled.emplace_back(buffer, valid);
}

void walk() {
  std::vector<std::pair<uint8_t*, size_t>> filled;
  {
    std::lock_guard lock(g_mutex);
    filled.swap(g_filled);
  }
  for (auto [buffer, valid] : filled) {
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) ++g_records;
    std::memset(buffer, 0, kBytes);
    std::lock_guard lock(g_mutex);
    g_free.push_back(buffer);
  }
}

void CUPTIAPI ignore(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// Names each op to CUPTI, and only ops.
class PushedOps final : public Listener {
  void step_begin(int64_t) override {}
  void step_end() override {}
  void phase_begin(const char*) override {}
  void phase_end() override {}
  void op_begin(OpTag op) override {
    cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, op);
  }
  void op_end() override {
    uint64_t op = 0;
    cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &op);
  }
  void memory(const MemoryNote&) override {}
  void step_joined(int64_t) override {}
  void works_for(int) override {}
  void steps_launched(int64_t, int64_t) override {}
  int64_t steps_traced_alike(int64_t) override { return 1; }
};
PushedOps g_pushed_ops;

}  // namespace

BareKinds bare_kinds(std::string_view name) {
  if (name == "bare-graph") return BareKinds::GraphRuns;
  if (name == "bare-records") return BareKinds::Records;
  return name == "bare-joined" ? BareKinds::Joined : BareKinds::Full;
}

void bare_start(BareKinds kinds) {
  g_records = 0;
  cuptiSubscribe(&g_subscriber, ignore, nullptr);
  uint8_t one = 1;
  size_t size = 1;
  cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &one);
  cuptiActivityRegisterCallbacks(request, complete);
  const bool joined = kinds != BareKinds::Records;
  if (kinds == BareKinds::GraphRuns) cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  if (joined) cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  for (auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD}) {
    cuptiActivityEnable(kind);
  }
  if (joined) {
    for (CUpti_CallbackId id :
         {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
          CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020}) {
      cuptiActivityEnableRuntimeApi(id, 1);
    }
    for (CUpti_CallbackId id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx}) {
      cuptiActivityEnableDriverApi(id, 1);
    }
  }
  if (kinds == BareKinds::Full) {
    for (auto kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION}) {
      cuptiActivityEnable(kind);
    }
  }
  if (joined) set_listener(&g_pushed_ops);
  g_thread = std::jthread([](const std::stop_token& end) {
    while (!end.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      cuptiActivityFlushAll(0);
      walk();
    }
  });
}

uint64_t bare_stop() {
  set_listener(nullptr);
  g_thread.request_stop();
  g_thread.join();
  cudaDeviceSynchronize();
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  walk();
  cuptiUnsubscribe(g_subscriber);
  cuptiFinalize();
  return g_records;
}

}  // namespace ws::prof::testing
