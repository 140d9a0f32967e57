#include "profiling/cupti/cupti_session.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/base/text.h"
#include "profiling/collectors/nccl_calls.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/cupti/cupti_calls.h"
#include "profiling/cupti/gpu_source.h"
#include "profiling/cupti/hardware_counters.h"
#include "profiling/cupti/late_calls.h"
#include "profiling/cupti/ring_copier.h"

namespace ws::prof {

namespace {

std::string explain(const char* call, CUptiResult result) {
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  return std::string(call) + " answered " + (text ? text : "error " + std::to_string(result));
}

// Do not call CUPTI without a driver: some of its calls crash.
std::string device_missing() {
  int devices = 0, driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) return "no NVIDIA driver is installed";
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result != cudaSuccess) {
    cudaGetLastError();
    return std::string("no usable CUDA device (") + cudaGetErrorString(result) + ")";
  }
  return devices > 0 ? "" : "no CUDA device";
}

// Reads the clock of activity records.
uint64_t gpu_time() {
  uint64_t now = 0;
  cuptiGetTimestamp(&now);
  return now;
}

CUptiResult next_record(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) {
  return cuptiActivityGetNextRecord(buffer, valid_bytes, record);
}

CuptiSession* session() {
  static auto* session = new CuptiSession;  // never destroyed: the driver calls back until the process ends
  return session;
}

}  // namespace

GpuSource cupti_gpu_source() {
  return {[]() -> GpuTracer* { return session(); }, make_hardware_counters};
}

std::string CuptiSession::open(bool inside_driver_start) {
  if (subscriber_ || !refused_.empty()) return refused_;
  if (refused_ = late_library_missing(); !refused_.empty()) return refused_;
  if (!inside_driver_start) {
    // May change, so it is checked again next time.
    if (std::string missing = device_missing(); !missing.empty()) return missing;
  }
  return refused_ = subscribe();
}

std::string CuptiSession::subscribe() {
  uint32_t version = 0;
  if (cuptiGetVersion(&version) != CUPTI_SUCCESS || version < CUPTI_API_VERSION) {
    return formatted("the CUPTI library found is older than the one Warpsight was built with: install CUDA {}.{} or newer, or pip's nvidia-cuda-cupti",
                     CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  char other[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = {};
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "Warpsight";
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
  // Always enabled: the driver crashes when it is asked about a destroyed pool.
  cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy);
  for (CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
        CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED}) {
    cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
  }
  return "";
}

void CuptiSession::begin(TraceContext& context) {
  // Records lost or delayed by the previous detach() belong to no trace: every record kind was off by then.
  count_dropped();
  dropped_ = 0;
  buffers_.discard_filled();
  ++sessions_;
  callers_ = 0;
  {
    std::lock_guard lock(kinds_mutex_);
    ending_ = false;
  }
  context.call_name = call_name;
  context_ = &context;
  whole_refused_ = whole_by_node_ = node_limit_ = false;
  graph_kernels_ = 0;
  unsettled_ = graphs_seen_ = false;
  work_context_ = nullptr;
  parser_ = std::make_unique<RecordParser>(context);
}

void CuptiSession::end() {
  first_call_awaited_ = next_call_awaited_ = false;
  parser_.reset();
  context_ = nullptr;
}

// Unsubscribing alone would leave launches a tenth slower than before. Node and graph numbers are not valid in the next
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
  last_launch_ = 0;  // launch numbers begin again
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
  if (!switches(on, was_on)) return;
  was_on = on;
  for (CUpti_CallbackId id : ids) cuptiEnableCallback(on, subscriber_, domain, id);
}

// A thread that is inside a call when its callbacks go off never reports its end: see apply_locked(). With several
// threads that call the driver they stay on until the session ends, and flags keep them silent.
bool CuptiSession::switches(bool on, bool was_on) const {
  return on != was_on && (on || ending_ || callers_.load(std::memory_order_relaxed) <= 1);
}

void CuptiSession::note_caller(MarkedThread& thread) {
  const uint64_t session = sessions_.load(std::memory_order_relaxed);
  if (std::exchange(thread.called_in, session) != session) callers_.fetch_add(1, std::memory_order_relaxed);
}

void CuptiSession::apply(const GpuKinds& kinds, bool may_wait) {
  const bool leaves = graph_kernels_recorded() && (!kinds.kernels || kinds.graph_runs);
  const bool ends = leaves && may_wait && !building_.load(std::memory_order_relaxed);
  const bool stops = graphs_seen() && kernels_on_.load(std::memory_order_relaxed) && !kinds.kernels;
  if (ends) end_graph_kernels();
  std::lock_guard lock(kinds_mutex_);
  if (!subscriber_) return;
  const uint64_t before = gpu_time();
  if (kinds.sampling == 0) end_sampling();  // kernels cannot be recorded before
  apply_locked(kinds);
  if (kinds.sampling > 0) begin_sampling(kinds.sampling);
  if ((leaves || stops) && !ends) cut_graph_kernels(before, false);
}

void CuptiSession::begin_sampling(uint32_t period) {
  const OwnCalls ours;
  CUcontext context = work_context_.load(std::memory_order_relaxed);
  if (!context) context = current_context();  // no call was seen, because none is recorded at this level
  sampler_.start(context, period, context_ ? context_->step_now.load() : 0, steady_ns());
}

void CuptiSession::end_sampling() {
  if (!sampler_.running()) return;
  const OwnCalls ours;
  sampler_.stop(context_ ? context_->step_now.load() : 0, steady_ns());
}

// Reads the last launch after the kinds have changed, so that a launch which began before the change is included.
void CuptiSession::cut_graph_kernels(uint64_t time, bool counts) {
  std::lock_guard lock(nodes_mutex_);
  cuts_.push_back({time, last_launch_.load(std::memory_order_relaxed), counts});
}

bool CuptiSession::graph_kernels_recorded() const {
  return graphs_seen() && kernels_on_.load(std::memory_order_relaxed) &&
         !graph_runs_on_.load(std::memory_order_relaxed);
}

// Calls are not recorded meanwhile, because this wait is ours. Records are flushed while graphs end: the GPU is idle
// from the end of the last graph until the last flush.
void CuptiSession::end_graph_kernels() {
  {
    std::lock_guard lock(kinds_mutex_);
    if (!subscriber_) return;
    GpuKinds silent = kinds_;
    silent.hide_calls = true;
    apply_locked(silent);
    enable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, false);
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

// Driver callbacks tell which op launched what. Unlike activity records of calls, they start when enabled, even after
// the context was made, and cost less. If the end of a call was not observed, the driver treats all later calls of its
// thread as part of it: they are not reported, and their kernels get its number.
void CuptiSession::apply_locked(const GpuKinds& kinds) {
  const bool any = kinds.allocations || kinds.kernels;
  if (!any) pools_.forget();
  const bool launches = kinds.kernels || kinds.sampling > 0, calls = kinds.calls;  // a window of time ends at a launch
  if (any != allocations_on_) {
    allocations_on_ = any;
    for (CUpti_CallbackId id : allocator_calls()) cuptiEnableCallback(any, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
  if (switches(launches, launches_on_) || switches(calls, waits_on_) || switches(calls, runtime_on_)) ++call_switches_;
  enable_callbacks(launch_calls(), CUPTI_CB_DOMAIN_DRIVER_API, launches, launches_on_);
  enable_callbacks(driver_waits(), CUPTI_CB_DOMAIN_DRIVER_API, calls, waits_on_);
  enable_callbacks(runtime_calls(), CUPTI_CB_DOMAIN_RUNTIME_API, calls, runtime_on_);
  draw_calls_.store(kinds.calls && !kinds.hide_calls, std::memory_order_relaxed);
  idle_.store(kinds.nothing(), std::memory_order_relaxed);
  const bool whole = kinds.kernels && (kinds.graph_runs || node_limit_) && !whole_refused_;
  // A graph that is launched between two switches may get whole-graph records without kernel records, but never the
  // reverse: the driver would give a kernel the time of a later one.
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
  kinds_ = kinds;
}

void CuptiSession::enable_graph_runs(bool on) {
  enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, on || building_.load(std::memory_order_relaxed));
  graph_runs_on_.store(on, std::memory_order_relaxed);
}

void CuptiSession::flush() {
  if (!subscriber_) return;
  RingCopier::instance().copy(false);
  cuptiActivityFlushAll(0);
  count_dropped();
  keep_below_node_limit();  // here, because it can wait as long as a flush
}

// Runs on the flushing thread: on others the query would wait for a flush.
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

// For our own threads: they would otherwise use the first device, and create a context there that the program never
// made.
void CuptiSession::use_device() const {
  if (device_number() > 0) cudaSetDevice(device_number());
}

// The forced flush must come before the kinds are switched off: afterwards it would enable graph records again.
void CuptiSession::finish() {
  if (!subscriber_) return;
  use_device();
  if (context_seen_.load(std::memory_order_relaxed)) cudaDeviceSynchronize();
  RingCopier::instance().copy(true);
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  {
    std::lock_guard lock(kinds_mutex_);
    ending_ = true;
  }
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
    else if (note.op != kNoOp)
      context_->join.node_created(note.node, note.op, note.offset);
    if (note.work.any()) context_->join.node_communicates(note.node, note.work);
  }
}

void CuptiSession::drain(bool last) {
  if (!parser_) return;
  const auto filled = buffers_.take_filled();
  if (!filled.empty()) context_seen_.store(true, std::memory_order_relaxed);
  for (const RecordBuffers::Filled& buffer : filled) {
    if (context_->before_buffer) context_->before_buffer();
    drain_nodes();  // a node is made before its first record
    parser_->parse(buffer.data, buffer.valid, next_record);
    buffers_.give_back(buffer.data);
  }
  context_->batch.losses().dropped_records += dropped_.exchange(0, std::memory_order_relaxed);
  parser_->retry_waiting(last);
  sampler_.put(*context_, last);
  graph_kernels_.store(parser_->graph_kernels(), std::memory_order_relaxed);
}

// The driver never frees the kernel records of graphs made for whole-graph records, and stops recording without an
// error after about 25 million. Before that, such graphs go back to whole-graph records.
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

// Asks only if a context exists: the query would create one.
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

namespace {

constexpr CUpti_CallbackId kCaptureCalls[][2] = {
    {CUPTI_DRIVER_TRACE_CBID_cuProfilerStart, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop},
    {CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000}};
constexpr CUpti_CallbackDomain kCaptureDomains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API};

}  // namespace

// In both domains: a runtime that has a profiler's connection of its own may not pass the call on.
void CuptiSession::watch_captures(std::function<void(bool)> changed) {
  captures_ = std::move(changed);
  for (int i = 0; i < 2; ++i)
    for (const CUpti_CallbackId id : kCaptureCalls[i]) cuptiEnableCallback(1, subscriber_, kCaptureDomains[i], id);
}

bool CuptiSession::on_capture_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  for (int i = 0; i < 2; ++i) {
    if (domain != kCaptureDomains[i] || (id != kCaptureCalls[i][0] && id != kCaptureCalls[i][1])) continue;
    const bool starts = id == kCaptureCalls[i][0];
    const CUpti_ApiCallbackSite site = static_cast<const CUpti_CallbackData*>(data)->callbackSite;
    if (captures_ && site == (starts ? CUPTI_API_EXIT : CUPTI_API_ENTER)) captures_(starts);
    return true;
  }
  return false;
}

void CuptiSession::at_first_call(std::function<void()> what) {
  first_call_ = std::move(what);
  first_call_awaited_ = true;
}

void CuptiSession::at_next_call(std::function<void()> what) {
  const std::lock_guard lock(next_call_mutex_);
  next_call_ = std::move(what);
  next_call_awaited_ = true;
}

void CuptiSession::keep_modules() {
  sampler_.modules().begin();
  cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
}

void CUPTIAPI CuptiSession::on_request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = session()->buffers_.take();
  *size = *buffer ? RecordBuffers::kBytes : 0;
  *max_records = 0;
}

// Runs on a thread of the driver or of the program. The collector's thread reads the buffer.
void CUPTIAPI CuptiSession::on_complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  if (buffer) session()->buffers_.filled(buffer, valid);
}

// CUPTI calls this on the program's threads while the call happens. Each handler is short and never waits.
void CUPTIAPI CuptiSession::on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                        const void* data) {
  auto* me = static_cast<CuptiSession*>(self);
  if (OwnCalls::now() && domain != CUPTI_CB_DOMAIN_RESOURCE) return;
  if (me->on_capture_call(domain, id, data)) return;
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

void CuptiSession::before_call(const CUpti_CallbackData& call) {
  if (first_call_awaited_.load(std::memory_order_relaxed) && first_call_awaited_.exchange(false)) first_call_();
  if (call.context && call.context != work_context_.load(std::memory_order_relaxed)) work_context_.store(call.context, std::memory_order_relaxed);
  if (!next_call_awaited_.load(std::memory_order_relaxed) || !next_call_awaited_.exchange(false)) return;
  std::function<void()> what;
  {
    const std::lock_guard lock(next_call_mutex_);
    what = std::move(next_call_);
  }
  what();
}

void CuptiSession::on_driver_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (call.callbackSite == CUPTI_API_ENTER) before_call(call);
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

// Wait for the thread that switches kinds, while the driver waits for us.
constexpr std::chrono::milliseconds kPatience{20};

// Runs inside a call of the program, which must not see an error.
OpTag op_at_launch(MarkedThread& thread) noexcept {
  try {
    return ProgramRanges::instance().op_at_launch(thread);
  } catch (const std::exception&) {  // out of memory for a new place
    return thread.op();
  }
}

OpTag with_native_frames(OpTag op) noexcept {
  try {
    return ProgramRanges::instance().with_native_frames(op);
  } catch (const std::exception&) {
    return op;
  }
}

void push_call(CUpti_CallbackId id, const CUpti_CallbackData& call, bool driver, MarkedThread& thread) {
  HostEvent event;
  event.type = HostEventType::Call;
  event.start = static_cast<int64_t>(*call.correlationData);
  event.end = steady_ns();
  event.b = id;
  event.op = thread.launched ? *thread.launched : op_at_launch(thread);
  thread.launched.reset();
  event.step = thread.work_step();
  event.correlation = call.correlationId;
  event.what = driver;
  if (event.start != 0) thread.push(event);
}

}  // namespace

void CuptiSession::on_launch_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  MarkedThread& thread = Marks::thread();
  const bool draw = draw_calls_.load(std::memory_order_relaxed) && thread.runtime_calls == 0;
  const uint32_t switches = call_switches_.load(std::memory_order_relaxed);
  if (call.callbackSite == CUPTI_API_EXIT) {
    NcclCalls::launch_ends();
    thread.op_of_call = kNoOp;
    if (draw && thread.call_switches == switches) push_call(id, call, true, thread);
    if (thread.runtime_calls == 0) thread.launched.reset();
    return;
  }
  note_caller(thread);
  thread.enter(switches);
  if (idle_.load(std::memory_order_relaxed)) return void(*call.correlationData = 0);
  *call.correlationData = draw ? static_cast<uint64_t>(steady_ns()) : 0;
  const bool kernels = kernels_on_.load(std::memory_order_relaxed);
  const OpTag op = op_at_launch(thread);
  const OpAt at{kernels ? with_native_frames(op) : op, thread.work_step()};
  thread.op_of_call = at.op;
  thread.launched = at.op;
  const NcclWork work = NcclCalls::instance().launch_begins(call.symbolName);
  if ((at == OpAt{} && !work.any()) || !kernels) return;
  HostEvent event;
  event.type = HostEventType::Launch;
  event.a = work.bytes;
  event.b = work.text;
  event.op = at.op;
  event.step = at.step;
  event.correlation = call.correlationId;
  thread.push(event);
}

void CuptiSession::on_runtime_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  MarkedThread& thread = Marks::thread();
  const uint32_t switches = call_switches_.load(std::memory_order_relaxed);
  if (call.callbackSite == CUPTI_API_ENTER) {
    if (idle_.load(std::memory_order_relaxed)) return void(*call.correlationData = 0);
    note_caller(thread);
    thread.enter(switches);
    thread.launched.reset();
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
  if (result && *result != CUDA_SUCCESS) return;  // nothing was allocated or freed
  const auto request = allocator_request(id, call.functionParams);
  if (!request || (request->call == AllocatorCall::Free && request->address == 0)) return;
  MarkedThread& thread = Marks::thread();
  HostEvent event;
  event.type = HostEventType::Allocation;
  const auto begin = static_cast<int64_t>(*call.correlationData);
  event.start = begin > 0 ? begin : now;  // the driver did not report the begin: its length is not known
  event.end = now;
  event.a = request->address;
  event.b = request->bytes;
  event.op = thread.op();
  event.step = thread.step;
  event.correlation = call.correlationId;
  event.what = static_cast<uint8_t>(request->call);
  thread.push(event);
  if (request->call == AllocatorCall::AllocateAsync)
    pools_.allocated_from(pool_of(id, call.functionParams), call.context);
}

void CuptiSession::on_graph_launch(const CUpti_CallbackData& call) {
  last_launch_.store(call.correlationId, std::memory_order_relaxed);
  if (building_.load(std::memory_order_relaxed)) {  // an earlier graph was begun but never instantiated
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
  const uint32_t steps = std::exchange(thread.launch_count, 0);  // valid for one launch
  if (!kernels_on_.load(std::memory_order_relaxed)) return;
  HostEvent event;
  event.type = HostEventType::GraphLaunch;
  event.a = steps ? thread.launch_first : thread.work_step();
  event.b = steps ? steps : 1;
  event.correlation = call.correlationId;
  thread.push(event);
}

// The driver crashes if a graph that was made without whole-graph records is launched with them. Such graphs were made
// before our subscription. Their kernels are recorded one by one instead.
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
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    if (resource.resourceDescriptor) on_module_loaded(*static_cast<const CUpti_ModuleResourceData*>(resource.resourceDescriptor));
    return;
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPH_CREATED) on_graph_created();
  const auto* graph = static_cast<const CUpti_GraphData*>(resource.resourceDescriptor);
  if (!graph) return;
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) on_graph_ready(*graph);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) on_node_created(*graph);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) on_node_cloned(*graph);
}

void CuptiSession::on_module_loaded(const CUpti_ModuleResourceData& module) {
  if (module.pCubin) sampler_.modules().loaded({module.pCubin, module.cubinSize});
}

// Whole-graph records must be on while a graph is made that shall have them. They are on only then: the driver keeps
// kernel records of such a graph forever, and flushing waits for its launches.
void CuptiSession::on_graph_created() {
  if (building_.load(std::memory_order_relaxed) || !wants_whole_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(kinds_mutex_, kPatience);
  if (!lock) return;  // then the kernels of this graph are recorded one by one
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
  if (!lock) return;  // the next graph launch repeats this
  building_.store(false, std::memory_order_relaxed);
  apply_locked(kinds_);
}

void CuptiSession::on_node_created(const CUpti_GraphData& data) {
  thread_local CapturedSteps steps;
  MarkedThread& thread = Marks::thread();
  const OpTag range = thread.op(), op = thread.op_of_call != kNoOp ? thread.op_of_call : range;
  const NcclWork work = NcclCalls::current();
  if (op == kNoOp && !work.any()) return;
  uint32_t graph = 0;
  uint64_t node = 0;
  if (cuptiGetGraphId(data.graph, &graph) != CUPTI_SUCCESS || cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS)
    return;
  const uint32_t step = steps.step_of(sessions_.load(std::memory_order_relaxed), graph, range, thread.scopes);
  std::lock_guard lock(nodes_mutex_);
  nodes_.push_back({node, 0, op, step, work});
}

void CuptiSession::on_node_cloned(const CUpti_GraphData& data) {
  uint64_t node = 0, original = 0;
  if (cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS) return;
  if (cuptiGetGraphNodeId(data.originalNode, &original) != CUPTI_SUCCESS) return;
  std::lock_guard lock(nodes_mutex_);
  nodes_.push_back({node, original, kNoOp, 0, {}});
}

}  // namespace ws::prof
