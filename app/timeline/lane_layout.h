// Decides which lanes the timeline has, in which order, and how high they are. Pure.
#pragma once
#include <QSet>
#include <QString>
#include <QStringList>
#include <memory>
#include <vector>

#include "app/timeline/layer_blocks.h"
#include "profiling/analysis/memory_curves.h"
#include "profiling/trace/trace.h"

namespace ws::app {

struct LaneSource {
  const prof::Trace* trace = nullptr;
  QString key, title;
  int slot = -1;
  bool allocations = false;                // has curves from recorded allocations
  const prof::Trace* gpu_steps = nullptr;  // steps and phases as the GPU ran them; null: the host's are correct
  bool layers = false;                       // its network has layers to show above the kernels
  LayerParts parts = {};       // blocks of layers
  LayerParts folded = {};      // the same, of blocks that the user folded
  prof::MemoryLines memory = prof::MemoryLines::Used;  // lines of these allocations
};

struct LaneSettings {
  QSet<QString> folded, hidden, pinned;  // lane or group keys
  QStringList order;                     // keys of lanes that the user moved, in their order
  QString filter;                        // words that a lane's title or group must contain
  bool small = false;                    // lower lanes; copies are in the lane of their stream
  int tight = 0;                         // 1: several runs share the height, and show steps, phases, kernels and calls; 2: no phases
  bool counters_begin_folded = false;    // the rows of counters and memory do not fit until the user opens them
  bool quiet_rows = false;               // show each almost empty row instead of folding them into one
};

enum class LaneKind { Group, Spans, Layers, Counter, Memory };
struct CounterRef {
  int run;
  size_t counter;
};
constexpr size_t kUsedCurve = SIZE_MAX - 1, kReservedCurve = SIZE_MAX;  // from allocations, not a counter of the trace

struct Lane {
  LaneKind kind = LaneKind::Spans;
  int run = -1;  // index into the sources; −1: shared by all
  prof::TrackKind track_kind = prof::TrackKind::Other;  // a broad kind
  std::vector<size_t> tracks;  // painted on top of each other
  std::vector<CounterRef> counters;
  QString key, title, detail, tip;
  int y = 0, height = 0;
  bool folded = false, pinned = false;  // a folded lane of spans sums up its rank, or the nearly empty rows
  bool of_rank = false;                  // a group inside the lanes of a run: of one rank, of all ranks, of nearly empty rows
  bool inside = false, nested = false;   // shows what is inside the ranges of a row; nested: of the row above, so it needs no name
  bool flat = false;       // its curves hardly change: a low row shows their value
  bool gpu_steps = false;  // its tracks are in the source's gpu_steps
  LayerGrouping grouping = {};  // Layers: what stands in one box
  size_t upper = 0;        // its tracks often overlap: so many are in the upper half, the rest in the lower; 0: no halves
  int bottom() const { return y + height; }
};

std::vector<Lane> build_lanes(const std::vector<LaneSource>& sources, const LaneSettings& settings);
void fold_quiet_lanes(std::vector<Lane>& lanes, const LaneSource& source, const LaneSettings& settings);
constexpr int kMostMemory = 180, kLeastCurve = 44, kFlatRow = 20;
int least_height(const std::vector<Lane>& lanes);  // with curves as low as they can be
// Sets y from 0 on and returns the total height. Rows grow if `viewport` has more space, and curves shrink if it has less.
int place_lanes(std::vector<Lane>& lanes, int viewport);
int lane_at(const std::vector<Lane>& lanes, int y);  // −1 if there is none

bool allocates(const prof::Track& track);  // True if its latest calls allocate
struct RowInLane {
  double top, height;
};
RowInLane row_in(const Lane& lane, size_t track);  // position of that track inside the lane

}  // namespace ws::app
