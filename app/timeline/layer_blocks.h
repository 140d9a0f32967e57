// The layers of the network above the kernels: stretches of time in which the ops of one layer run.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "profiling/trace/time_range.h"
#include "profiling/trace/trace.h"

namespace ws::app {

struct LayerBlock {
  prof::TimeNs start = 0, end = 0;
  std::string name;   // "conv1"; work without a layer has the name of its phase: "loss"
  std::string phase;  // "forward"
};

// What holds a layer: "block 2" of "attn7". Layers outside of blocks and residuals are not in it.
using LayerParts = std::map<std::string, std::string>;

// One block for adjacent spans of one layer, phase and step. With `parts`, one for adjacent layers of one part; the rest is left
// out. Empty for more than `most` spans: then the blocks would be narrower than a pixel.
std::vector<LayerBlock> layer_blocks(const prof::Trace& trace, const std::vector<size_t>& tracks, prof::TimeRange range,
                                     const LayerParts* parts, size_t most);

bool has_layers(const prof::Trace& trace, const prof::Track& track);  // looks at its newest spans

}  // namespace ws::app
