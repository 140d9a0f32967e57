#include "profiling/cupti/hardware_counters.h"

// Samples hardware counters with PM sampling: the GPU writes a sample each interval, and our thread decodes them.
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "profiling/base/small_thread.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/cupti/late_calls.h"
#include "profiling/cupti/refusal.h"

namespace ws::prof {

namespace {

struct Metric {
  const char* metric;
  const char* track;
  CounterKind kind = CounterKind::Other;
};
constexpr std::array<Metric, 4> kMetrics{{
    {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "SM active"},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor pipe active"},
    {"dram__read_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM read", CounterKind::Dram},
    {"dram__write_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM write", CounterKind::Dram},
}};
constexpr size_t kHardwareBuffer = size_t{64} << 20;
constexpr size_t kSamplesPerImage = 2048;
constexpr auto kDecodeEvery = std::chrono::milliseconds(20);  // the ring must not overflow between two decodings

template <class Params>
Params make(size_t size) {
  Params params{};
  params.structSize = size;
  return params;
}
#define PARAMS(T) make<T>(T##_STRUCT_SIZE)

std::array<const char*, kMetrics.size()> metric_names() {
  std::array<const char*, kMetrics.size()> names;
  for (size_t i = 0; i < kMetrics.size(); ++i) names[i] = kMetrics[i].metric;
  return names;
}

class PmSampling final : public HardwareCounters {
 public:
  ~PmSampling() override { stop(); }
  std::string start(int device, int64_t interval_ns) override;
  bool drain(TraceContext& context) override;
  std::string stop() override;

 private:
  void begin(int64_t interval_ns);
  void read_chip();
  void build_config();
  void make_image();
  void empty_image();
  void release();
  void loop();
  void decode();
  void evaluate(size_t index);

  std::array<const char*, kMetrics.size()> names_ = metric_names();
  int device_ = 0;
  std::string chip_;
  std::vector<uint8_t> availability_, config_, image_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  CUpti_PmSampling_Object* sampling_ = nullptr;
  bool initialized_ = false, started_ = false;
  uint64_t last_ = 0;
  std::atomic<bool> stopping_{false};
  SmallThread thread_;
  std::mutex mutex_;
  std::vector<Sample> samples_;
  std::string trouble_;
};

std::string PmSampling::start(int device, int64_t interval_ns) {
  device_ = device;
  try {
    begin(interval_ns);
  } catch (const Refused& refused) {
    release();
    return refused.why;
  }
  thread_ = SmallThread([this] { loop(); });
  return "";
}

void PmSampling::read_chip() {
  auto supported = PARAMS(CUpti_Profiler_DeviceSupported_Params);
  supported.cuDevice = device_;
  supported.api = CUPTI_PROFILER_PM_SAMPLING;
  check(cuptiProfilerDeviceSupported(&supported), "asking for sampling");
  if (supported.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED) throw Refused{"this GPU cannot sample them"};
  auto name = PARAMS(CUpti_Device_GetChipName_Params);
  name.deviceIndex = static_cast<size_t>(device_);
  check(cuptiDeviceGetChipName(&name), "reading the chip's name");
  chip_ = name.pChipName;
  auto available = PARAMS(CUpti_PmSampling_GetCounterAvailability_Params);
  available.deviceIndex = static_cast<size_t>(device_);
  check(cuptiPmSamplingGetCounterAvailability(&available), "reading which counters there are");
  availability_.resize(available.counterAvailabilityImageSize);
  available.pCounterAvailabilityImage = availability_.data();
  check(cuptiPmSamplingGetCounterAvailability(&available), "reading which counters there are");
}

void PmSampling::build_config() {
  auto host = PARAMS(CUpti_Profiler_Host_Initialize_Params);
  host.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
  host.pChipName = chip_.c_str();
  host.pCounterAvailabilityImage = availability_.data();
  check(cuptiProfilerHostInitialize(&host), "preparing the counters");
  host_ = host.pHostObject;
  auto add = PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host_;
  add.ppMetricNames = names_.data();
  add.numMetrics = names_.size();
  check(cuptiProfilerHostConfigAddMetrics(&add), "choosing the counters");
  auto size = PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host_;
  check(cuptiProfilerHostGetConfigImageSize(&size), "preparing the counters");
  config_.resize(size.configImageSize);
  auto image = PARAMS(CUpti_Profiler_Host_GetConfigImage_Params);
  image.pHostObject = host_;
  image.configImageSize = config_.size();
  image.pConfigImage = config_.data();
  check(cuptiProfilerHostGetConfigImage(&image), "preparing the counters");
  auto passes = PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params);
  passes.configImageSize = config_.size();
  passes.pConfigImage = config_.data();
  check(cuptiProfilerHostGetNumOfPasses(&passes), "preparing the counters");
  if (passes.numOfPasses != 1) throw Refused{"this GPU cannot read these counters in one pass"};
}

void PmSampling::make_image() {
  auto size = PARAMS(CUpti_PmSampling_GetCounterDataSize_Params);
  size.pPmSamplingObject = sampling_;
  size.pMetricNames = names_.data();
  size.numMetrics = names_.size();
  size.maxSamples = kSamplesPerImage;
  check(cuptiPmSamplingGetCounterDataSize(&size), "sizing the sample memory");
  image_.resize(size.counterDataSize);
  empty_image();
}

void PmSampling::empty_image() {
  auto image = PARAMS(CUpti_PmSampling_CounterDataImage_Initialize_Params);
  image.pPmSamplingObject = sampling_;
  image.counterDataSize = image_.size();
  image.pCounterData = image_.data();
  check(cuptiPmSamplingCounterDataImageInitialize(&image), "preparing the sample memory");
}

void PmSampling::begin(int64_t interval_ns) {
  auto init = PARAMS(CUpti_Profiler_Initialize_Params);
  check(cuptiProfilerInitialize(&init), "starting the profiler");
  initialized_ = true;
  read_chip();
  build_config();
  auto enable = PARAMS(CUpti_PmSampling_Enable_Params);
  enable.deviceIndex = static_cast<size_t>(device_);
  check(cuptiPmSamplingEnable(&enable), "taking the counters");
  sampling_ = enable.pPmSamplingObject;
  auto config = PARAMS(CUpti_PmSampling_SetConfig_Params);
  config.pPmSamplingObject = sampling_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.hardwareBufferSize = kHardwareBuffer;
  config.samplingInterval = static_cast<uint64_t>(interval_ns);
  config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST;
  check(cuptiPmSamplingSetConfig(&config), "setting the sampling interval");
  make_image();
  auto start = PARAMS(CUpti_PmSampling_Start_Params);
  start.pPmSamplingObject = sampling_;
  check(cuptiPmSamplingStart(&start), "starting to sample");
  started_ = true;
}

void PmSampling::loop() {
  try {
    while (!stopping_.load(std::memory_order_relaxed)) {
      std::this_thread::sleep_for(kDecodeEvery);
      decode();
    }
    decode();  // while sampling still runs: a ring that wrapped around cannot be decoded later
  } catch (const Refused& refused) {
    std::lock_guard lock(mutex_);
    trouble_ = refused.why;
  }
}

void PmSampling::decode() {
  auto data = PARAMS(CUpti_PmSampling_DecodeData_Params);
  data.pPmSamplingObject = sampling_;
  data.pCounterDataImage = image_.data();
  data.counterDataImageSize = image_.size();
  check(cuptiPmSamplingDecodeData(&data), "decoding samples");
  auto info = PARAMS(CUpti_PmSampling_GetCounterDataInfo_Params);
  info.pCounterDataImage = image_.data();
  info.counterDataImageSize = image_.size();
  check(cuptiPmSamplingGetCounterDataInfo(&info), "counting samples");
  for (size_t i = 0; i < info.numCompletedSamples; ++i) evaluate(i);
  empty_image();
}

// The first sample of a session has no valid start, and some samples come twice. Both are left out.
void PmSampling::evaluate(size_t index) {
  auto info = PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo_Params);
  info.pPmSamplingObject = sampling_;
  info.pCounterDataImage = image_.data();
  info.counterDataImageSize = image_.size();
  info.sampleIndex = index;
  check(cuptiPmSamplingCounterDataGetSampleInfo(&info), "reading a sample");
  const bool first = last_ == 0;
  if (info.startTimestamp <= last_ || info.endTimestamp <= info.startTimestamp) return;
  last_ = info.startTimestamp;
  if (first) return;
  Sample sample{info.startTimestamp, info.endTimestamp, {}};
  auto values = PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  values.pHostObject = host_;
  values.pCounterDataImage = image_.data();
  values.counterDataImageSize = image_.size();
  values.rangeIndex = index;
  values.ppMetricNames = names_.data();
  values.numMetrics = names_.size();
  values.pMetricValues = sample.values;
  check(cuptiProfilerHostEvaluateToGpuValues(&values), "reading a sample's values");
  std::lock_guard lock(mutex_);
  samples_.push_back(sample);
}

bool PmSampling::drain(TraceContext& context) {
  std::vector<Sample> samples;
  {
    std::lock_guard lock(mutex_);
    samples.swap(samples_);
  }
  for (const Sample& sample : samples) {
    if (context.gaps.uncaptured.at(context.from_gpu(sample.start) + context.origin)) continue;
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      context.batch.counter(kMetrics[i].track, "%", {context.from_gpu(sample.start), sample.values[i]}, kMetrics[i].kind);
    }
  }
  return !samples.empty();
}

std::string PmSampling::stop() {
  if (thread_.joinable()) {
    stopping_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  release();
  std::lock_guard lock(mutex_);
  return trouble_;
}

void PmSampling::release() {
  if (started_) {
    auto stop = PARAMS(CUpti_PmSampling_Stop_Params);
    stop.pPmSamplingObject = sampling_;
    cuptiPmSamplingStop(&stop);
  }
  if (sampling_) {
    auto disable = PARAMS(CUpti_PmSampling_Disable_Params);
    disable.pPmSamplingObject = sampling_;
    cuptiPmSamplingDisable(&disable);
  }
  if (host_) {
    auto deinit = PARAMS(CUpti_Profiler_Host_Deinitialize_Params);
    deinit.pHostObject = host_;
    cuptiProfilerHostDeinitialize(&deinit);
  }
  if (initialized_) {  // there is no reference count: a second call would crash
    auto deinit = PARAMS(CUpti_Profiler_DeInitialize_Params);
    cuptiProfilerDeInitialize(&deinit);
  }
  started_ = initialized_ = false;
  sampling_ = nullptr;
  host_ = nullptr;
}

}  // namespace

std::unique_ptr<HardwareCounters> make_hardware_counters() { return std::make_unique<PmSampling>(); }

}  // namespace ws::prof
