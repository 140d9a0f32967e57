// The process's one subscription to CUPTI: buffers, callbacks, and which kinds of record are on.
#pragma once
#include <cupti.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "profiling/collectors/cupti_parse.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/record_buffers.h"

namespace ws::prof {

class CuptiSession final : public GpuTracer {
 public:
  std::string open(bool inside_driver_start) override;
  void begin(TraceContext& context) override;
  void apply(const GpuKinds& kinds) override;
  void flush(bool forced) override;
  void drain(bool last) override;
  void poll_memory() override;
  ClockOffset calibrate_clock() override;
  GpuCounts counts() const override;
  void end() override;

  void push(uint64_t external_id) override {
    cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, external_id);
  }
  void pop() override {
    uint64_t id = 0;
    cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
  }

 private:
  struct NodeNote { uint64_t node, original; OpTag op; uint32_t offset; };

  std::string subscribe();
  void enable(CUpti_ActivityKind kind, bool on);
  void enable_calls(bool launches, bool further);
  void enable_callbacks(bool on);
  void drain_nodes();
  void poll_device(int device);

  static void CUPTIAPI on_request(uint8_t** buffer, size_t* size, size_t* max_records);
  static void CUPTIAPI on_complete(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid);
  static void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  void on_driver_call(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void on_allocator_call(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void on_graph_launch(const CUpti_CallbackData& call);
  void on_resource(CUpti_CallbackId id, const CUpti_ResourceData& resource);
  void on_node_created(const CUpti_GraphData& graph);
  void on_node_cloned(const CUpti_GraphData& graph);

  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::string refused_;  // why open() failed; it is not tried twice
  std::mutex kinds_mutex_;
  GpuKinds kinds_;
  std::set<CUpti_ActivityKind> enabled_;
  bool launches_on_ = false, further_on_ = false, callbacks_on_ = false;

  RecordBuffers buffers_;
  std::atomic<bool> context_seen_{false}, pool_used_{false};
  std::mutex nodes_mutex_;
  std::vector<NodeNote> nodes_;

  TraceContext* context_ = nullptr;
  std::unique_ptr<RecordParser> parser_;
  double poll_cost_ms_ = 0;
};

}  // namespace ws::prof
