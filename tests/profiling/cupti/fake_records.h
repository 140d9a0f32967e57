// Activity records laid out in memory one after another, as CUPTI lays them out.
#pragma once
#include <cupti.h>

#include <vector>

namespace ws::prof::testing {

class FakeRecords {
 public:
  template <class Record>
  Record& add(CUpti_ActivityKind kind) {
    static_assert(sizeof(Record) % 8 == 0);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(Record));
    auto* record = reinterpret_cast<Record*>(bytes_.data() + at);
    record->kind = kind;
    return *record;
  }

  CUpti_ActivityKernel10& kernel(const char* name, uint64_t start, uint64_t end, uint32_t correlation,
                                 uint64_t node = 0) {
    auto& k = add<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    k.name = name;
    k.start = start;
    k.end = end;
    k.correlationId = correlation;
    k.graphNodeId = node;
    k.streamId = 7;
    k.gridX = 4, k.gridY = k.gridZ = 1;
    k.blockX = 128, k.blockY = k.blockZ = 1;
    k.registersPerThread = 32;
    return k;
  }

  CUpti_ActivityGraphTrace2& graph_run(uint64_t start, uint64_t end, uint32_t graph = 3, uint32_t stream = 7) {
    auto& g = add<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    g.start = start, g.end = end, g.graphId = graph, g.streamId = stream;
    return g;
  }

  CUpti_ActivityMemory4& pool_call(uint64_t pool, uint64_t time, uint64_t reserved, uint64_t used) {
    auto& m = add<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    m.isAsync = 1, m.timestamp = time;
    m.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    m.memoryPoolConfig.address = pool;
    m.memoryPoolConfig.pool.size = reserved, m.memoryPoolConfig.utilizedSize = used;
    return m;
  }

  uint8_t* data() { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

  // Walks them; a record whose end lies beyond the valid bytes, or of an unknown kind, is an error as in CUPTI.
  static CUptiResult next(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
    uint8_t* at = *record ? reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind) : buffer;
    if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    auto* found = reinterpret_cast<CUpti_Activity*>(at);
    const size_t size = size_of(found->kind);
    if (size == 0 || at + size > buffer + valid) return CUPTI_ERROR_INVALID_KIND;
    *record = found;
    return CUPTI_SUCCESS;
  }

 private:
  static size_t size_of(CUpti_ActivityKind kind) {
    switch (kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
      case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return sizeof(CUpti_ActivityGraphTrace2);
      case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return sizeof(CUpti_ActivitySynchronization2);
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        return sizeof(CUpti_ActivityMemory4);
      case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        return sizeof(CUpti_ActivityMemoryPool3);
      case CUPTI_ACTIVITY_KIND_DEVICE:
        return sizeof(CUpti_ActivityDevice5);  // a kind that is not drawn
      default:
        return 0;
    }
  }
  std::vector<uint8_t> bytes_ = [] {
    std::vector<uint8_t> v;
    v.reserve(1 << 22);
    return v;
  }();  // addresses stay
};

}  // namespace ws::prof::testing
