// The layers of the network above the kernels: stretches of time in which the ops of one layer run.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::app {

struct LayerBlock {
  prof::TimeNs start = 0, end = 0;
  std::string name;   // "conv1"; work without a layer has the name of its phase: "loss"
  std::string phase;  // "forward"
  bool block = false;  // it stands for several layers, and can be folded
};

// What holds a layer: "block 2" of "attn7". Layers outside of blocks and residuals are not in it.
using LayerParts = std::map<std::string, std::string>;

// Layers of one part become one block. `only`: layers outside of the parts, and work without a layer, are left out.
struct LayerGrouping {
  LayerParts parts;
  bool only = false;
};

// One block for adjacent spans of one layer or part, phase and step. Empty for more than `most` spans: then the blocks would be
// narrower than a pixel.
std::vector<LayerBlock> layer_blocks(const prof::Trace& trace, const std::vector<size_t>& tracks, prof::TimeRange range,
                                     const LayerGrouping& grouping, size_t most);

bool has_layers(const prof::Trace& trace, const prof::Track& track);  // looks at its newest spans

}  // namespace ws::app
