// The shape of a data set before it is loaded. The live estimate beside the choices needs it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/passes/compile.h"
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
// What differs between two runs. A choice that has an effect in neither of them does not count.
std::vector<FieldChange> choices_between(const RunSpec& from, const RunSpec& to);
// True for choices that most people never change. They are under "More".
bool advanced(std::string_view key);

// The plan of choices before their data is loaded, and where a persistent kernel would keep the network.
// Returns nullopt if the shape of the data is not known before loading, or if the choices make no plan.
std::optional<CompiledPlan> plan_before_loading(const RunSpec& spec);

// Returns lines, or nothing if the launch mode runs no persistent kernel, or if the data are not known before loading.
std::string plan_budget(const RunSpec& spec);

}  // namespace ws::app
