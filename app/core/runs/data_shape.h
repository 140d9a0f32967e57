// The shape of a data set before it is loaded. The live estimate beside the choices needs it.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "engine/plan/layers.h"

namespace ws::app {

struct DataShape {
  LayerShape input;
  int64_t outputs = 0, train = 0, test = 0;  // train 0: unknown before loading
  int64_t features() const { return input.elements(); }
  bool known() const { return train > 0; }
};
DataShape data_shape(const data::DataSpec& spec);
// The block of layers that holds a layer, "block 2" of "attn7", of a network whose data set has a known shape; else empty.
std::map<std::string, std::string> blocks_of(const RunSpec& spec);

double rows_of_a_step(const RunSpec& spec);  // NaN if unknown before loading

// True if a choice has an effect with the other choices as they are. The window hides the rest.
bool relevant(const RunSpec& spec, std::string_view key);
// True for choices that most people never change. They are under "More".
bool advanced(std::string_view key);

}  // namespace ws::app
