// Marks ranges as NCCL does: a domain by its name, with payloads that have a communicator, ranks and bytes. Only the names are
// NCCL's; numbers and layouts are ours.
#pragma once
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdint>
#include <vector>

namespace ws::prof::testing {

struct NcclMessage {
  int unused = 0;
  uint64_t bytes = 0, communicator = 0;
  int peer = 0;
};
struct NcclInit {
  uint64_t communicator;
  int rank, ranks;
};
constexpr uint64_t kNcclMessage = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, kNcclInit = kNcclMessage + 1,
                   kNcclToPeer = kNcclMessage + 3;

inline nvtxPayloadSchemaEntry_t payload_entry(const char* name, uint64_t type, uint64_t offset = 0) {
  return {0, type, name, nullptr, 0, offset, nullptr, nullptr};
}

inline uint64_t add_schema(nvtxDomainHandle_t domain, uint64_t id, size_t size,
                           const std::vector<nvtxPayloadSchemaEntry_t>& entries) {
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries.data(), schema.numEntries = entries.size(), schema.payloadStaticSize = size;
  schema.schemaId = id;
  return nvtxPayloadSchemaRegister(domain, &schema);
}

inline nvtxDomainHandle_t nccl_domain() {
  static const nvtxDomainHandle_t made = [] {
    const nvtxDomainHandle_t fresh = nvtxDomainCreateA("NCCL");
    std::vector message{payload_entry("Root", NVTX_PAYLOAD_ENTRY_TYPE_INT),
                        payload_entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE, offsetof(NcclMessage, bytes)),
                        payload_entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64, offsetof(NcclMessage, communicator))};
    add_schema(fresh, kNcclMessage, sizeof(NcclMessage), message);
    message.push_back(payload_entry("Peer rank", NVTX_PAYLOAD_ENTRY_TYPE_INT, offsetof(NcclMessage, peer)));
    add_schema(fresh, kNcclToPeer, sizeof(NcclMessage), message);
    add_schema(fresh, kNcclInit, sizeof(NcclInit),
               {payload_entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64),
                payload_entry("Rank", NVTX_PAYLOAD_ENTRY_TYPE_INT),  // after the one before
                payload_entry("No. of ranks", NVTX_PAYLOAD_ENTRY_TYPE_INT)});
    return fresh;
  }();
  return made;
}

inline void nccl_push(const char* function, const nvtxPayloadData_t* data = nullptr, int count = 0) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(nccl_domain(), function);
  event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  event.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(data);
  event.reserved0 = count;
  nvtxDomainRangePushEx(nccl_domain(), &event);
}
inline void nccl_pop() { nvtxDomainRangePop(nccl_domain()); }

// The range of a call that makes a communicator.
inline void nccl_initialize(const char* function, uint64_t communicator, int rank, int ranks) {
  const NcclInit init{communicator, rank, ranks};
  const nvtxPayloadData_t data{kNcclInit, sizeof init, &init};
  nccl_push(function);
  nvtxRangePopPayload(nccl_domain(), &data, 1);
}

// `inside` runs while the range of the call is open.
template <class Inside>
void nccl_call(const char* function, uint64_t bytes, uint64_t communicator, const Inside& inside, int peer = -1) {
  const NcclMessage message{.bytes = bytes, .communicator = communicator, .peer = peer};
  const nvtxPayloadData_t data{peer >= 0 ? kNcclToPeer : kNcclMessage, sizeof message, &message};
  nccl_push(function, &data, 1);
  inside();
  nccl_pop();
}

}  // namespace ws::prof::testing
