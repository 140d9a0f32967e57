// A trace: tracks of append-only span blocks, counter tracks, interned names. Times are ns since the run's origin.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/annotate/annotate.h"
#include "profiling/trace/look_up.h"
#include "profiling/trace/stall_samples.h"

namespace ws::prof {

using TimeNs = int64_t;
inline constexpr TimeNs kAlways = std::numeric_limits<TimeNs>::max();  // -kAlways to kAlways: a whole trace
inline constexpr int kMostRanks = 1 << 16;                             // of one run
inline constexpr const char* kUntracedTrack = "untraced stretches";    // a row
// A half-open stretch of time.
struct TimeRange {
  TimeNs begin = 0, end = 0;
  TimeNs length() const { return end - begin; }
  bool contains(TimeNs t) const { return t >= begin && t < end; }
  bool operator==(const TimeRange&) const = default;
};

enum class NameId : uint32_t {};
enum class TrackId : uint32_t {};
enum class DetailId : uint16_t {};  // 0: none

enum class SpanKind : uint8_t {
  Kernel,
  Copy,
  Memset,
  Api,
  Alloc,
  Free,
  Sync,
  GraphLaunch,
  GraphRun,
  Phase,
  Step,
  Op,
  Overhead,
  Inner,
  Other
};
// kHelper: inside a kernel, a span that takes no share of its time: of a warp that only fetches data for other warps, or
// a range that a program named.
enum SpanFlag : uint8_t { kUnjoined = 1, kInGraph = 2, kImported = 4, kEstimated = 8, kHelper = 16 };

struct Span {
  TimeNs start = 0;
  uint64_t duration : 40 = 0;  // ns; up to 18 minutes
  uint64_t kind : 8 = 0;       // SpanKind
  uint64_t meaning : 8 = 0;    // Meaning
  uint64_t flags : 8 = 0;      // SpanFlag
  NameId name{};
  OpTag op = kNoOp;
  DetailId detail{};         // launch configuration or copy kind
  uint32_t correlation = 0;  // the same number on a call and on what it launched; 0: none
  uint32_t step = 0;         // step + 1; 0: unknown

  // Unsigned addition: values from a damaged file may overflow.
  TimeNs end() const { return static_cast<TimeNs>(static_cast<uint64_t>(start) + duration); }
  SpanKind span_kind() const { return static_cast<SpanKind>(kind); }
  Meaning span_meaning() const { return static_cast<Meaning>(meaning); }
};
static_assert(sizeof(Span) == 32);
void order_by_start(std::vector<Span>& spans);  // equal starts keep their order

// Properties that many spans share. Each is stored once and referred to by DetailId.
struct Detail {
  int grid[3] = {0, 0, 0};
  int block[3] = {0, 0, 0};
  int registers = 0;
  int static_shared = 0;
  int dynamic_shared = 0;
  uint64_t bytes = 0;     // copies, memsets, allocations, collectives
  std::string copy_kind;  // "pageable → device"; of a collective its communicator
  bool operator==(const Detail&) const = default;
};

// Run files store these numbers. Ranges: modules, ops and NVTX ranges of the program. ProgramSteps: the steps that it reports,
// as ranges. Samples: sampled stacks of a thread; the name of each span is a stack. Loader: a process that loads data.
// Collectives: their times, where their kernels were not recorded. StreamWaits: waits that the driver recorded; the waiting call
// is also on the row of its thread. Untraced: tracing paused on purpose. NotRecorded stands for a rank without a recording.
enum class TrackKind : uint8_t { Steps, Phases, Stream, Copies, GraphLaunches, Api, CpuThread, Overhead, Inner, Other,
                                 Ranges, ProgramSteps, Samples, Loader, Collectives, StreamWaits, Untraced, NotRecorded };
inline constexpr TrackKind kLastTrackKind = TrackKind::NotRecorded;

// The kind among the first ten, which older run files and other tools know. Rows of one broad kind are drawn alike.
constexpr TrackKind broad_kind(TrackKind kind) {
  if (kind <= TrackKind::Other) return kind;
  if (kind == TrackKind::Ranges || kind == TrackKind::ProgramSteps) return TrackKind::Phases;
  return kind == TrackKind::Untraced ? TrackKind::Overhead : TrackKind::Other;
}

using MeaningTimes = std::array<int64_t, kMeanings>;  // ns by Meaning
inline void add_time(MeaningTimes& times, const Span& span, int64_t sign = 1) {
  times[std::min<size_t>(span.meaning, kMeanings - 1)] += sign * static_cast<int64_t>(span.duration);
}

// A block of spans with partial sums. Chunks let drawing jump into a block without visiting every span before it.
// Members that drawing reads are next to each other.
struct SpanBlock {
  static constexpr size_t kCapacity = 1024;
  static constexpr size_t kChunks = 16;
  std::vector<Span> spans;                     // sorted by start; empty when the block was evicted
  std::vector<MeaningTimes> chunks;            // times of the block's spans before each chunk
  std::array<TimeNs, kChunks> chunk_starts{};  // start of each chunk's first span
  size_t chunk_size = kCapacity / kChunks;     // larger for a block from a file that is longer than ours
  size_t count_before = 0;                     // spans in the blocks before
  MeaningTimes before{}, total{};
  TimeNs first = 0, last = 0;  // min start, max end
  TimeNs reach = 0;            // greatest end in this block and the blocks before it
  uint32_t count = 0;          // spans in this block, even if evicted
  Span head;                   // the first span
  bool resident() const { return !spans.empty() || count == 0; }
};

struct Track {
  TrackKind kind = TrackKind::Other;
  std::string name;   // "stream 7"
  std::string group;  // "GPU 0", "CPU"; rows of one group are shown together
  int depth = 0;      // nested rows of one thread
  int rank = -1;      // the rank that did this work; -1: the run has no ranks, or the row belongs to all of them
  std::deque<SpanBlock> blocks;
  std::vector<TimeNs> block_starts;  // start of each block, for binary search
  size_t spans = 0;                  // including evicted spans
  size_t forgotten = 0;              // blocks before the first of `blocks`, see Trace::forget_saved()
  TimeNs last_start = 0;

  int64_t time_of(Meaning meaning) const {  // of all its spans, in ns
    const auto at = static_cast<size_t>(meaning);
    return blocks.empty() ? 0 : blocks.back().before[at] + blocks.back().total[at];
  }
};

// Two equal rows have the same hash.
inline uint64_t row_hash(TrackKind kind, std::string_view name, std::string_view group, int depth, int rank) {
  const uint64_t numbers = mixed(static_cast<uint64_t>(kind), static_cast<uint64_t>(depth));
  return mixed(mixed(mixed(numbers, static_cast<uint64_t>(rank)), name), group);
}

struct CounterPoint {
  TimeNs time;
  double value;
};
// Run files store these numbers. Loss and TestLoss are curves of the loss chart, beside the losses in the metrics and in the
// evaluations. LossName and TestLossName have one point: their name is the name of the losses there. Dram: reads or writes as a
// share of the peak.
enum class CounterKind : uint8_t { Other, Loss, TestLoss, LossName, TestLossName, MemoryUsed, MemoryReserved, PoolUsed, PoolReserved,
                                   Dram };
inline constexpr CounterKind kLastCounterKind = CounterKind::Dram;
constexpr bool is_loss_curve(CounterKind kind) { return kind >= CounterKind::Loss && kind <= CounterKind::TestLossName; }

struct CounterTrack {
  std::string name;                 // "memory used"
  std::string unit;                 // "B", "%"
  CounterKind kind = CounterKind::Other;
  std::deque<CounterPoint> points;  // steps: a value holds until the next point
};

// True if a memory source is CUDA itself ("cudaMalloc", "cuMemAlloc") and not an allocator above it ("caching").
inline bool is_driver_source(std::string_view source) { return source.starts_with("cu"); }

struct MemoryEvent {
  TimeNs time;
  uint64_t address;
  uint64_t bytes;
  uint32_t step;  // step + 1; 0: unknown
  OpTag op;
  MemoryAction kind;
  uint8_t source;  // index into Trace::memory_sources: "cudaMalloc", "arena", ...
};

struct Losses {
  uint64_t dropped_records = 0, invalid_records = 0, unjoined_kernels = 0, evicted_spans = 0;
  void add(const Losses& more);
};

class Trace {
 public:
  Trace() = default;
  Trace(Trace&&) = default;
  Trace& operator=(Trace&&) = default;

  NameId intern(std::string_view name);
  // A name that is a stack, of a sample. Its text is stack_text(). Equal stacks have the same name.
  NameId intern(const std::shared_ptr<const CodeStack>& stack);
  bool knows(std::string_view name) const { return name_ids_.contains(name); }
  const std::string& name(NameId id) const {  // empty for a span without a name
    static const std::string none;
    return static_cast<size_t>(id) < names_.size() ? names_[static_cast<size_t>(id)] : none;
  }
  // The stack that this name is, or nullptr. shared_stack(): to give it to another trace.
  const CodeStack* stack(NameId id) const { return shared_stack(id).get(); }
  const std::shared_ptr<const CodeStack>& shared_stack(NameId id) const;
  NameId intern(const Trace& other, NameId name) {  // a name of another trace
    const auto& stack = other.shared_stack(name);
    return stack ? intern(stack) : intern(other.name(name));
  }
  size_t name_count() const { return names_.size(); }
  DetailId intern(const Detail& detail);
  const Detail& detail(DetailId id) const { return details_[static_cast<size_t>(id)]; }
  size_t detail_count() const { return details_.size(); }

  // Finds or adds a track.
  TrackId track(TrackKind kind, std::string_view name, std::string_view group, int depth = 0, int rank = -1);
  TrackId counter(std::string_view name, std::string_view unit, CounterKind kind = CounterKind::Other);

  // Expects nearly sorted input. Inserts a late span at its place.
  void append(TrackId track, const Span& span);
  void append(TrackId track, std::span<const Span> spans);
  // Removes the spans of step `first` and of later ones from a row whose spans are in order of their steps. A block that
  // was evicted is removed as a whole or not at all.
  void drop_steps(TrackId track, uint32_t first);
  void append_counter(TrackId track, CounterPoint point);
  void append_counter(TrackId track, std::vector<CounterPoint> points);  // in any order
  void append_memory(const MemoryEvent& event) { memory_.push_back(event); ++memory_count_; }

  const std::vector<Track>& tracks() const { return tracks_; }
  const std::vector<CounterTrack>& counters() const { return counters_; }
  const std::deque<MemoryEvent>& memory() const { return memory_; }
  // Number of events ever appended. The newest ones are at the end of memory(), even after older ones were dropped.
  size_t memory_count() const { return memory_count_; }
  std::vector<std::string> memory_sources;
  std::vector<OpInfo> ops{{}};  // indexed by OpTag as used in this trace; 0 is "no op"
  StallSamples stalls;
  Losses losses;

  TimeNs first_time() const;
  TimeNs last_time() const;
  size_t span_count() const;
  size_t resident_bytes() const;
  // Drops the spans of the oldest blocks until at most `budget` bytes remain. Their sums stay, so they are still drawn.
  // Spans that no run file holds are counted in losses.evicted_spans. Memory events and counters each keep to a quarter
  // of the budget: old events of freed blocks are dropped, and old counters lose every second point. Spans in
  // [keep_begin, keep_end) always stay, because they are being viewed.
  void evict(size_t budget, TimeNs keep_begin = 0, TimeNs keep_end = 0);
  void evict_spans(size_t budget, TimeNs keep_begin = 0, TimeNs keep_end = 0);  // spans only
  bool backed = false;                                                          // true if a run file holds every span
  void drop_points();  // drops counters and memory events
  // Once it is in a file: drops these too, and all blocks but the one that each track still fills.
  void forget_saved();
  // For a reader of run files: adds a block of which only the sums are known, and later its spans.
  void add_stub(TrackId track, SpanBlock&& stub);
  bool fill(TrackId track, size_t block, std::vector<Span>&& spans);  // false: these are not the evicted spans

 private:
  SpanBlock& open_block(Track& track, const Span& span);
  void insert_late(Track& track, const Span& span);
  void evict_memory(size_t budget);
  void thin_counters(size_t budget);

  struct DetailHash {
    size_t operator()(const Detail& d) const;
  };
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, NameId> name_ids_;
  std::unordered_map<uint32_t, std::shared_ptr<const CodeStack>> stacks_;  // by name
  std::unordered_map<const CodeStack*, NameId> stack_names_;               // of the stacks in stacks_
  LookUp stack_places_;                                                    // names, by the stack's hash
  std::deque<Detail> details_{Detail{}};
  std::unordered_map<Detail, DetailId, DetailHash> detail_ids_;
  std::vector<Track> tracks_;
  std::vector<CounterTrack> counters_;
  LookUp track_places_, counter_places_;
  std::deque<MemoryEvent> memory_;
  size_t memory_count_ = 0;
};

}  // namespace ws::prof
