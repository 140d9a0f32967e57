// Converts CUPTI activity records to spans. It reads buffers in memory, so it can be tested without a GPU.
#pragma once
#include <cupti.h>

#include <array>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/collectors/trace_context.h"

namespace ws::prof {

// Steps through a buffer like cuptiActivityGetNextRecord. *record is nullptr at first.
using NextRecord = CUptiResult (*)(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record);

// The moment when kernel records of graphs were switched off while some graphs may have been running. The driver gives
// their kernels the end times of the graph's next run.
struct GraphCut {
  uint64_t time = 0;    // GPU clock
  uint32_t launch = 0;  // correlation of the last graph launch before it
  bool counts = false;  // true if cut-off kernels count as lost records
};

class RecordParser {
 public:
  explicit RecordParser(TraceContext& context);
  void parse(uint8_t* buffer, size_t valid_bytes, NextRecord next);
  // Looks again for the op of kernels whose op was not known when they were read. After some rounds, or with `last`,
  // they count as unjoined.
  void retry_waiting(bool last);
  void cut(const GraphCut& at);
  uint64_t records() const { return records_; }
  uint64_t graph_kernels() const { return graph_kernels_; }

 private:
  struct KernelName {
    const char* pointer = nullptr;
    std::string mangled;  // the pointer is not enough: another module can be loaded at the same address
    BatchBuilder::Name* name = nullptr;
    BatchBuilder::Shape* shape = nullptr;
    Meaning meaning = Meaning::Other;
  };
  struct Waiting {
    Span span;
    BatchBuilder::Row* row;
    uint64_t node;
    int rounds;
    BatchBuilder::Name* name;
    BatchBuilder::Shape* shape;
    uint32_t device;
  };

  void dispatch(const CUpti_Activity& record);
  void kernel(const CUpti_ActivityKernel10& record);
  void learn_device(uint32_t context, uint32_t device);
  void keep_for_stamps(const Span& kernel, uint32_t device);
  void graph_run(const CUpti_ActivityGraphTrace2& record);
  void copy(const CUpti_ActivityMemcpy6& record);
  void peer_copy(const CUpti_ActivityMemcpyPtoP4& record);
  void memset(const CUpti_ActivityMemset4& record);
  void overhead(const CUpti_ActivityOverhead3& record);
  void wait(const CUpti_ActivitySynchronization2& record);
  void memory(const CUpti_ActivityMemory4& record);
  void pool(const CUpti_ActivityMemoryPool3& record);

  template <class Record>
  bool cut_off(const Record& record);
  bool begin_span(Span& span, uint64_t start, uint64_t end, SpanKind kind, Meaning meaning);
  bool begin_work(Span& span, uint64_t start, uint64_t end, SpanKind kind, Meaning meaning);
  void put(const Span& span, BatchBuilder::Row& row);
  void join(Span& span, uint64_t node);
  KernelName& kernel_name(const char* pointer);
  BatchBuilder::Shape& kernel_shape(KernelName& known, const CUpti_ActivityKernel10& record);
  BatchBuilder::Shape& new_shape(const CUpti_ActivityKernel10& record, const NcclWork& work);
  uint32_t stream_of(uint32_t stream, uint32_t correlation, uint64_t node);
  BatchBuilder::Row& stream_row(TrackKind kind, uint32_t device, uint32_t stream);
  void put_transfer(Span& span, TrackKind kind, uint32_t device, uint32_t stream, const Detail& detail, uint64_t node);

  TraceContext& context_;
  uint64_t records_ = 0, graph_kernels_ = 0;
  std::deque<GraphCut> cuts_;  // the newest ones
  std::array<KernelName, 1024> kernel_names_;
  std::unordered_map<uint64_t, BatchBuilder::Row*> rows_;
  RecentTable<uint32_t> graph_streams_{14};  // by graph launch: the stream of its first record
  uint64_t last_row_key_ = 0;
  BatchBuilder::Row* last_row_ = nullptr;
  std::vector<Waiting> waiting_;
  std::unordered_map<uint32_t, uint32_t> device_of_;  // device by context, learned from its work
  uint32_t last_context_ = 0;
};

}  // namespace ws::prof
