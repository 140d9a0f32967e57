#include "tests/profiling/recording/nccl_stand_in.h"

#include <nvtx3/nvToolsExtPayload.h>

#include <vector>

#include "tests/profiling/recording/cuda_stand_in.h"

namespace {

struct Message {
  uint64_t communicator, bytes;
};
struct Init {
  uint64_t communicator;
  int rank, ranks;
};
constexpr uint64_t kMessage = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, kInit = kMessage + 1;

int64_t g_end = 0;
int g_depth = 0, g_answer = 0;
std::vector<void*> g_streams;

nvtxPayloadSchemaEntry_t entry(const char* name, uint64_t type) { return {0, type, name, nullptr, 0, 0, nullptr, nullptr}; }

void add_schema(nvtxDomainHandle_t domain, uint64_t id, size_t size, const std::vector<nvtxPayloadSchemaEntry_t>& entries) {
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries.data(), schema.numEntries = entries.size(), schema.payloadStaticSize = size;
  schema.schemaId = id;
  nvtxPayloadSchemaRegister(domain, &schema);
}

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = [] {
    const nvtxDomainHandle_t fresh = nvtxDomainCreateA("NCCL");
    add_schema(fresh, kMessage, sizeof(Message),
               {entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64), entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE)});
    add_schema(fresh, kInit, sizeof(Init),
               {entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64), entry("Rank", NVTX_PAYLOAD_ENTRY_TYPE_INT),
                entry("No. of ranks", NVTX_PAYLOAD_ENTRY_TYPE_INT)});
    return fresh;
  }();
  return made;
}

void push(const char* function, const nvtxPayloadData_t* data = nullptr) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain(), function);
  event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  event.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(data);
  event.reserved0 = data ? 1 : 0;
  nvtxDomainRangePushEx(domain(), &event);
}

void launch() {
  for (void* stream : g_streams) stand_in_busy_until(stream, g_end);
  g_streams.clear();
}

int call(const char* function, size_t bytes, const void* communicator, void* stream) {
  const Message message{*static_cast<const uint64_t*>(communicator), bytes};
  const nvtxPayloadData_t data{kMessage, sizeof message, &message};
  push(function, &data);
  g_streams.push_back(stream);
  if (g_depth == 0) launch();
  nvtxDomainRangePop(domain());
  return g_answer;
}

}  // namespace

extern "C" {

int ncclCommInitRank(void** communicator, int ranks, uint64_t id, int rank) {
  const Init init{id, rank, ranks};
  const nvtxPayloadData_t data{kInit, sizeof init, &init};
  push("ncclCommInitRank");
  nvtxRangePopPayload(domain(), &data, 1);
  return *communicator = new uint64_t(id), 0;
}
int ncclAllReduce(const void*, void*, size_t count, int, int, void* communicator, void* stream) {
  return call("ncclAllReduce", 4 * count, communicator, stream);
}
int ncclBroadcast(const void*, void*, size_t count, int, int, void* communicator, void* stream) {
  return call("ncclBroadcast", 4 * count, communicator, stream);
}
int ncclGroupStart() {
  push("ncclGroupStart"), nvtxDomainRangePop(domain());
  return ++g_depth, 0;
}
int ncclGroupEnd() {
  push("ncclGroupEnd");
  if (--g_depth == 0) launch();
  nvtxDomainRangePop(domain());
  return g_answer;
}
void stand_in_ends_at(int64_t at) { g_end = at; }
void stand_in_answer(int result) { g_answer = result; }
}
