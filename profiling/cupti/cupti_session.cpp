#include "profiling/cupti/cupti_session.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <thread>

#include "profiling/base/clock.h"
#include "profiling/cupti/cupti_calls.h"

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

// The clock of activity records.
uint64_t gpu_time() {
  uint64_t now = 0;
  cuptiGetTimestamp(&now);
  return now;
}

CuptiSession* session() { return static_cast<CuptiSession*>(gpu_tracer()); }

}  // namespace

GpuTracer* gpu_tracer() {
  static CuptiSession* session = new CuptiSession;  // never destroyed: the driver calls back until the process ends
  return session;
}

std::string gpu_tracer_library() {
  Dl_info where{};
  const bool found = dladdr(reinterpret_cast<void*>(&cuptiGetVersion), &where) != 0 && where.dli_fname;
  return found ? where.dli_fname : "";
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
  if (registered != CUPTI_SUCCESS) return explain("cuptiActivityRegisterCallbacks", registered);
  for (CUpti_CallbackId id : graph_launch_calls()) cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  // All the time: the driver crashes when it is asked about a pool that it has destroyed.
  cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy);
  for (CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
        CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED}) {
    cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
  }
  return "";
}

void CuptiSession::begin(TraceContext& context) {
  // What was lost, or came late, by leaving the driver before belongs to nobody: every kind of record was off by then.
  count_dropped();
  dropped_ = 0;
  buffers_.discard_filled();
  ++sessions_;
  context.call_name = call_name;
  context_ = &context;
  whole_refused_ = whole_by_node_ = node_limit_ = false;
  graph_kernels_ = 0;
  unsettled_ = graphs_seen_ = false;
  parser_ = std::make_unique<RecordParser>(context);
}

void CuptiSession::end() {
  first_call_awaited_ = false;
  parser_.reset();
  context_ = nullptr;
}

// Unsubscribing alone leaves launches slower than before by a tenth. Node and graph numbers mean nothing to the next
// subscription.
void CuptiSession::detach() {
  if (!subscriber_) return;
  cuptiUnsubscribe(subscriber_);
  cuptiFinalize();
  subscriber_ = nullptr;
  std::scoped_lock lock(kinds_mutex_, nodes_mutex_, graphs_mutex_);
  enabled_.clear();
  whole_graphs_.clear();
  nodes_.clear();
  cuts_.clear();
  last_launch_ = 0;  // launches are numbered anew
  kinds_ = {};
  allocations_on_ = launches_on_ = waits_on_ = runtime_on_ = false;
  pools_.forget();
  for (auto* flag : {&draw_calls_, &graph_runs_on_, &unsettled_, &building_, &kernels_on_, &wants_whole_})
    flag->store(false);
}

void CuptiSession::enable(CUpti_ActivityKind kind, bool on) {
  if (on == enabled_.contains(kind)) return;
  const CUptiResult result = on ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind);
  if (result != CUPTI_SUCCESS) return;
  if (on)
    enabled_.insert(kind);
  else
    enabled_.erase(kind);
}

void CuptiSession::enable_callbacks(std::span<const CUpti_CallbackId> ids, CUpti_CallbackDomain domain, bool on,
                                    bool& was_on) {
  if (on == was_on) return;
  was_on = on;
  for (CUpti_CallbackId id : ids) cuptiEnableCallback(on, subscriber_, domain, id);
}

void CuptiSession::apply(const GpuKinds& kinds, bool may_wait) {
  const bool leaves = graph_kernels_recorded() && (!kinds.kernels || kinds.graph_runs);
  const bool ends = leaves && may_wait && !building_.load(std::memory_order_relaxed);
  const bool stops = graphs_seen() && kernels_on_.load(std::memory_order_relaxed) && !kinds.kernels;
  if (ends) end_graph_kernels();
  std::lock_guard lock(kinds_mutex_);
  if (!subscriber_) return;
  const uint64_t before = gpu_time();
  apply_locked(kinds);
  if ((leaves || stops) && !ends) cut_graph_kernels(before, false);
}

// A launch that began before the kinds changed is counted in when it is asked for afterwards.
void CuptiSession::cut_graph_kernels(uint64_t time, bool counts) {
  std::lock_guard lock(nodes_mutex_);
  cuts_.push_back({time, last_launch_.load(std::memory_order_relaxed), counts});
}

bool CuptiSession::graph_kernels_recorded() const {
  return graphs_seen() && kernels_on_.load(std::memory_order_relaxed) &&
         !graph_runs_on_.load(std::memory_order_relaxed);
}

// The wait is ours: calls are not recorded any more. What ends meanwhile is flushed meanwhile, since the GPU stands
// still from the last graph's end until the last flush's.
void CuptiSession::end_graph_kernels() {
  {
    std::lock_guard lock(kinds_mutex_);
    if (!subscriber_) return;
    GpuKinds kernels = kinds_;
    kernels.calls = false;
    apply_locked(kernels);
  }
  {
    const std::jthread flushing([](const std::stop_token& waited) {
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      while (!ended.wait_for(lock, waited, std::chrono::milliseconds(1), [&] { return waited.stop_requested(); }))
        cuptiActivityFlushAll(0);
    });
    cudaDeviceSynchronize();
  }
  cuptiActivityFlushAll(0);
}

// Calls of the driver tell which op launched what. Unlike the activity records of calls they come whenever they are
// switched on, also after the context was made, and cost less. Of a call that was heard to begin and not to end, the
// driver takes all later ones of its thread for a part: they are not told, and their kernels have its number.
void CuptiSession::apply_locked(const GpuKinds& kinds) {
  const bool any = kinds.allocations || kinds.kernels;
  if (!any) pools_.forget();
  const bool launches = kinds.kernels, calls = kinds.calls;
  enable_callbacks(allocator_calls(), CUPTI_CB_DOMAIN_DRIVER_API, any, allocations_on_);
  if (launches_on_ != launches || waits_on_ != calls || runtime_on_ != calls) ++call_switches_;
  enable_callbacks(launch_calls(), CUPTI_CB_DOMAIN_DRIVER_API, launches, launches_on_);
  enable_callbacks(driver_waits(), CUPTI_CB_DOMAIN_DRIVER_API, calls, waits_on_);
  enable_callbacks(runtime_calls(), CUPTI_CB_DOMAIN_RUNTIME_API, calls, runtime_on_);
  draw_calls_.store(kinds.calls && !kinds.resting, std::memory_order_relaxed);
  const bool whole = kinds.kernels && (kinds.graph_runs || node_limit_) && !whole_refused_;
  // A graph that is launched between two switches may find whole records without those of kernels, never the other way:
  // the driver would give a kernel of it the time of a later one.
  if (whole) enable_graph_runs(true);
  kernels_on_.store(kinds.kernels, std::memory_order_relaxed);
  wants_whole_.store(kinds.whole_graphs, std::memory_order_relaxed);
  for (auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD}) {
    enable(kind, kinds.kernels);
  }
  if (!whole) enable_graph_runs(false);
  for (auto kind :
       {CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION}) {
    enable(kind, kinds.calls);
  }
  enable(CUPTI_ACTIVITY_KIND_MARKER, kinds.nvtx);
  kinds_ = kinds;
}

void CuptiSession::enable_graph_runs(bool on) {
  enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, on || building_.load(std::memory_order_relaxed));
  graph_runs_on_.store(on, std::memory_order_relaxed);
}

void CuptiSession::flush() {
  if (!subscriber_) return;
  cuptiActivityFlushAll(0);
  count_dropped();
  keep_below_node_limit();  // here, because it can wait as long as the flush can
}

// On the thread that flushes: elsewhere the question would wait for a flush.
void CuptiSession::count_dropped() {
  size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
    dropped_.fetch_add(dropped, std::memory_order_relaxed);
  }
}

void CuptiSession::learn_device(CUcontext context) {
  uint32_t device = 0;
  if (device_.load(std::memory_order_relaxed) < 0 && cuptiGetDeviceId(context, &device) == CUPTI_SUCCESS)
    device_.store(static_cast<int>(device), std::memory_order_relaxed);
}

// For threads of ours: they would otherwise ask the first device, and make a context there that the program never made.
void CuptiSession::use_device() const {
  if (device_number() > 0) cudaSetDevice(device_number());
}

// A forced flush after the kinds were switched off would switch graphs' records on again: it has to come before.
void CuptiSession::finish() {
  if (!subscriber_) return;
  use_device();
  if (context_seen_.load(std::memory_order_relaxed)) cudaDeviceSynchronize();
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  apply({}, false);
  cuptiActivityFlushAll(0);
  count_dropped();
}

void CuptiSession::drain_nodes() {
  std::vector<NodeNote> notes;
  std::vector<GraphCut> cuts;
  {
    std::lock_guard lock(nodes_mutex_);
    notes.swap(nodes_);
    cuts.swap(cuts_);
  }
  for (const GraphCut& cut : cuts) parser_->cut(cut);
  for (const NodeNote& note : notes) {
    if (note.original)
      context_->join.node_cloned(note.original, note.node);
    else
      context_->join.node_created(note.node, note.op, note.offset);
  }
}

void CuptiSession::drain(bool last) {
  if (!parser_) return;
  const auto filled = buffers_.take_filled();
  if (!filled.empty()) context_seen_.store(true, std::memory_order_relaxed);
  for (const RecordBuffers::Filled& buffer : filled) {
    if (context_->before_buffer) context_->before_buffer();
    drain_nodes();  // a node is made before its first record is
    parser_->parse(buffer.data, buffer.valid);
    buffers_.give_back(buffer.data);
  }
  context_->batch.losses().dropped_records += dropped_.exchange(0, std::memory_order_relaxed);
  parser_->retry_waiting(last);
  graph_kernels_.store(parser_->graph_kernels(), std::memory_order_relaxed);
}

// The driver never frees what it wrote about the kernels of graphs that were made for whole records, and stops writing,
// without a word, after some 25 million. Before that such graphs go back to whole records.
void CuptiSession::keep_below_node_limit() {
  constexpr uint64_t kMostNodes = 20'000'000;
  if (node_limit_ || !whole_by_node_ || graph_kernels_ < kMostNodes) return;
  std::lock_guard lock(kinds_mutex_);
  node_limit_ = true;
  const uint64_t before = gpu_time();
  apply_locked(kinds_);
  cut_graph_kernels(before, true);
}

ClockOffset CuptiSession::calibrate_clock() { return calibrate(gpu_time); }

GpuCounts CuptiSession::counts() const {
  return {parser_ ? parser_->records() : 0, buffers_.total() - buffers_.unused(), buffers_.total()};
}

// Only where a context exists already: asking would make one.
std::optional<GpuTracer::MemoryReading> CuptiSession::read_memory() {
  if (!context_seen_.load(std::memory_order_relaxed)) return std::nullopt;
  size_t unused = 0, total = 0;
  MemoryReading reading;
  use_device();
  if (cudaMemGetInfo(&unused, &total) != cudaSuccess) return std::nullopt;
  reading.used_on_device = static_cast<double>(total - unused);
  reading.pools = pools_.ask();
  reading.time = steady_ns();
  return reading;
}

GpuTracer::Device CuptiSession::device() const {
  cudaDeviceProp card{};
  int driver = 0;
  if (!context_seen_.load(std::memory_order_relaxed) || cudaGetDeviceProperties(&card, device_number()) != cudaSuccess)
    return {};
  cudaDriverGetVersion(&driver);
  return {card.name, std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10),
          std::to_string(card.major) + "." + std::to_string(card.minor)};
}

void CuptiSession::at_first_call(std::function<void()> what) {
  first_call_ = std::move(what);
  first_call_awaited_ = true;
}

void CUPTIAPI CuptiSession::on_request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = session()->buffers_.take();
  *size = *buffer ? RecordBuffers::kBytes : 0;
  *max_records = 0;
}

// On a thread of the driver, or one of the program: read by the collector's.
void CUPTIAPI CuptiSession::on_complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  if (buffer) session()->buffers_.filled(buffer, valid);
}

}  // namespace ws::prof
