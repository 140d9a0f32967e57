// The data that a collector gathered since it was last asked. A batch is self-contained, so it can move between threads
// and into any Trace.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

// Calls of the driver's allocator during one step, by op.
struct StepAllocations {
  uint32_t step = 0;  // step + 1; 0: outside any step
  OpTag op = kNoOp;
  uint32_t allocations = 0, frees = 0;              // cudaMalloc and similar calls, cudaFree
  uint32_t async_allocations = 0, async_frees = 0;  // cudaMallocAsync, cudaFreeAsync
  uint32_t host_allocations = 0, host_frees = 0;    // pinned host memory
  int64_t time_ns = 0;                              // host time spent in these calls
  uint64_t bytes = 0;                               // requested bytes
};

struct BatchTrack {
  TrackKind kind = TrackKind::Other;
  std::string name, group;
  int depth = 0;
  std::vector<Span> spans;  // sorted by start
  int rank = -1;
  // Not 0: these spans take the place of the row's spans of this step and of later ones.
  uint32_t replaces = 0;
};

struct BatchCounter {
  std::string name, unit;
  CounterKind kind = CounterKind::Other;
  std::vector<CounterPoint> points;
};

struct TraceBatch {
  std::vector<std::string> names;  // indexed by the NameId of the spans
  std::vector<std::pair<NameId, std::shared_ptr<const CodeStack>>> stacks;  // names that are stacks; their text is empty
  std::vector<Detail> details{Detail{}};
  std::vector<BatchTrack> tracks;
  std::vector<BatchCounter> counters;
  std::vector<MemoryEvent> memory;
  std::vector<std::string> memory_sources;
  std::vector<StepAllocations> allocations;
  std::vector<SampledInstruction> sampled;
  std::vector<SampledCode> sampled_code;
  std::vector<SampledWindow> sampled_windows;
  Losses losses;  // since the previous batch

  bool empty() const;
  size_t span_count() const;
};

void append(Trace& trace, TraceBatch&& batch);
// Everything that is in memory. Registers the ops of the trace in this process.
TraceBatch whole_batch(const Trace& trace);

// Collects spans into batches. Names, tracks and details are looked up once and then used by reference. Each batch
// contains only those it uses.
class BatchBuilder {
 public:
  struct Name {
    const std::string* text = nullptr;  // nullptr: a stack
    std::shared_ptr<const CodeStack> stack;
    uint32_t batch = 0;
    NameId id{};
  };
  struct Shape {
    const Detail* detail = nullptr;
    uint32_t batch = 0;
    DetailId id{};
  };
  struct Row {
    TrackKind kind;
    std::string name, group;
    int depth;
    std::vector<Span> spans;
    Row* overflow = nullptr;  // takes spans that overlap the previous one
    TimeNs end = 0;
    int rank = -1;
  };

  Name& name(std::string_view text);
  Name& name(const std::shared_ptr<const CodeStack>& stack);
  Shape& shape(const Detail& detail);
  Row& row(TrackKind kind, std::string_view name, std::string_view group, int depth = 0, int rank = -1);
  NameId id(Name& name) { return name.batch == batch_ ? name.id : add(name); }
  DetailId id(Shape& shape) { return shape.batch == batch_ ? shape.id : add(shape); }

  void counter(std::string_view name, std::string_view unit, CounterPoint point, CounterKind kind = CounterKind::Other);
  uint8_t memory_source(std::string_view name);
  void memory(const MemoryEvent& event) { current_.memory.push_back(event); }
  void allocations(const StepAllocations& counts);
  void sampled(const SampledInstruction& samples) { current_.sampled.push_back(samples); }
  void sampled(SampledCode code) { current_.sampled_code.push_back(std::move(code)); }
  void sampled(const SampledWindow& window) { current_.sampled_windows.push_back(window); }
  Losses& losses() { return current_.losses; }

  size_t spans() const;
  TraceBatch finish();  // returns the current batch and begins a new one

 private:
  NameId add(Name& name);
  DetailId add(Shape& shape);
  void spread_overlaps(Row& row);
  struct DetailHash {
    size_t operator()(const Detail& detail) const;
  };

  uint32_t batch_ = 1;
  TraceBatch current_;
  std::unordered_map<std::string, Name> names_;
  std::unordered_map<const CodeStack*, Name> stacks_;
  std::unordered_map<Detail, Shape, DetailHash> shapes_;
  std::vector<std::unique_ptr<Row>> rows_;
  LookUp row_places_, counter_places_;
};

}  // namespace ws::prof
