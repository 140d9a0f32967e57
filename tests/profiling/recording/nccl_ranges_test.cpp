// NCCL's ranges as NCCL marks them, received through NVTX in this process, with records of kernels made up. No GPU.
#include <gtest/gtest.h>

#include <cstdlib>

#include "profiling/analysis/collectives.h"
#include "profiling/collectors/nccl_calls.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/cupti/cupti_parse.h"
#include "profiling/recording/injected.h"
#include "tests/profiling/cupti/fake_records.h"
#include "tests/profiling/recording/nccl_marks.h"

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t);
extern "C" int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t*);

namespace ws::prof {

bool in_forked_child() { return false; }
void nccl_range_begins(std::string_view, bool) {}

namespace {

using namespace testing;

constexpr const char* kAllReduce = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";

constexpr uint64_t kShort = kNcclMessage + 2;

class NcclRanges : public ::testing::Test {
 protected:
  NcclRanges() {
    InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;  // NVTX looks here at its first call
    InitializeInjectionNvtxExtension_fnptr = InitializeInjectionNvtxExtension;
    context_.program_ranges = true;
    add_schema(nccl_domain(), kShort, 0, {payload_entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE)});  // of an older NCCL
  }

  static void call(const char* function, uint64_t bytes, uint64_t communicator, const std::function<void()>& inside = [] {}) {
    nccl_call(function, bytes, communicator, inside);
  }
  static void message(const char* function, uint64_t communicator, int peer, const std::function<void()>& inside = [] {}) {
    nccl_call(function, 64, communicator, inside, peer);
  }
  void group(const std::function<void()>& calls, const std::function<void()>& inside_of_end) {
    nccl_push("ncclGroupStart"), nccl_pop();
    calls();
    nccl_push("ncclGroupEnd");
    inside_of_end();
    nccl_pop();
  }

  // What the driver's callbacks do.
  void launch(uint32_t correlation, const char* symbol = kAllReduce) {
    const NcclWork work = NcclCalls::instance().launch_begins(symbol);
    context_.join.launched(correlation, Marks::thread().at());
    if (work.any()) context_.join.communicates(correlation, work);
    if (NcclCalls::current().any()) context_.join.node_communicates(1000 + correlation, NcclCalls::current());
    NcclCalls::launch_ends();
    records_.kernel(symbol, 100 * correlation, 100 * correlation + 50, correlation);
  }
  Trace finish() {
    RecordParser parser(context_);
    parser.parse(records_.data(), records_.size(), testing::FakeRecords::next);
    Trace trace;
    append(trace, context_.batch.finish());
    for (const Track& track : trace.tracks())
      for (const SpanBlock& block : track.blocks) spans_.insert(spans_.end(), block.spans.begin(), block.spans.end());
    return trace;
  }

  TraceContext context_;
  testing::FakeRecords records_;
  std::vector<Span> spans_;
};

TEST_F(NcclRanges, AKernelHasTheBytesOfItsCall) {
  nccl_initialize("ncclCommInitRankConfig", 0x9f1c, 0, 2);
  call("ncclAllReduce", 4096, 0x9f1c, [&] { launch(1); });
  call("ncclAllGather", 4096, 0x9f1c, [&] { launch(2); });  // says the part of one rank
  const Trace trace = finish();
  ASSERT_EQ(spans_.size(), 2u);
  EXPECT_EQ(trace.detail(spans_[0].detail).bytes, 4096u);
  EXPECT_EQ(trace.detail(spans_[0].detail).copy_kind, "AllReduce · 2 ranks · communicator 9f1c");
  EXPECT_EQ(trace.detail(spans_[0].detail).block[0], 128);
  EXPECT_EQ(trace.detail(spans_[1].detail).bytes, 8192u);
}

TEST_F(NcclRanges, TheKernelOfAGroupHasTheSumOfItsCallsAndCommunicatorsStayApart) {
  ProgramRanges::instance().push("backward");
  const int depth = Marks::thread().op_depth;
  group([] { call("ncclAllReduce", 100, 0xa); call("ncclAllReduce", 50, 0xb); call("ncclAllReduce", 20, 0xa); },
        [&] { launch(1, "vectorized_elementwise_kernel"); launch(2); launch(3); launch(4); });
  EXPECT_EQ(Marks::thread().op_depth, depth) << "no range of NCCL is an op";
  ProgramRanges::instance().pop();
  const Trace trace = finish();
  ASSERT_EQ(spans_.size(), 4u);
  const auto detail = [&](size_t i) { return trace.detail(spans_[i].detail); };
  EXPECT_EQ(detail(0).bytes, 0u) << "not a kernel of NCCL";
  EXPECT_EQ(detail(1).bytes, 120u);
  EXPECT_EQ(detail(1).copy_kind, "AllReduce · communicator a");
  EXPECT_EQ(detail(2).bytes, 50u);
  EXPECT_EQ(detail(2).copy_kind, "AllReduce · communicator b");
  EXPECT_EQ(detail(3).bytes, 0u);
  for (const Span& span : spans_) EXPECT_EQ(op_info(span.op).name, "backward");
}

TEST_F(NcclRanges, OfAnExchangeTheLargerSideCounts) {
  group([] { call("ncclSend", 30, 0xc); call("ncclRecv", 40, 0xc); call("ncclSend", 30, 0xc); }, [&] { launch(1); });
  const Trace trace = finish();
  EXPECT_EQ(trace.detail(spans_.at(0).detail).bytes, 60u);
  EXPECT_EQ(trace.detail(spans_.at(0).detail).copy_kind, "Send + Recv · communicator c");
}

TEST_F(NcclRanges, AMessageReportsWhoSendsAndWhoReceives) {
  nccl_initialize("ncclCommSplit", 0xf0, 2, 4);
  message("ncclSend", 0xf0, 3, [&] { launch(1); });
  message("ncclRecv", 0xf0, 0, [&] { launch(2); });
  group([] { message("ncclSend", 0xf0, 3); message("ncclSend", 0xf0, 3); }, [&] { launch(3); });
  group([] { message("ncclSend", 0xf0, 3); message("ncclSend", 0xf0, 1); }, [&] { launch(4); });
  message("ncclSend", 0xf1, 1, [&] { launch(5); });  // who is not in a communicator that is known
  const Trace trace = finish();
  std::vector<std::string> said;
  for (const Span& span : spans_) said.push_back(trace.detail(span.detail).copy_kind);
  EXPECT_EQ(said, (std::vector<std::string>{"Send · 4 ranks · communicator f0 · 2 → 3", "Recv · 4 ranks · communicator f0 · 0 → 2",
                                            "Send · 4 ranks · communicator f0 · 2 → 3", "Send · 4 ranks · communicator f0",
                                            "Send · communicator f1"}));
}

TEST_F(NcclRanges, AnExchangeBetweenManyRanksIsCountedWhole) {
  group(
      [] {
        for (int rank = 0; rank < 32; ++rank) call("ncclSend", 100, 0xc), call("ncclRecv", 70, 0xc);
      },
      [&] { launch(1); });
  EXPECT_EQ(finish().detail(spans_.at(0).detail).bytes, 3200u);
}

TEST_F(NcclRanges, ACallWithoutAKernelLeavesNothingForTheNextOne) {
  call("ncclAllReduce", 4096, 0xd);
  group([] { call("ncclAllReduce", 4096, 0xd); }, [] {});
  call("ncclAllReduce", 8, 0xd, [&] { launch(1); });
  EXPECT_EQ(finish().detail(spans_.at(0).detail).bytes, 8u);
}

TEST_F(NcclRanges, ACapturedKernelKeepsItInItsGraph) {
  call("ncclAllReduce", 512, 0xe, [&] { launch(1); });
  context_.join.node_cloned(1001, 71);
  records_.kernel(kAllReduce, 900, 950, 40, 71);
  records_.kernel(kAllReduce, 960, 990, 40, 72);
  const Trace trace = finish();
  ASSERT_EQ(spans_.size(), 3u);
  EXPECT_EQ(trace.detail(spans_[1].detail).bytes, 512u);
  EXPECT_EQ(trace.detail(spans_[2].detail).bytes, 0u) << "another node";
}

TEST_F(NcclRanges, AnOlderNcclReportsBytesOnly) {
  const size_t bytes = 77;
  const nvtxPayloadData_t data{kShort, sizeof bytes, &bytes};
  nccl_push("ncclAllReduce", &data, 1), launch(1), nccl_pop();
  nccl_push("ncclAllGather", &data, 1), launch(2), nccl_pop();  // of how many ranks, nobody said
  const Trace trace = finish();
  EXPECT_EQ(trace.detail(spans_.at(0).detail).bytes, 77u);
  EXPECT_EQ(trace.detail(spans_[0].detail).copy_kind, "") << "the stream separates communicators";
  EXPECT_EQ(trace.detail(spans_.at(1).detail).bytes, 0u);
}

TEST_F(NcclRanges, PayloadsThatMakeNoSenseSayNothing) {
  const NcclMessage message{.bytes = 5, .communicator = 6};
  const uint64_t far = add_schema(nccl_domain(), kNcclMessage + 9, SIZE_MAX, {payload_entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE, SIZE_MAX - 3)});
  const uint64_t nameless = add_schema(nccl_domain(), kNcclMessage + 10, 8, {payload_entry(nullptr, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, 0)});
  nvtxPayloadSchemaAttr_t empty{};
  empty.fieldMask = ~uint64_t{0}, empty.numEntries = 1000, empty.schemaId = kNcclMessage + 11;
  nvtxPayloadSchemaRegister(nccl_domain(), &empty), nvtxPayloadSchemaRegister(nccl_domain(), nullptr);
  nvtxPayloadSchemaRegister(nullptr, &empty);
  const nvtxPayloadData_t bad[] = {{kNcclMessage, 4, &message},          {kNcclMessage, 0, &message}, {kNcclMessage, sizeof message, nullptr},
                                   {12345, sizeof message, &message}, {far, SIZE_MAX, &message},  {nameless, 8, &message},
                                   {kNcclMessage + 11, SIZE_MAX, &message}, {kShort, SIZE_MAX, &message}};
  for (const nvtxPayloadData_t& data : bad) {
    nccl_push("ncclAllReduce", &data, 1);
    launch(static_cast<uint32_t>(records_.size() + 1));
    nvtxRangePopPayload(nccl_domain(), &data, 1);
  }
  nccl_push("ncclAllReduce", bad, -1), nccl_push("ncclAllReduce", nullptr, 3);
  nvtxRangePopPayload(nccl_domain(), nullptr, 1), nvtxRangePopPayload(nccl_domain(), bad, 0);
  for (int i = 0; i < 100; ++i) nccl_push("ncclAllReduce");
  for (int i = 0; i < 120; ++i) nccl_pop();
  for (int i = 0; i < 100; ++i) call("ncclAllReduce", 1, 0xf);
  const Trace trace = finish();
  EXPECT_EQ(spans_.size(), std::size(bad));
  for (const Span& span : spans_) EXPECT_EQ(trace.detail(span.detail).bytes, 0u);
}

// Ranges of other domains that end with a payload end too.
TEST_F(NcclRanges, OtherProgramsMayEndTheirRangesWithPayloads) {
  const nvtxDomainHandle_t theirs = nvtxDomainCreateA("theirs");
  const int depth = Marks::thread().op_depth;
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII, event.message.ascii = "theirs";
  nvtxDomainRangePushEx(theirs, &event);
  EXPECT_EQ(Marks::thread().op_depth, depth + 1);
  nvtxRangePopPayload(theirs, nullptr, 0);
  EXPECT_EQ(Marks::thread().op_depth, depth);
}

}  // namespace
}  // namespace ws::prof
