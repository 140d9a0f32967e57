// What CUPTI tells on the program's own threads, at the moment it happens: each function here is short and never waits.
#include <chrono>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/cupti/cupti_calls.h"
#include "profiling/cupti/cupti_session.h"

namespace ws::prof {

void CUPTIAPI CuptiSession::on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                        const void* data) {
  auto* me = static_cast<CuptiSession*>(self);
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return me->on_driver_call(id, *static_cast<const CUpti_CallbackData*>(data));
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return me->on_runtime_call(id, *static_cast<const CUpti_CallbackData*>(data));
    case CUPTI_CB_DOMAIN_RESOURCE:
      return me->on_resource(id, *static_cast<const CUpti_ResourceData*>(data));
    default:
      return;
  }
}

void CuptiSession::on_driver_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (first_call_awaited_.load(std::memory_order_relaxed) && call.callbackSite == CUPTI_API_ENTER &&
      first_call_awaited_.exchange(false))
    first_call_();
  if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz) {
    if (call.callbackSite == CUPTI_API_ENTER) on_graph_launch(call);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy) {
    const CUmemoryPool pool = static_cast<const cuMemPoolDestroy_params*>(call.functionParams)->pool;
    call.callbackSite == CUPTI_API_ENTER ? pools_.about_to_be_destroyed(pool) : pools_.destroyed(pool);
  } else if (allocator_call(id)) {
    on_allocator_call(id, call);
  } else {
    on_launch_call(id, call);
  }
}

namespace {

constexpr std::chrono::milliseconds kPatience{20};  // with whoever switches kinds, while the driver waits for us

void push_call(CUpti_CallbackId id, const CUpti_CallbackData& call, bool driver, MarkedThread& thread) {
  HostEvent event;
  event.type = HostEventType::Call;
  event.start = static_cast<int64_t>(*call.correlationData);
  event.end = steady_ns();
  event.b = id;
  event.op = thread.op();
  event.step = thread.step;
  event.correlation = call.correlationId;
  event.what = driver;
  if (event.start != 0) thread.events.push(event);
}

}  // namespace

void CuptiSession::on_launch_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  MarkedThread& thread = Marks::thread();
  const bool draw = draw_calls_.load(std::memory_order_relaxed) && thread.runtime_calls == 0;
  const uint32_t switches = call_switches_.load(std::memory_order_relaxed);
  if (call.callbackSite == CUPTI_API_EXIT) {
    if (draw && thread.call_switches == switches) push_call(id, call, true, thread);
    return;
  }
  thread.enter(switches);
  *call.correlationData = draw ? static_cast<uint64_t>(steady_ns()) : 0;
  const OpAt at = thread.at();
  if (at == OpAt{} || !kernels_on_.load(std::memory_order_relaxed)) return;
  HostEvent event;
  event.type = HostEventType::Launch;
  event.op = at.op;
  event.step = at.step;
  event.correlation = call.correlationId;
  thread.events.push(event);
}

void CuptiSession::on_runtime_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  MarkedThread& thread = Marks::thread();
  const uint32_t switches = call_switches_.load(std::memory_order_relaxed);
  if (call.callbackSite == CUPTI_API_ENTER) {
    thread.enter(switches);
    ++thread.runtime_calls;
    *call.correlationData = static_cast<uint64_t>(steady_ns());
    return;
  }
  if (thread.call_switches != switches) return;
  if (thread.runtime_calls > 0) --thread.runtime_calls;
  if (draw_calls_.load(std::memory_order_relaxed)) push_call(id, call, false, thread);
}

void CuptiSession::on_allocator_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (call.callbackSite == CUPTI_API_ENTER) {
    *call.correlationData = static_cast<uint64_t>(steady_ns());
    return;
  }
  const int64_t now = steady_ns();
  context_seen_.store(true, std::memory_order_relaxed);
  const auto* result = static_cast<const CUresult*>(call.functionReturnValue);
  if (result && *result != CUDA_SUCCESS) return;  // nothing was handed out or taken back
  const auto request = allocator_request(id, call.functionParams);
  if (!request || (request->call == AllocatorCall::Free && request->address == 0)) return;
  MarkedThread& thread = Marks::thread();
  HostEvent event;
  event.type = HostEventType::Allocation;
  event.start = static_cast<int64_t>(*call.correlationData);
  event.end = now;
  event.a = request->address;
  event.b = request->bytes;
  event.op = thread.op();
  event.step = thread.step;
  event.correlation = call.correlationId;
  event.what = static_cast<uint8_t>(request->call);
  thread.events.push(event);
  if (request->call == AllocatorCall::AllocateAsync)
    pools_.allocated_from(pool_of(id, call.functionParams), call.context);
}

void CuptiSession::on_graph_launch(const CUpti_CallbackData& call) {
  last_launch_.store(call.correlationId, std::memory_order_relaxed);
  if (building_.load(std::memory_order_relaxed)) {  // a graph that was begun was never made ready
    std::lock_guard lock(kinds_mutex_);
    building_.store(false, std::memory_order_relaxed);
    apply_locked(kinds_);
  }
  if (graph_runs_on_.load(std::memory_order_relaxed)) {
    if (!may_run_whole(static_cast<const cuGraphLaunch_params*>(call.functionParams)->hGraph)) refuse_whole_graphs();
  } else {
    const bool kernels = kernels_on_.load(std::memory_order_relaxed);
    unsettled_.store(kernels, std::memory_order_relaxed);
    if (kernels && !whole_by_node_.load(std::memory_order_relaxed)) {
      whole_by_node_ = may_run_whole(static_cast<const cuGraphLaunch_params*>(call.functionParams)->hGraph);
    }
  }
  MarkedThread& thread = Marks::thread();
  const uint32_t told = std::exchange(thread.launch_count, 0);  // once for each launch
  if (!kernels_on_.load(std::memory_order_relaxed)) return;
  HostEvent event;
  event.type = HostEventType::GraphLaunch;
  event.a = told ? thread.launch_first : thread.step;
  event.b = told ? told : 1;
  event.correlation = call.correlationId;
  thread.events.push(event);
}

// The driver crashes when a graph that was made without whole-graph records is launched with them: such graphs come
// from before our subscription. Their kernels are recorded one by one instead.
bool CuptiSession::may_run_whole(CUgraphExec graph) {
  uint32_t id = 0;
  if (cuptiGetGraphExecId(graph, &id) != CUPTI_SUCCESS) return false;
  std::lock_guard lock(graphs_mutex_);
  return whole_graphs_.contains(id);
}

void CuptiSession::refuse_whole_graphs() {
  std::lock_guard lock(kinds_mutex_);
  whole_refused_ = true;
  apply_locked(kinds_);
}

void CuptiSession::on_resource(CUpti_CallbackId id, const CUpti_ResourceData& resource) {
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    learn_device(resource.context);
    context_seen_.store(true, std::memory_order_relaxed);
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPH_CREATED) on_graph_created();
  const auto* graph = static_cast<const CUpti_GraphData*>(resource.resourceDescriptor);
  if (!graph) return;
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) on_graph_ready(*graph);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) on_node_created(*graph);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) on_node_cloned(*graph);
}

// Whole-graph records have to be on while a graph is made that shall have them. Only then: the driver keeps what it
// writes about the kernels of such a graph for good, and flushing waits for its launches.
void CuptiSession::on_graph_created() {
  if (building_.load(std::memory_order_relaxed) || !wants_whole_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(kinds_mutex_, kPatience);
  if (!lock) return;  // its kernels are recorded one by one then
  building_.store(true, std::memory_order_relaxed);
  enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, true);
}

void CuptiSession::on_graph_ready(const CUpti_GraphData& graph) {
  graphs_seen_.store(true, std::memory_order_relaxed);
  if (!building_.load(std::memory_order_relaxed)) return;
  uint32_t id = 0;
  if (cuptiGetGraphExecId(graph.graphExec, &id) == CUPTI_SUCCESS) {
    std::lock_guard graphs(graphs_mutex_);
    whole_graphs_.insert(id);
  }
  const std::unique_lock lock(kinds_mutex_, kPatience);
  if (!lock) return;  // the next launch of a graph sees to it
  building_.store(false, std::memory_order_relaxed);
  apply_locked(kinds_);
}

void CuptiSession::on_node_created(const CUpti_GraphData& data) {
  thread_local CapturedSteps steps;
  MarkedThread& thread = Marks::thread();
  const OpTag op = thread.op();
  if (op == kNoOp) return;
  uint32_t graph = 0;
  uint64_t node = 0;
  if (cuptiGetGraphId(data.graph, &graph) != CUPTI_SUCCESS || cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS)
    return;
  const uint32_t step = steps.step_of(sessions_.load(std::memory_order_relaxed), graph, op, thread.scopes);
  std::lock_guard lock(nodes_mutex_);
  nodes_.push_back({node, 0, op, step});
}

void CuptiSession::on_node_cloned(const CUpti_GraphData& data) {
  uint64_t node = 0, original = 0;
  if (cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS) return;
  if (cuptiGetGraphNodeId(data.originalNode, &original) != CUPTI_SUCCESS) return;
  std::lock_guard lock(nodes_mutex_);
  nodes_.push_back({node, original, kNoOp, 0});
}

}  // namespace ws::prof
