// The one CUPTI subscription of the process: its buffers, its callbacks, and which record kinds are on.
#pragma once
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_set>
#include <vector>

#include "profiling/cupti/cupti_parse.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/cupti/known_pools.h"
#include "profiling/cupti/pc_sampler.h"
#include "profiling/cupti/record_buffers.h"

namespace ws::prof {

class CuptiSession final : public GpuTracer {
 public:
  std::string open(bool inside_driver_start) override;
  void begin(TraceContext& context) override;
  void apply(const GpuKinds& kinds, bool may_wait) override;
  bool graph_kernels_recorded() const override;
  bool graphs_seen() const override { return graphs_seen_.load(std::memory_order_relaxed); }
  bool graphs_unsettled() const override { return unsettled_.load(std::memory_order_relaxed); }
  bool kernels_refused() const override { return node_limit_.load(std::memory_order_relaxed); }
  bool graphs_refused() const override { return whole_refused_.load(std::memory_order_relaxed); }
  void flush() override;
  void finish() override;
  void drain(bool last) override;
  std::optional<MemoryReading> read_memory() override;
  Device device() const override;
  int device_number() const override { return std::max(0, device_.load(std::memory_order_relaxed)); }
  void watch_captures(std::function<void(bool)> changed) override;
  void at_first_call(std::function<void()> what) override;
  void at_next_call(std::function<void()> what) override;
  void keep_modules() override;
  std::string sampling_refused() override { return sampler_.refused(); }
  ClockOffset calibrate_clock() override;
  GpuCounts counts() const override;
  void end() override;
  void detach() override;

 private:
  struct NodeNote {
    uint64_t node, original;
    OpTag op;
    uint32_t offset;
    NcclWork work;
  };

  std::string subscribe();
  void apply_locked(const GpuKinds& kinds);
  void end_graph_kernels();
  void enable(CUpti_ActivityKind kind, bool on);
  void enable_graph_runs(bool on);
  void enable_callbacks(std::span<const CUpti_CallbackId> ids, CUpti_CallbackDomain domain, bool on, bool& was_on);
  void note_caller(MarkedThread& thread);
  bool switches(bool on, bool was_on) const;
  void drain_nodes();
  void cut_graph_kernels(uint64_t time, bool counts);
  void begin_sampling(uint32_t period);
  void end_sampling();
  void count_dropped();

  static void CUPTIAPI on_request(uint8_t** buffer, size_t* size, size_t* max_records);
  static void CUPTIAPI on_complete(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid);
  static void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  bool on_capture_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  void before_call(const CUpti_CallbackData& call);
  void on_driver_call(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void on_runtime_call(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void on_allocator_call(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void on_launch_call(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void on_graph_launch(const CUpti_CallbackData& call);
  void on_resource(CUpti_CallbackId id, const CUpti_ResourceData& resource);
  void on_module_loaded(const CUpti_ModuleResourceData& module);
  void on_graph_created();
  void on_graph_ready(const CUpti_GraphData& graph);
  void on_node_created(const CUpti_GraphData& graph);
  void on_node_cloned(const CUpti_GraphData& graph);
  bool may_run_whole(CUgraphExec graph);
  void refuse_whole_graphs();
  void keep_below_node_limit();
  void learn_device(CUcontext context);
  void use_device() const;

  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::string refused_;  // why open() failed; subscribing is not tried twice
  // A callback can run on the thread that switches kinds. In resource callbacks the driver may hold locks that
  // switching needs, so there we wait for this mutex only briefly.
  std::recursive_timed_mutex kinds_mutex_;
  GpuKinds kinds_;
  std::set<CUpti_ActivityKind> enabled_;
  std::atomic<bool> whole_refused_{false};
  std::atomic<bool> whole_by_node_{false};  // a graph made for whole-graph records was launched with node records
  // node records have reached the limit of the driver: only whole-graph records are left
  std::atomic<bool> node_limit_{false};
  bool allocations_on_ = false, launches_on_ = false, waits_on_ = false, runtime_on_ = false;
  std::atomic<bool> graphs_seen_{false}, draw_calls_{false}, graph_runs_on_{false}, unsettled_{false}, building_{false};
  std::atomic<bool> kernels_on_{false}, wants_whole_{false};
  std::atomic<bool> idle_{false};  // nothing is recorded
  std::atomic<uint32_t> call_switches_{
      0};  // counts switches of callbacks; a call entered before a switch misses its begin or its end
  std::mutex graphs_mutex_;
  std::unordered_set<uint32_t> whole_graphs_;  // made while whole-graph records were on

  RecordBuffers buffers_;
  std::atomic<uint64_t> graph_kernels_{0};  // read so far
  std::atomic<uint64_t> dropped_{0};        // by the driver, not yet added to the losses
  std::atomic<bool> context_seen_{false}, first_call_awaited_{false}, next_call_awaited_{false};
  std::atomic<int> device_{-1};  // device of the first context; -1: not known
  KnownPools pools_;
  std::function<void()> first_call_;
  std::mutex next_call_mutex_;
  std::function<void()> next_call_;  // guarded by next_call_mutex_
  std::atomic<CUcontext> work_context_{nullptr};  // the newest one that the program worked in
  PcSampler sampler_;
  std::function<void(bool)> captures_;  // set once, before its callbacks are enabled
  std::atomic<uint64_t> sessions_{0};
  std::atomic<int> callers_{0};  // threads that have called the driver in this session
  bool ending_ = false;          // of this session; guarded by kinds_mutex_
  std::mutex nodes_mutex_;
  std::vector<NodeNote> nodes_;
  std::vector<GraphCut> cuts_;            // not yet passed to the parser; guarded by nodes_mutex_
  std::atomic<uint32_t> last_launch_{0};  // correlation of the last graph launch

  TraceContext* context_ = nullptr;
  std::unique_ptr<RecordParser> parser_;
};

}  // namespace ws::prof
