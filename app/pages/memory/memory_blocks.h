// Lays out memory blocks over time, from the plan (op × offset) or from recorded allocations (time × address).
#pragma once
#include <QString>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/plan/plan.h"
#include "profiling/trace/trace.h"

namespace ws::app {

// What a block of memory holds. It gives the block its colour, in the map and in the tables.
enum class MemoryContent : uint8_t { Activations, Gradients, Weights, Optimizer, Batch, Other };
inline constexpr MemoryContent kContents[] = {MemoryContent::Activations, MemoryContent::Gradients, MemoryContent::Weights,
                                              MemoryContent::Optimizer,   MemoryContent::Batch,     MemoryContent::Other};
QString content_name(MemoryContent content);  // "activations"
prof::Meaning meaning_of(MemoryContent content);  // whose colour it has
// A recorded program makes activations in its forward phase, and so on.
MemoryContent content_of_phase(const std::string& phase);

struct MapBlock {
  double x0 = 0, x1 = 0;    // in ops or ns
  uint64_t y0 = 0, y1 = 0;  // bytes from the top of the map
  QString name;
  uint64_t bytes = 0;
  BufferId buffer = BufferId::None;
  prof::OpTag op = prof::kNoOp;  // the op that writes or allocates it
  QString layer;                 // of that op
  MemoryContent content = MemoryContent::Other;
};

// The ops of a layer, or of a block of layers, that follow each other.
struct MapLayer {
  double x0 = 0, x1 = 0;
  QString name;       // "conv1", "block 2"
  bool backward = false;
  uint64_t kept = 0;  // bytes that it leaves in the forward phase for the backward phase
  std::string block;  // the block of layers that it is, or is in; empty: none
};

struct UsePoint {
  double x;
  uint64_t used, reserved;
};

struct MemoryMap {
  bool by_op = true;
  double x_begin = 0, x_end = 1;
  double x_normal = 0;  // where the first step of normal length begins, after longer ones; else x_begin
  double x_from = 0, x_until = 1;  // by time, what a view opens with: of the steps with a normal length, the one with most in use; else all from x_normal
  uint64_t height = 1;  // bytes
  std::vector<MapBlock> blocks;
  std::vector<UsePoint> use;                         // values hold until the next point
  std::vector<std::pair<double, QString>> sections;  // phases (by op), steps or times (by time)
  bool by_step = false;                              // the sections are steps
  std::vector<MapLayer> layers;                      // by op: below the curve of use
  int64_t steps = 0;                                 // number of newest steps shown; 0: everything that is there
  std::vector<uint64_t> seams;                       // where the addresses between segments are cut out
  uint64_t peak = 0, reserved = 0, sum_bytes = 0;
  double peak_x = 0;
  size_t allocations = 0;  // calls in the part shown
  QString use_note;        // which blocks the curve of use leaves out
  bool empty() const { return blocks.empty(); }
};

// `folded`: whether one box stands for the layers of a block.
MemoryMap plan_map(const Plan& plan, const std::function<bool(const std::string& block)>& folded = [](const std::string&) { return true; });
// What the blocks hold that the plan's ops allocate, by op: the buffer, its content, and the layer of the op that first writes it.
std::map<prof::OpTag, MapBlock> contents(const Plan& plan, const prof::Trace& trace);
void name_contents(MemoryMap& map, const std::map<prof::OpTag, MapBlock>& contents);
// The allocations in the newest `steps` steps of a trace. If it has no steps, all allocations. `source`: of one allocator;
// < 0: of the program's own ones, which have one address space unless several devices are used.
MemoryMap event_map(const prof::Trace& trace, int64_t steps, int source = -1);
struct MemoryPart {
  QString name;  // "activations"
  uint64_t bytes = 0;
};
// What is live at the peak of the map, by what the blocks hold. The most bytes come first.
std::vector<MemoryPart> parts_at_peak(const MemoryMap& map);
// What the plan keeps from step to step, outside of the map: weights and the state of the optimizer.
std::vector<MemoryPart> kept_parts(const Plan& plan);
std::vector<UsePoint> peaks_of_steps(const MemoryMap& map);  // when the most is in use in each section that is a step
// What grew from one time to another, and why: "activations from 2.00 MiB to 7.00 MiB, still 40 blocks, which are larger". Empty if nothing did.
QString short_bytes_text(double bytes);  // three significant digits: "545 MiB"
QString growth_between(const MemoryMap& map, double from, double to);
uint64_t used_at(const MemoryMap& map, double x);

}  // namespace ws::app
