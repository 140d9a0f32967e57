#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include "profiling/recording/nvtx_payloads.h"

#include <nvtx3/nvToolsExtPayload.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiling/collectors/program_ranges.h"
#include "profiling/collectors/xla_ranges.h"
#include "profiling/recording/injected.h"

namespace ws::prof {

namespace {

constexpr size_t kMostDomains = 16, kMostFields = 64, kMostPayloads = 8;
constexpr uint64_t kMostSchemas = 4096;

std::array<std::atomic<nvtxDomainHandle_t>, kMostDomains> g_domains;

struct Field {
  uint64_t NcclPayload::*to;
  size_t offset, bytes;
};
struct Schema {
  std::vector<Field> fields;
  size_t hlo = 0, called = 0;  // of XLA: the end of handles of texts, 0: none
  size_t bytes = 0;  // of a payload; 0: not said
};

uint64_t NcclPayload::*meaning_of(std::string_view name) {
  if (name.starts_with("Message size") || name == "Bytes") return &NcclPayload::bytes;
  if (name == "NCCL communicator ID") return &NcclPayload::communicator;
  if (name == "Rank") return &NcclPayload::rank;
  if (name == "Peer rank") return &NcclPayload::peer;
  return name == "No. of ranks" ? &NcclPayload::ranks : nullptr;
}

// 0: not a whole number, or not of a fixed size.
size_t bytes_of(uint64_t type) {
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_INT:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
      return 4;
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
    case NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE:
      return 8;
    default:
      return 0;
  }
}

// An offset of 0 means after the field before, aligned to its own size.
Schema schema_of(const nvtxPayloadSchemaAttr_t& attributes) {
  Schema schema;
  if (attributes.fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE) schema.bytes = attributes.payloadStaticSize;
  size_t end = 0;
  bool end_known = true;
  for (size_t i = 0; attributes.entries && i < std::min(attributes.numEntries, kMostFields); ++i) {
    const nvtxPayloadSchemaEntry_t& entry = attributes.entries[i];
    const size_t bytes = entry.flags == 0 ? bytes_of(entry.type) : 0;
    end_known = bytes > 0 && (end_known || entry.offset != 0);
    if (!end_known) continue;
    const size_t offset = entry.offset != 0 ? entry.offset : (end + bytes - 1) / bytes * bytes;
    end = offset + bytes;
    if (!entry.name) continue;
    if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE) {
      if (entry.name == std::string_view("HLO")) schema.hlo = end;
      if (entry.name == std::string_view("Called HLO")) schema.called = end;
    } else if (const auto to = meaning_of(entry.name)) {
      schema.fields.push_back({to, offset, bytes});
    }
  }
  return schema;
}

class Schemas {
 public:
  static Schemas& instance() {
    static Schemas* schemas = new Schemas;  // never destroyed: ranges come until the process ends
    return *schemas;
  }

  uint64_t add(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t& attributes) {
    const std::lock_guard lock(mutex_);
    const bool numbered = attributes.fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    const uint64_t id = numbered ? attributes.schemaId : NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START + next_++;
    if (schemas_.size() >= kMostSchemas) return id;
    if (Schema schema = schema_of(attributes); is_nccl_domain(domain) || schema.called > 0) schemas_[{domain, id}] = std::move(schema);
    return id;
  }

  // Adds what the fields say; reads nothing outside of the payload.
  void read(nvtxDomainHandle_t domain, const nvtxPayloadData_t& data, NcclPayload& into) const {
    const std::lock_guard lock(mutex_);
    const auto schema = schemas_.find({domain, data.schemaId});
    if (schema == schemas_.end() || !data.payload) return;
    const size_t size = data.size == SIZE_MAX ? schema->second.bytes : data.size;
    for (const Field& field : schema->second.fields) {
      if (field.offset > size || field.bytes > size - field.offset) continue;
      into.*field.to = 0;
      std::memcpy(&(into.*field.to), static_cast<const char*>(data.payload) + field.offset, field.bytes);
      into.message = into.message || field.to == &NcclPayload::bytes;
    }
  }

  // The two texts of a range of XLA, or empty ones.
  std::pair<std::string_view, std::string_view> texts(nvtxDomainHandle_t domain, const nvtxPayloadData_t& data) const {
    const std::lock_guard lock(mutex_);
    const auto schema = schemas_.find({domain, data.schemaId});
    if (schema == schemas_.end() || !data.payload) return {};
    const size_t size = data.size == SIZE_MAX ? schema->second.bytes : data.size;
    const auto text_at = [&](size_t end) -> std::string_view {
      if (end < sizeof(const std::string*) || end > size) return {};
      const std::string* handle = nullptr;
      std::memcpy(&handle, static_cast<const char*>(data.payload) + end - sizeof handle, sizeof handle);
      return strings_.contains(handle) ? std::string_view(*handle) : std::string_view();
    };
    return {text_at(schema->second.hlo), text_at(schema->second.called)};
  }

  const std::string* keep(std::string text) {
    const auto* kept = new std::string(std::move(text));  // never freed: it is a handle of the program
    const std::lock_guard lock(mutex_);
    strings_.insert(kept);
    return kept;
  }

  // What was found for this text, which is at the same place each time.
  template <class Find>
  std::string_view known(std::string_view text, const Find& find) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = fuller_.find(text.data()); at != fuller_.end()) return at->second.empty() ? text : std::string_view(at->second);
    }
    std::string fuller = find();
    const std::lock_guard lock(mutex_);
    const std::string& kept = fuller_.try_emplace(text.data(), std::move(fuller)).first->second;
    return kept.empty() ? text : std::string_view(kept);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<nvtxDomainHandle_t, uint64_t>, Schema> schemas_;
  std::unordered_set<const std::string*> strings_;
  std::unordered_map<const char*, std::string> fuller_;  // by a registered text
  uint64_t next_ = 0;
};

NcclPayload read(nvtxDomainHandle_t domain, const nvtxPayloadData_t* data, size_t count) {
  NcclPayload payload;
  for (size_t i = 0; data && i < std::min(count, kMostPayloads); ++i) Schemas::instance().read(domain, data[i], payload);
  return payload;
}

uint64_t number(nvtxDomainHandle_t domain) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(domain)); }

uint64_t register_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t* attributes) {
  return attributes && !in_forked_child() ? Schemas::instance().add(domain, *attributes) : 0;
}

// Ranges with a payload only have no text.
int push(nvtxDomainHandle_t domain, const nvtxPayloadData_t* data, size_t count) {
  if (in_forked_child()) return 0;
  if (is_nccl_domain(domain))
    NcclCalls::instance().begin("range", read(domain, data, count));
  else
    ProgramRanges::instance().push("range", number(domain));
  return 0;
}

int pop(nvtxDomainHandle_t domain, const nvtxPayloadData_t* data, size_t count) {
  if (is_nccl_domain(domain) && !in_forked_child())
    NcclCalls::instance().end(read(domain, data, count));
  else
    ProgramRanges::instance().pop(number(domain));
  return 0;
}

nvtxRangeId_t start(nvtxDomainHandle_t, const nvtxPayloadData_t*, size_t) {
  return in_forked_child() ? 0 : ProgramRanges::instance().start("range");
}

void end(nvtxDomainHandle_t, nvtxRangeId_t id, const nvtxPayloadData_t*, size_t) {
  if (!in_forked_child()) ProgramRanges::instance().end(id);
}

template <class Function>
void set(const nvtxExtModuleSegment_t& table, size_t id, Function* function) {
  if (id < table.slotCount) table.functionSlots[id] = reinterpret_cast<intptr_t>(function);
}

}  // namespace

void remember_nccl_domain(nvtxDomainHandle_t domain) {
  for (auto& place : g_domains) {
    nvtxDomainHandle_t none = nullptr;
    if (place.compare_exchange_strong(none, domain)) return;
  }
}

bool is_nccl_domain(nvtxDomainHandle_t domain) {
  for (const auto& place : g_domains) {
    const nvtxDomainHandle_t known = place.load(std::memory_order_relaxed);
    if (!known) return false;
    if (known == domain) return true;
  }
  return false;
}

NcclPayload payload_of(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  if (!event || event->payloadType != NVTX_PAYLOAD_TYPE_EXT || event->reserved0 <= 0) return {};
  return read(domain, reinterpret_cast<const nvtxPayloadData_t*>(static_cast<uintptr_t>(event->payload.ullValue)),
              static_cast<size_t>(event->reserved0));
}

nvtxStringHandle_t registered(std::string text) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<std::string*>(Schemas::instance().keep(std::move(text))));
}

std::string_view text_with_payload(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event, std::string_view text) {
  const bool of_xla = event && event->payloadType == NVTX_PAYLOAD_TYPE_EXT && event->reserved0 > 0 &&
                      event->messageType == NVTX_MESSAGE_TYPE_REGISTERED && text.starts_with("Thunk:#");
  if (!of_xla || in_forked_child()) return text;
  return Schemas::instance().known(text, [&] {
    const auto* data = reinterpret_cast<const nvtxPayloadData_t*>(static_cast<uintptr_t>(event->payload.ullValue));
    for (size_t i = 0; data && i < std::min(static_cast<size_t>(event->reserved0), kMostPayloads); ++i)
      if (const auto [hlo, called] = Schemas::instance().texts(domain, data[i]); !hlo.empty() || !called.empty())
        return xla_text_with_path(text, hlo, called);
    return std::string();
  });
}

}  // namespace ws::prof

// Each copy of an extension of NVTX calls this once. What we do not set does nothing.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  if (!module || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID) return 1;
  for (size_t i = 0; module->segments && i < module->segmentsCount; ++i) {
    const nvtxExtModuleSegment_t& table = module->segments[i];
    if (!table.functionSlots) continue;
    ws::prof::set(table, NVTX3EXT_CBID_nvtxPayloadSchemaRegister, ws::prof::register_schema);
    ws::prof::set(table, NVTX3EXT_CBID_nvtxRangePushPayload, ws::prof::push);
    ws::prof::set(table, NVTX3EXT_CBID_nvtxRangePopPayload, ws::prof::pop);
    ws::prof::set(table, NVTX3EXT_CBID_nvtxRangeStartPayload, ws::prof::start);
    ws::prof::set(table, NVTX3EXT_CBID_nvtxRangeEndPayload, ws::prof::end);
  }
  return 1;
}
#endif
