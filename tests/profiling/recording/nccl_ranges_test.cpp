// NCCL's ranges as NCCL marks them, heard through NVTX in this process, with records of kernels made up. No GPU.
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <chrono>
#include <cstdlib>

#include "profiling/analysis/collectives.h"
#include "profiling/collectors/nccl_calls.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/cupti/cupti_parse.h"
#include "profiling/recording/injected.h"
#include "tests/profiling/cupti/fake_records.h"

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t);
extern "C" int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t*);

namespace ws::prof {

bool in_forked_child() { return false; }
void nccl_range_begins(std::string_view, bool) {}

namespace {

constexpr const char* kAllReduce = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";

// The numbers and layouts of this test, in its own order: nothing but the names is NCCL's.
struct Message {
  int unused = 0;
  uint64_t bytes = 0, communicator = 0;
};
struct Init {
  uint64_t communicator;
  int rank, ranks;
};
constexpr uint64_t kMessage = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, kInit = kMessage + 1, kShort = kMessage + 2;

class NcclRanges : public ::testing::Test {
 protected:
  NcclRanges() {
    InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;  // NVTX looks here at its first call
    InitializeInjectionNvtxExtension_fnptr = InitializeInjectionNvtxExtension;
    context_.program_ranges = true;
    add_schema(kMessage, sizeof(Message),
               {entry("Root", NVTX_PAYLOAD_ENTRY_TYPE_INT, 0),
                entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE, offsetof(Message, bytes)),
                entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64, offsetof(Message, communicator))});
    add_schema(kInit, sizeof(Init), {entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64, 0),
                                     entry("Rank", NVTX_PAYLOAD_ENTRY_TYPE_INT, 0),  // after the one before
                                     entry("No. of ranks", NVTX_PAYLOAD_ENTRY_TYPE_INT, 0)});
    add_schema(kShort, 0, {entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE, 0)});  // of an older NCCL
  }

  static nvtxPayloadSchemaEntry_t entry(const char* name, uint64_t type, uint64_t offset) {
    return {0, type, name, nullptr, 0, offset, nullptr, nullptr};
  }
  static uint64_t add_schema(uint64_t id, size_t size, const std::vector<nvtxPayloadSchemaEntry_t>& entries) {
    nvtxPayloadSchemaAttr_t schema{};
    schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = entries.data(), schema.numEntries = entries.size(), schema.payloadStaticSize = size;
    schema.schemaId = id;
    return nvtxPayloadSchemaRegister(domain(), &schema);
  }
  static nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t created = nvtxDomainCreateA("NCCL");
    return created;
  }

  static void push(const char* function, const nvtxPayloadData_t* data = nullptr, int count = 0) {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain(), function);
    event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(data);
    event.reserved0 = count;
    nvtxDomainRangePushEx(domain(), &event);
  }
  static void pop() { nvtxDomainRangePop(domain()); }
  static void initialize(uint64_t communicator, int ranks) {
    const Init init{communicator, 0, ranks};
    const nvtxPayloadData_t data{kInit, sizeof init, &init};
    push("ncclCommInitRankConfig");
    nvtxRangePopPayload(domain(), &data, 1);
  }
  // `inside` runs while the range is open.
  static void call(const char* function, uint64_t bytes, uint64_t communicator, const std::function<void()>& inside = [] {}) {
    const Message message{.bytes = bytes, .communicator = communicator};
    const nvtxPayloadData_t data{kMessage, sizeof message, &message};
    push(function, &data, 1);
    inside();
    pop();
  }
  void group(const std::function<void()>& calls, const std::function<void()>& inside_of_end) {
    push("ncclGroupStart"), pop();
    calls();
    push("ncclGroupEnd");
    inside_of_end();
    pop();
  }

  // As the driver's callbacks do.
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
  initialize(0x9f1c, 2);
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
  group([] { call("ncclAllReduce", 100, 0xa), call("ncclAllReduce", 50, 0xb), call("ncclAllReduce", 20, 0xa); },
        [&] { launch(1, "vectorized_elementwise_kernel"), launch(2), launch(3), launch(4); });
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
  group([] { call("ncclSend", 30, 0xc), call("ncclRecv", 40, 0xc), call("ncclSend", 30, 0xc); }, [&] { launch(1); });
  const Trace trace = finish();
  EXPECT_EQ(trace.detail(spans_.at(0).detail).bytes, 60u);
  EXPECT_EQ(trace.detail(spans_.at(0).detail).copy_kind, "Send + Recv · communicator c");
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

TEST_F(NcclRanges, AnOlderNcclTellsBytesOnly) {
  const size_t bytes = 77;
  const nvtxPayloadData_t data{kShort, sizeof bytes, &bytes};
  push("ncclAllReduce", &data, 1), launch(1), pop();
  push("ncclAllGather", &data, 1), launch(2), pop();  // of how many ranks, nobody said
  const Trace trace = finish();
  EXPECT_EQ(trace.detail(spans_.at(0).detail).bytes, 77u);
  EXPECT_EQ(trace.detail(spans_[0].detail).copy_kind, "") << "the stream tells communicators apart";
  EXPECT_EQ(trace.detail(spans_.at(1).detail).bytes, 0u);
}

TEST_F(NcclRanges, PayloadsThatMakeNoSenseSayNothing) {
  const Message message{.bytes = 5, .communicator = 6};
  const uint64_t far = add_schema(kMessage + 9, SIZE_MAX, {entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE, SIZE_MAX - 3)});
  const uint64_t nameless = add_schema(kMessage + 10, 8, {entry(nullptr, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, 0)});
  nvtxPayloadSchemaAttr_t empty{};
  empty.fieldMask = ~uint64_t{0}, empty.numEntries = 1000, empty.schemaId = kMessage + 11;
  nvtxPayloadSchemaRegister(domain(), &empty), nvtxPayloadSchemaRegister(domain(), nullptr);
  nvtxPayloadSchemaRegister(nullptr, &empty);
  const nvtxPayloadData_t bad[] = {{kMessage, 4, &message},          {kMessage, 0, &message}, {kMessage, sizeof message, nullptr},
                                   {12345, sizeof message, &message}, {far, SIZE_MAX, &message},  {nameless, 8, &message},
                                   {kMessage + 11, SIZE_MAX, &message}, {kShort, SIZE_MAX, &message}};
  for (const nvtxPayloadData_t& data : bad) {
    push("ncclAllReduce", &data, 1);
    launch(static_cast<uint32_t>(records_.size() + 1));
    nvtxRangePopPayload(domain(), &data, 1);
  }
  push("ncclAllReduce", bad, -1), push("ncclAllReduce", nullptr, 3);
  nvtxRangePopPayload(domain(), nullptr, 1), nvtxRangePopPayload(domain(), bad, 0);
  for (int i = 0; i < 100; ++i) push("ncclAllReduce");
  for (int i = 0; i < 120; ++i) pop();
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
