#include "profiling/cupti/pc_sampler.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/base/elf.h"
#include "profiling/cupti/late_calls.h"
#include "profiling/cupti/refusal.h"
#include "profiling/trace/kernel_names.h"

namespace ws::prof {

namespace {

template <class Params>
Params params_for(CUcontext context, size_t size) {
  Params params{};
  params.size = size;
  params.ctx = context;
  return params;
}
#define SAMPLING_PARAMS(T) params_for<T>(context_, T##Size)

CUpti_PCSamplingConfigurationInfo setting(CUpti_PCSamplingConfigurationAttributeType type) {
  CUpti_PCSamplingConfigurationInfo info{};
  info.attributeType = type;
  return info;
}

}  // namespace

// Memory that CUPTI fills: instructions, and for each of them a count by counter.
struct PcSampler::Buffer {
  explicit Buffer(size_t counters) : stalls(kInstructions * counters), instructions(kInstructions) {
    for (size_t i = 0; i < kInstructions; ++i) {
      instructions[i].size = sizeof instructions[i];
      instructions[i].stallReason = &stalls[i * counters];
    }
    data.size = sizeof data;
    data.collectNumPcs = kInstructions;
    data.pPcData = instructions.data();
  }
  std::vector<CUpti_PCSamplingStallReason> stalls;
  std::vector<CUpti_PCSamplingPCData> instructions;
  CUpti_PCSamplingData data{};
};

PcSampler::PcSampler() = default;
PcSampler::~PcSampler() = default;

bool PcSampler::running() const {
  const std::lock_guard lock(mutex_);
  return context_ != nullptr;
}

std::string PcSampler::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void PcSampler::start(CUcontext context, uint32_t period, uint32_t step, int64_t now) {
  const std::lock_guard lock(mutex_);
  if (context_) return;
  refused_ = context ? "" : "the program has not used the GPU yet";
  if (!context) return;
  context_ = context;
  window_ = {.begin = now, .first_step = step, .period = period};
  try {
    begin(period);
    window_.begin = std::max(now, steady_ns());
  } catch (const Refused& refused) {
    disable();
    refused_ = refused.why;
  }
}

void PcSampler::begin(uint32_t period) {
  auto enable = SAMPLING_PARAMS(CUpti_PCSamplingEnableParams);
  check(cuptiPCSamplingEnable(&enable), "taking the sampling hardware");
  read_reasons();
  configure(period);
  auto start = SAMPLING_PARAMS(CUpti_PCSamplingStartParams);
  check(cuptiPCSamplingStart(&start), "starting to sample");
}

void PcSampler::read_reasons() {
  size_t count = 0;
  auto number = SAMPLING_PARAMS(CUpti_PCSamplingGetNumStallReasonsParams);
  number.numStallReasons = &count;
  check(cuptiPCSamplingGetNumStallReasons(&number), "counting the reasons to wait");
  std::vector<std::array<char, CUPTI_STALL_REASON_STRING_SIZE>> texts(count);
  std::vector<char*> names;
  for (auto& text : texts) names.push_back(text.data());
  std::vector<uint32_t> indices(count);
  auto reasons = SAMPLING_PARAMS(CUpti_PCSamplingGetStallReasonsParams);
  reasons.numStallReasons = count, reasons.stallReasonIndex = indices.data(), reasons.stallReasons = names.data();
  check(cuptiPCSamplingGetStallReasons(&reasons), "reading the reasons to wait");
  reasons_.assign(count > 0 ? *std::ranges::max_element(indices) + 1 : 0, -1);
  for (size_t i = 0; i < count; ++i)
    if (!repeats_samples(names[i])) reasons_[indices[i]] = static_cast<int>(stall_of_counter(names[i]));
  if (std::exchange(counters_, count) == count && buffer_) return;
  buffer_ = std::make_unique<Buffer>(count), rest_ = std::make_unique<Buffer>(count);
}

void PcSampler::configure(uint32_t period) {
  std::vector<CUpti_PCSamplingConfigurationInfo> all{setting(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE),
                                                     setting(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD),
                                                     setting(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL),
                                                     setting(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE),
                                                     setting(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE),
                                                     setting(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)};
  all[0].attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  all[1].attributeData.samplingPeriodData.samplingPeriod = period;
  all[2].attributeData.enableStartStopControlData.enableStartStopControl = 1;
  all[3].attributeData.scratchBufferSizeData.scratchBufferSize = kScratchBytes;
  all[4].attributeData.hardwareBufferSizeData.hardwareBufferSize = kHardwareBytes;
  all[5].attributeData.samplingDataBufferData.samplingDataBuffer = &rest_->data;
  auto config = SAMPLING_PARAMS(CUpti_PCSamplingConfigurationInfoParams);
  config.numAttributes = all.size(), config.pPCSamplingConfigurationInfo = all.data();
  check(cuptiPCSamplingSetConfigurationAttribute(&config), "setting the sampling period");
}

void PcSampler::stop(uint32_t step, int64_t now) {
  const std::lock_guard lock(mutex_);
  if (!context_) return;
  window_.end = now, window_.end_step = step;
  auto stop = SAMPLING_PARAMS(CUpti_PCSamplingStopParams);
  cuptiPCSamplingStop(&stop);
  read_all();
  disable();
  take(*rest_);
  for (auto& [key, counts] : read_) {
    Sampled one{std::get<1>(key), {.module = std::get<0>(key), .offset = static_cast<uint32_t>(std::get<2>(key)), .samples = counts}};
    window_.samples += sum_of(counts);
    ready_.push_back(std::move(one));
  }
  read_.clear();
  windows_.push_back(window_);
}

void PcSampler::read_all() {
  constexpr int kMostReads = 256;  // a million instructions
  auto get = SAMPLING_PARAMS(CUpti_PCSamplingGetDataParams);
  get.pcSamplingData = &buffer_->data;
  for (int i = 0; i < kMostReads; ++i) {
    buffer_->data.totalNumPcs = buffer_->data.remainingNumPcs = 0;
    const CUptiResult result = cuptiPCSamplingGetData(&get);
    if (result == CUPTI_ERROR_OUT_OF_MEMORY) refused_ = "the GPU's buffer for samples was full: sample fewer steps";
    if (result != CUPTI_SUCCESS) return;
    take(*buffer_);
    if (buffer_->data.remainingNumPcs == 0) return;
  }
}

// The function's name is CUPTI's own: kernel records may share it, so it is not freed.
void PcSampler::take(const Buffer& buffer) {
  window_.dropped = std::max(window_.dropped, buffer.data.droppedSamples);
  window_.hidden = std::max(window_.hidden, buffer.data.nonUsrKernelsTotalSamples);
  for (size_t i = 0; i < std::min(buffer.data.totalNumPcs, kInstructions); ++i) {
    const CUpti_PCSamplingPCData& one = buffer.instructions[i];
    if (one.pcOffset > std::numeric_limits<uint32_t>::max()) continue;
    StallCounts& counts = read_[{one.cubinCrc, one.functionName ? one.functionName : "", one.pcOffset}];
    for (size_t s = 0; s < std::min(one.stallReasonCount, counters_); ++s) {
      const uint32_t counter = one.stallReason[s].pcSamplingStallReasonIndex;
      if (counter < reasons_.size() && reasons_[counter] >= 0) counts[static_cast<size_t>(reasons_[counter])] += one.stallReason[s].samples;
    }
  }
}

void PcSampler::disable() {
  if (rest_) rest_->data.totalNumPcs = 0;
  auto disable = SAMPLING_PARAMS(CUpti_PCSamplingDisableParams);
  cuptiPCSamplingDisable(&disable);
  context_ = nullptr;
}

void PcSampler::put(TraceContext& context, Sampled&& sampled) {
  SampledInstruction& one = sampled.counts;
  if (passed_.emplace(one.module, sampled.function).second) put_code(context, one.module, sampled.function);
  const ModuleLines::Place place = modules_.line_of(one.module, sampled.function, one.offset);
  one.function = context.batch.id(context.batch.name(readable_kernel_name(sampled.function.c_str())));
  one.file = context.batch.id(context.batch.name(place.file));
  one.line = place.line;
  context.batch.sampled(one);
}

// The code of the function, and the lines of its instructions, also of those without samples.
void PcSampler::put_code(TraceContext& context, uint64_t module, const std::string& function) {
  constexpr size_t kMostBytes = size_t{1} << 20, kMostText = size_t{4} << 20;
  const auto code = modules_.code_of(module, function);
  if (!code || code->bytes.size() > kMostBytes) return;
  SampledCode kept{module, context.batch.id(context.batch.name(readable_kernel_name(function.c_str()))), code->compute, std::string(code->bytes), {}};
  for (size_t i = 0; i < code->lines.size(); ++i) {
    const std::vector<CodePlace>& places = code->lines[i].places;
    std::string calls = std::to_string(code->lines[i].offset);
    for (const CodePlace& place : places)
      calls += '\t' + place.file + ':' + std::to_string(place.line) + '\t' + (place.function.empty() ? "" : readable_kernel_name(place.function.c_str()));
    if (kept.calls.size() + calls.size() < kMostText) kept.calls += calls + '\n';
    const uint64_t end = i + 1 < code->lines.size() ? code->lines[i + 1].offset : code->bytes.size();
    if (places.empty() || places[0].line == 0) continue;
    const NameId file = context.batch.id(context.batch.name(places[0].file));
    for (uint32_t offset = code->lines[i].offset; offset < std::min<uint64_t>(end, code->bytes.size()); offset += kInstructionBytes)
      context.batch.sampled(SampledInstruction{.module = module, .offset = offset, .line = places[0].line, .function = kept.function, .file = file});
  }
  context.batch.sampled(std::move(kept));
}

void PcSampler::put(TraceContext& context, bool last) {
  constexpr auto kShare = std::chrono::milliseconds(20);  // records wait meanwhile
  const auto begin = std::chrono::steady_clock::now();
  while (last || std::chrono::steady_clock::now() - begin < kShare) {
    Sampled next;
    {
      const std::lock_guard lock(mutex_);
      if (ready_.empty()) break;
      next = std::move(ready_.front());
      ready_.pop_front();
    }
    put(context, std::move(next));
  }
  const std::lock_guard lock(mutex_);
  if (!windows_.empty()) passed_.clear();  // the next window may be of another recording
  for (SampledWindow window : std::exchange(windows_, {})) {
    window.begin = context.from_steady(window.begin), window.end = context.from_steady(window.end);
    context.batch.sampled(window);
  }
}

}  // namespace ws::prof
