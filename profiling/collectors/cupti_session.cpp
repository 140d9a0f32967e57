#include "profiling/collectors/cupti_session.h"

#include <cuda_runtime_api.h>

#include <unordered_map>

#include "profiling/clock.h"
#include "profiling/collectors/cupti_calls.h"

namespace ws::prof {

namespace {

std::string explain(const char* call, CUptiResult result) {
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  return std::string(call) + " answered " + (text ? text : "error " + std::to_string(result));
}

// CUPTI must not be touched without a driver: some of its calls crash there.
std::string device_missing() {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result != cudaSuccess) {
    cudaGetLastError();
    return std::string("no usable CUDA device (") + cudaGetErrorString(result) + ")";
  }
  return devices > 0 ? "" : "no CUDA device";
}

CuptiSession* session() { return static_cast<CuptiSession*>(gpu_tracer()); }

}  // namespace

GpuTracer* gpu_tracer() {
  static CuptiSession* session = new CuptiSession;  // never destroyed: the driver calls back until the process ends
  return session;
}

std::string CuptiSession::open(bool inside_driver_start) {
  if (subscriber_ || !refused_.empty()) return refused_;
  if (!inside_driver_start) {
    if (std::string missing = device_missing(); !missing.empty()) return missing;  // may change: asked again next time
  }
  return refused_ = subscribe();
}

std::string CuptiSession::subscribe() {
  uint32_t version = 0;
  if (cuptiGetVersion(&version) != CUPTI_SUCCESS || version < CUPTI_API_VERSION) {
    return "the CUPTI library found is older than the one Warpscope was built with";
  }
  char other[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = {};
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "Warpscope";
  params.oldSubscriberName = other;
  params.oldSubscriberSize = sizeof other;
  const CUptiResult result = cuptiSubscribe_v2(&subscriber_, on_callback, this, &params);
  if (result != CUPTI_SUCCESS) {
    subscriber_ = nullptr;
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
      return std::string("another profiler is attached: ") + (other[0] ? other : "it does not give its name");
    }
    if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) return "the driver allows profiling to administrators only";
    return explain("cuptiSubscribe", result);
  }
  uint8_t one = 1;
  size_t size = sizeof one;
  cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &one);
  cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &one);
  cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  const CUptiResult registered = cuptiActivityRegisterCallbacks(on_request, on_complete);
  return registered == CUPTI_SUCCESS ? "" : explain("cuptiActivityRegisterCallbacks", registered);
}

void CuptiSession::begin(TraceContext& context) {
  context_ = &context;
  parser_ = std::make_unique<RecordParser>(context);
}

void CuptiSession::end() {
  parser_.reset();
  context_ = nullptr;
}

void CuptiSession::enable(CUpti_ActivityKind kind, bool on) {
  if (on == enabled_.contains(kind)) return;
  const CUptiResult result = on ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind);
  if (result != CUPTI_SUCCESS) return;
  if (on) enabled_.insert(kind);
  else enabled_.erase(kind);
}

void CuptiSession::enable_calls(bool launches, bool further) {
  if (launches != launches_on_) {
    for (CUpti_CallbackId id : launch_calls_runtime()) cuptiActivityEnableRuntimeApi(id, launches);
    for (CUpti_CallbackId id : launch_calls_driver()) cuptiActivityEnableDriverApi(id, launches);
    launches_on_ = launches;
  }
  if (further != further_on_) {
    for (CUpti_CallbackId id : further_calls_runtime()) cuptiActivityEnableRuntimeApi(id, further);
    further_on_ = further;
  }
}

void CuptiSession::enable_callbacks(bool on) {
  if (on == callbacks_on_) return;
  callbacks_on_ = on;
  for (CUpti_CallbackId id : allocator_calls()) cuptiEnableCallback(on, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  for (CUpti_CallbackId id : graph_launch_calls()) cuptiEnableCallback(on, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  for (CUpti_CallbackId id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                              CUPTI_CBID_RESOURCE_CONTEXT_CREATED}) {
    cuptiEnableCallback(on, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
  }
}

void CuptiSession::apply(const GpuKinds& kinds) {
  std::lock_guard lock(kinds_mutex_);
  if (!subscriber_) return;
  enable_callbacks(kinds.allocations || kinds.kernels);
  // Tags first: a call recorded without its tag could not be joined.
  enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, kinds.kernels);
  enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, kinds.kernels && kinds.graph_runs);
  for (auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD}) {
    enable(kind, kinds.kernels);
  }
  for (auto kind : {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL}) {
    enable(kind, kinds.calls);
  }
  enable(CUPTI_ACTIVITY_KIND_MARKER, kinds.nvtx);
  enable_calls(kinds.kernels, kinds.calls);
  kinds_ = kinds;
}

void CuptiSession::flush(bool forced) {
  if (!subscriber_) return;
  if (forced) {
    if (context_seen_.load(std::memory_order_relaxed)) cudaDeviceSynchronize();
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  } else {
    cuptiActivityFlushAll(0);
  }
}

void CuptiSession::drain_nodes() {
  std::vector<NodeNote> notes;
  {
    std::lock_guard lock(nodes_mutex_);
    notes.swap(nodes_);
  }
  for (const NodeNote& note : notes) {
    if (note.original) context_->join.node_cloned(note.original, note.node);
    else context_->join.node_created(note.node, note.op, note.offset);
  }
}

void CuptiSession::drain(bool last) {
  if (!parser_) return;
  // Buffers first, then what explains them: a node is made before its first record is.
  const auto filled = buffers_.take_filled();
  if (!filled.empty()) context_seen_.store(true, std::memory_order_relaxed);
  drain_nodes();
  for (const RecordBuffers::Filled& buffer : filled) {
    parser_->parse(buffer.data, buffer.valid);
    buffers_.give_back(buffer.data);
  }
  size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
    context_->batch.losses().dropped_records += dropped;
  }
  parser_->retry_waiting(last);
}

ClockOffset CuptiSession::calibrate_clock() {
  return calibrate([] {
    uint64_t now = 0;
    cuptiGetTimestamp(&now);
    return now;
  });
}

GpuCounts CuptiSession::counts() const {
  return {parser_ ? parser_->records() : 0, buffers_.total() - buffers_.unused(), buffers_.total()};
}

// Only where a context exists already, and rarely if the driver takes its time to answer.
void CuptiSession::poll_memory() {
  if (!context_ || !context_seen_.load(std::memory_order_relaxed) || poll_cost_ms_ > 2) return;
  const int64_t before = steady_ns();
  size_t unused = 0, total = 0;
  if (cudaMemGetInfo(&unused, &total) != cudaSuccess) return;
  const int64_t after = steady_ns();
  poll_cost_ms_ = 0.8 * poll_cost_ms_ + 0.2 * static_cast<double>(after - before) * 1e-6;
  context_->batch.counter("device memory used", "B",
                          {context_->from_steady(before), static_cast<double>(total - unused)});
  if (pool_used_.load(std::memory_order_relaxed)) poll_device(0);
}

void CuptiSession::poll_device(int device) {
  cudaMemPool_t pool = nullptr;
  if (cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess) return;
  uint64_t reserved = 0, used = 0;
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
  const TimeNs now = context_->from_steady(steady_ns());
  context_->batch.counter("pool reserved", "B", {now, static_cast<double>(reserved)});
  context_->batch.counter("pool used", "B", {now, static_cast<double>(used)});
}

void CUPTIAPI CuptiSession::on_request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = session()->buffers_.take();
  *size = *buffer ? RecordBuffers::kBytes : 0;
  *max_records = 0;
}

void CUPTIAPI CuptiSession::on_complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  if (!buffer) return;
  session()->buffers_.filled(buffer, valid);
}

void CUPTIAPI CuptiSession::on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  auto* me = static_cast<CuptiSession*>(self);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) me->on_driver_call(id, *static_cast<const CUpti_CallbackData*>(data));
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) me->on_resource(id, *static_cast<const CUpti_ResourceData*>(data));
}

void CuptiSession::on_driver_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz) {
    if (call.callbackSite == CUPTI_API_ENTER) on_graph_launch(call);
    return;
  }
  on_allocator_call(id, call);
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
  if (request->call == AllocatorCall::AllocateAsync) pool_used_.store(true, std::memory_order_relaxed);
}

void CuptiSession::on_graph_launch(const CUpti_CallbackData& call) {
  MarkedThread& thread = Marks::thread();
  HostEvent event;
  event.type = HostEventType::GraphLaunch;
  event.start = event.end = steady_ns();
  event.a = thread.launch_count ? thread.launch_first : thread.step;
  event.b = thread.launch_count ? thread.launch_count : 1;
  event.correlation = call.correlationId;
  thread.events.push(event);
  thread.launch_count = 0;  // told once for each launch
}

void CuptiSession::on_resource(CUpti_CallbackId id, const CUpti_ResourceData& resource) {
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    context_seen_.store(true, std::memory_order_relaxed);
  } else if (const auto* graph = static_cast<const CUpti_GraphData*>(resource.resourceDescriptor)) {
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) on_node_created(*graph);
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) on_node_cloned(*graph);
  }
}

// A graph can hold several steps: the n-th time that an op is marked while one graph is captured belongs to its n-th step.
void CuptiSession::on_node_created(const CUpti_GraphData& data) {
  struct Seen { uint64_t scope = 0; uint32_t times = 0; };
  thread_local uint32_t current = 0;
  thread_local std::unordered_map<OpTag, Seen> seen;
  MarkedThread& thread = Marks::thread();
  const OpTag op = thread.op();
  if (op == kNoOp) return;
  uint32_t graph = 0;
  uint64_t node = 0;
  if (cuptiGetGraphId(data.graph, &graph) != CUPTI_SUCCESS || cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS) return;
  if (graph != current) seen.clear();
  current = graph;
  Seen& of_op = seen[op];
  if (of_op.scope != thread.scopes) of_op = {thread.scopes, of_op.times + 1};
  std::lock_guard lock(nodes_mutex_);
  nodes_.push_back({node, 0, op, of_op.times - 1});
}

void CuptiSession::on_node_cloned(const CUpti_GraphData& data) {
  uint64_t node = 0, original = 0;
  if (cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS) return;
  if (cuptiGetGraphNodeId(data.originalNode, &original) != CUPTI_SUCCESS) return;
  std::lock_guard lock(nodes_mutex_);
  nodes_.push_back({node, original, kNoOp, 0});
}

}  // namespace ws::prof
