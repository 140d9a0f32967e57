// The sampler against a CUPTI that answers what the test says: what is asked for in which order, what becomes of the samples, and
// the sentence when something refuses.
#include "profiling/cupti/pc_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "profiling/cupti/late_calls.h"
#include "tests/support/made_cubin.h"

namespace ws::prof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Sample {
  const char* function;
  uint64_t offset;
  std::vector<std::pair<uint32_t, uint32_t>> counts;  // number of the counter, samples
};

struct FakeCupti {
  std::vector<std::string> calls;
  std::vector<std::string> counters{"smsp__pcsamp_warps_issue_stalled_long_scoreboard", "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
                                    "smsp__pcsamp_warps_issue_stalled_selected", "smsp__pcsamp_warps_issue_stalled_of_the_future"};
  std::vector<Sample> samples;
  size_t handed_out = 0, at_once = 2;
  uint64_t dropped = 0;
  uint32_t period = 0, by_calls = 0;
  size_t scratch = 0;
  CUptiResult enable = CUPTI_SUCCESS, start = CUPTI_SUCCESS, get = CUPTI_SUCCESS;
  void* rest = nullptr;
};
FakeCupti* g_fake = nullptr;

void fill(CUpti_PCSamplingData& data) {
  const size_t from = g_fake->handed_out, until = std::min(from + g_fake->at_once, g_fake->samples.size());
  for (size_t i = from; i < until; ++i) {
    CUpti_PCSamplingPCData& one = data.pPcData[i - from];
    one.cubinCrc = 77, one.pcOffset = g_fake->samples[i].offset, one.functionName = const_cast<char*>(g_fake->samples[i].function);
    one.stallReasonCount = g_fake->samples[i].counts.size();
    for (size_t s = 0; s < one.stallReasonCount; ++s) one.stallReason[s] = {g_fake->samples[i].counts[s].first, g_fake->samples[i].counts[s].second};
  }
  data.totalNumPcs = until - from, data.remainingNumPcs = g_fake->samples.size() - until, data.droppedSamples = g_fake->dropped;
  g_fake->handed_out = until;
}

void note_settings(const CUpti_PCSamplingConfigurationInfoParams& params) {
  for (size_t i = 0; i < params.numAttributes; ++i) {
    const CUpti_PCSamplingConfigurationInfo& one = params.pPCSamplingConfigurationInfo[i];
    if (one.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD) g_fake->period = one.attributeData.samplingPeriodData.samplingPeriod;
    if (one.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL) g_fake->by_calls = one.attributeData.enableStartStopControlData.enableStartStopControl;
    if (one.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE) g_fake->scratch = one.attributeData.scratchBufferSizeData.scratchBufferSize;
    if (one.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER) g_fake->rest = one.attributeData.samplingDataBufferData.samplingDataBuffer;
  }
}

void stand_in() {
  cuptiPCSamplingEnable.stand_in([](CUpti_PCSamplingEnableParams*) { g_fake->calls.push_back("enable"); return g_fake->enable; });
  cuptiPCSamplingDisable.stand_in([](CUpti_PCSamplingDisableParams*) { g_fake->calls.push_back("disable"); return CUPTI_SUCCESS; });
  cuptiPCSamplingStart.stand_in([](CUpti_PCSamplingStartParams*) { g_fake->calls.push_back("start"); return g_fake->start; });
  cuptiPCSamplingStop.stand_in([](CUpti_PCSamplingStopParams*) { g_fake->calls.push_back("stop"); return CUPTI_SUCCESS; });
  cuptiPCSamplingGetNumStallReasons.stand_in([](CUpti_PCSamplingGetNumStallReasonsParams* params) { *params->numStallReasons = g_fake->counters.size(); return CUPTI_SUCCESS; });
  cuptiPCSamplingGetStallReasons.stand_in([](CUpti_PCSamplingGetStallReasonsParams* params) {
    for (size_t i = 0; i < params->numStallReasons; ++i) params->stallReasonIndex[i] = static_cast<uint32_t>(i), std::strcpy(params->stallReasons[i], g_fake->counters[i].c_str());
    return CUPTI_SUCCESS;
  });
  cuptiPCSamplingSetConfigurationAttribute.stand_in([](CUpti_PCSamplingConfigurationInfoParams* params) { note_settings(*params); return CUPTI_SUCCESS; });
  cuptiPCSamplingGetData.stand_in([](CUpti_PCSamplingGetDataParams* params) {
    g_fake->calls.push_back("get");
    if (g_fake->get == CUPTI_SUCCESS) fill(*static_cast<CUpti_PCSamplingData*>(params->pcSamplingData));
    return g_fake->get;
  });
  cuptiGetCubinCrc.stand_in([](CUpti_GetCubinCrcParams* params) { params->cubinCrc = params->cubinSize == 5 ? 77 : 1; return CUPTI_SUCCESS; });
  cuptiGetSassToSourceCorrelation.stand_in([](CUpti_GetSassToSourceCorrelationParams* params) {
    if (params->pcOffset == 48) return CUPTI_ERROR_UNKNOWN;  // code without line info
    params->lineNumber = static_cast<uint32_t>(params->pcOffset / 16 + 10);
    params->fileName = strdup("my.cu"), params->dirName = strdup("/home");
    return CUPTI_SUCCESS;
  });
}

struct Sampler : ::testing::Test {
  void SetUp() override {
    g_fake = &cupti;
    stand_in();
  }
  void TearDown() override { g_fake = nullptr; }
  Trace window() {
    sampler.start(context, 12, 21, 1000);
    sampler.stop(41, 5000);
    return passed();
  }
  Trace passed() {
    Trace trace;
    sampler.put(to, true);
    append(trace, to.batch.finish());
    return trace;
  }
  FakeCupti cupti;
  CUcontext context = reinterpret_cast<CUcontext>(0x10);
  PcSampler sampler;
  TraceContext to;
};

TEST_F(Sampler, AWindowIsSampledAndRead) {
  cupti.samples = {{"_Z4copyPf", 0, {{0, 30}, {1, 25}, {2, 2}}}, {"_Z4copyPf", 16, {{0, 5}}}, {"_Z4copyPf", 48, {{3, 4}}}, {"fused", 16, {{2, 9}}}, {"_Z4copyPf", 16, {{0, 1}}}};
  sampler.modules().begin();
  sampler.modules().loaded("other module");
  sampler.modules().loaded("cubin");
  const Trace trace = window();
  EXPECT_THAT(cupti.calls, ElementsAre("enable", "start", "stop", "get", "get", "get", "disable"));
  EXPECT_EQ(cupti.period, 12u);
  EXPECT_EQ(cupti.by_calls, 1u);
  EXPECT_EQ(cupti.scratch, PcSampler::kScratchBytes);
  EXPECT_FALSE(sampler.running());
  ASSERT_EQ(trace.stalls.windows().size(), 1u);
  const SampledWindow& seen = trace.stalls.windows()[0];
  EXPECT_EQ(seen.first_step, 21u);
  EXPECT_EQ(seen.end_step, 41u);
  EXPECT_EQ(seen.period, 12u);
  EXPECT_EQ(seen.samples, 51u) << "a counter of cycles without issue repeats samples";
  std::vector<std::string> rows;
  for (const SampledInstruction& one : trace.stalls.instructions())
    rows.push_back(trace.name(one.function) + " " + std::to_string(one.offset) + " " + trace.name(one.file) + ":" + std::to_string(one.line) + " " + std::to_string(sum_of(one.samples)));
  EXPECT_THAT(rows, ::testing::UnorderedElementsAre("copy(float*) 0 /home/my.cu:10 32", "copy(float*) 16 /home/my.cu:11 6", "copy(float*) 48 :0 4", "fused 16 /home/my.cu:11 9"));
  const auto newer = std::ranges::find(trace.stalls.instructions(), 48u, &SampledInstruction::offset);
  ASSERT_NE(newer, trace.stalls.instructions().end());
  EXPECT_EQ(newer->samples[static_cast<size_t>(Stall::Other)], 4u) << "a reason of a newer GPU";
}

// The function's code is passed on once a window.
TEST_F(Sampler, TheCodeOfASampledFunctionIsKept) {
  const std::string cubin = test::made_cubin();
  cuptiGetCubinCrc.stand_in([](CUpti_GetCubinCrcParams* params) { params->cubinCrc = 77; return CUPTI_SUCCESS; });
  cupti.samples = {{"first", 0, {{0, 3}}}, {"missing", 16, {{0, 1}}}};
  sampler.modules().begin();
  sampler.modules().loaded(cubin);
  const Trace trace = window();
  ASSERT_EQ(trace.stalls.code().size(), 1u);
  EXPECT_EQ(trace.name(trace.stalls.code()[0].function), "first");
  EXPECT_EQ(trace.stalls.code()[0].bytes, std::string(32, '\1'));
  EXPECT_EQ(trace.stalls.code()[0].compute, 90);
  std::vector<std::string> rows;
  for (const SampledInstruction& one : trace.stalls.instructions())
    rows.push_back(trace.name(one.function) + " " + std::to_string(one.offset) + " :" + std::to_string(one.line) + " " + std::to_string(sum_of(one.samples)));
  EXPECT_THAT(rows, ::testing::UnorderedElementsAre("first 0 :10 3", "missing 16 :11 1"));
  cupti.handed_out = 0;
  EXPECT_EQ(window().stalls.code().size(), 1u) << "the next recording has it too";
}

TEST_F(Sampler, SamplesOfTwoWindowsAddUp) {
  cupti.samples = {{"k", 0, {{0, 3}}}};
  Trace trace;
  for (int i = 0; i < 2; ++i) {
    cupti.handed_out = 0;
    sampler.start(context, 10, 0, 0), sampler.stop(0, 10);
    sampler.put(to, false);
    append(trace, to.batch.finish());
  }
  ASSERT_EQ(trace.stalls.instructions().size(), 1u);
  EXPECT_EQ(sum_of(trace.stalls.instructions()[0].samples), 6u);
  EXPECT_EQ(trace.stalls.windows().size(), 2u);
}

TEST_F(Sampler, ARefusalIsASentenceAndLeavesNothingOn) {
  for (const auto& [result, words] : {std::pair{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "NVreg_RestrictProfilingToAdminUsers"}, {CUPTI_ERROR_HARDWARE_BUSY, "another profiler"},
                                      {CUPTI_ERROR_NOT_SUPPORTED, "does not offer"}, {CUPTI_ERROR_NOT_COMPATIBLE, "do not go together"}}) {
    cupti.enable = result, cupti.calls.clear();
    EXPECT_TRUE(window().stalls.empty());
    EXPECT_THAT(sampler.refused(), HasSubstr(words));
    EXPECT_EQ(cupti.calls.back(), "disable");
    EXPECT_FALSE(sampler.running());
  }
  cupti.enable = CUPTI_SUCCESS, cupti.start = CUPTI_ERROR_HARDWARE_BUSY;
  EXPECT_TRUE(window().stalls.empty());
  cupti.start = CUPTI_SUCCESS;
  EXPECT_FALSE(window().stalls.windows().empty()) << "the next window is tried again";
  EXPECT_EQ(sampler.refused(), "");
  sampler.start(nullptr, 10, 0, 0);
  EXPECT_THAT(sampler.refused(), HasSubstr("has not used the GPU"));
}

TEST_F(Sampler, DroppedSamplesAreCountedAndAFullBufferIsSaid) {
  cupti.samples = {{"k", 0, {{0, 3}}}}, cupti.dropped = 12;
  EXPECT_EQ(window().stalls.windows().at(0).dropped, 12u);
  cupti.get = CUPTI_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(window().stalls.windows().size(), 1u);
  EXPECT_THAT(sampler.refused(), HasSubstr("full"));
}

TEST_F(Sampler, ModulesThatWereNotKeptHaveNoLines) {
  cupti.samples = {{"k", 0, {{0, 3}}}};
  sampler.modules().loaded("cubin");  // before begin()
  const Trace trace = window();
  EXPECT_EQ(trace.stalls.instructions().at(0).line, 0);
}

TEST(StallReasons, EachCounterHasItsReason) {
  EXPECT_EQ(stall_of_counter("smsp__pcsamp_warps_issue_stalled_barrier"), Stall::Barrier);
  EXPECT_EQ(stall_of_counter("smsp__pcsamp_warps_issue_stalled_barrier_not_issued"), Stall::Barrier);
  EXPECT_EQ(stall_of_counter("smsp__pcsamp_warps_issue_stalled_no_instructions"), Stall::Fetch);
  EXPECT_EQ(stall_of_counter("smsp__pcsamp_warps_issue_stalled_wait"), Stall::FixedLatency);
  EXPECT_EQ(stall_of_counter("something new"), Stall::Other);
  EXPECT_TRUE(repeats_samples("smsp__pcsamp_warps_issue_stalled_barrier_not_issued"));
  EXPECT_FALSE(repeats_samples("smsp__pcsamp_warps_issue_stalled_barrier"));
  StallCounts counts{};
  counts.fill(1);
  uint64_t all = 0;
  for (const uint64_t sum : by_group(counts)) all += sum;
  EXPECT_EQ(all, kStalls) << "each reason has one group";
}

}  // namespace
}  // namespace ws::prof
